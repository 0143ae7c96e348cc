/**
 * The domain state machine (reference §5, "Domain events"): pending → verifying → healthy | degraded | failing → suspended →
 * removed. Pure: a row and what happened give the next row and the event it causes.
 */
import * as z from "zod";
import { DAY_MS, HOUR_MS } from "./limits.ts";
import { rfc3339 } from "./envelope.ts";
import {
  type DomainIssue,
  domainIssue,
  type DomainState,
  domainState,
  type DomainSummary,
  type RemoveReason,
  removeReason,
  type SuspendReason,
  suspendReason,
} from "./payloads/domain.ts";

const ms = z.int().nonnegative();

/** The state row of a domain's owner, part `domain`. */
export const domainRow = z.object({
  id: z.string(),
  name: z.string(),
  state: domainState,
  /** Unix ms since when it is in `state`. */
  since: ms,
  issues: z.array(domainIssue),
  fallback_active: z.boolean(),
  suspended_reason: suspendReason.nullable(),
  removed_reason: removeReason.nullable(),
  /** Reminders sent in this state. */
  reminders: z.int().nonnegative(),
  /** When time alone acts on it next; null: never. */
  due: ms.nullable(),
  created_at: ms,
  verified_at: ms.nullable(),
});
export type DomainRow = z.infer<typeof domainRow>;

/** What a check reports. `unverified` and `verifying`: before verification, no record or only some were found. */
export const checkResult = z.enum([
  "unverified",
  "verifying",
  "healthy",
  "degraded",
  "failing",
  "nameservers_changed",
  "ownership_record_missing",
  "registration_changed",
  "zone_expired",
]);
export type CheckResult = z.infer<typeof checkResult>;

export interface DomainCheck {
  result: CheckResult;
  issues?: DomainIssue[] | undefined;
  /** While failing: mail leaves by the fall-back domain. */
  fallback_active?: boolean | undefined;
}

/** `event` null: nothing to tell. `type` lacks its `domain.`. */
export interface Step {
  row: DomainRow;
  event: { type: string; data: unknown } | null;
}

/** Hours in a state that needs attention after which a reminder goes out. */
const REMINDER_HOURS = [24, 72, 168];
export const FAILING_SUSPENDS_MS = 14 * DAY_MS;
/** A domain that was never verified is given up this long after it was added. */
export const UNVERIFIED_EXPIRES_MS = 30 * DAY_MS;

const UNVERIFIED: readonly DomainState[] = ["pending", "verifying"];
const ATTENTION: readonly DomainState[] = ["pending", "verifying", "degraded", "failing", "suspended"];

/** Lower-case ASCII name (IDNA), or null when it is no name of two labels or more. */
export function domainName(text: string): string | null {
  if (!/^[^\s/:?#@\\%[\]]+$/.test(text) || !URL.canParse(`https://${text}/`)) return null;
  const { hostname } = new URL(`https://${text}/`);
  const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
  const name = new RegExp(`^(${label}\\.)+(?=[a-z])${label}$`);
  return hostname.length <= 253 && name.test(hostname) ? hostname : null;
}

export function newDomain(id: string, name: string, now: number): Step {
  const row = scheduled({
    id,
    name,
    state: "pending",
    since: now,
    issues: [],
    fallback_active: false,
    suspended_reason: null,
    removed_reason: null,
    reminders: 0,
    due: null,
    created_at: now,
    verified_at: null,
  });
  return { row, event: { type: "created", data: { domain: summary(row) } } };
}

/** What a check makes of a domain, or why it cannot be: the caller answers 409. Staying in a state tells nobody. */
export function checked(row: DomainRow, check: DomainCheck, now: number): Step | { refused: string } {
  const { result } = check;
  if (row.state === "removed") return { refused: "it was removed" };
  if (result === "zone_expired") return removed(row, "zone_expired", now);
  const unverified = UNVERIFIED.includes(row.state);
  if (result === "unverified" || result === "verifying") {
    if (!unverified) return { refused: "it was verified before; report ownership_record_missing or failing" };
    return result === row.state || result === "unverified"
      ? quiet(row)
      : { row: moved(row, result, now), event: null };
  }
  const lost = suspendReason.safeParse(result);
  // What was never verified has nothing to lose, and what is suspended has lost it already.
  if (lost.success) {
    return unverified || row.state === "suspended" ? quiet(row) : suspended(row, lost.data, now);
  }
  if (result === "healthy") return healthy(row, now);
  if (row.state === "suspended") return quiet({ ...row, issues: check.issues ?? [] });
  return troubled(row, result as "degraded" | "failing", check, now);
}

/** What time alone does to a domain whose `due` has come; null when nothing does. */
export function elapsed(row: DomainRow, now: number): Step | null {
  if (row.due === null || row.due > now) return null;
  if (row.state === "failing" && now >= row.since + FAILING_SUSPENDS_MS) {
    return suspended(row, "failing_14_days", now);
  }
  if (UNVERIFIED.includes(row.state) && now >= row.created_at + UNVERIFIED_EXPIRES_MS) {
    return removed(row, "unverified_expired", now);
  }
  const hours = Math.floor((now - row.since) / HOUR_MS);
  // Reminders that were missed while nobody ran are one reminder.
  const reminders = REMINDER_HOURS.filter((after) => after <= hours).length;
  const data = { domain_id: row.id, state: row.state, hours_in_state: hours };
  return { row: scheduled({ ...row, reminders }), event: { type: "reminder", data } };
}

export function removed(row: DomainRow, reason: RemoveReason, now: number): Step {
  const next = { ...moved(row, "removed", now), removed_reason: reason };
  return { row: next, event: { type: "removed", data: { domain_id: row.id, reason } } };
}

/** A domain as events show it. */
export const summary = (row: DomainRow): DomainSummary => ({
  id: row.id,
  name: row.name,
  state: row.state,
  created_at: rfc3339(row.created_at),
  verified_at: row.verified_at === null ? null : rfc3339(row.verified_at),
});

const quiet = (row: DomainRow): Step => ({ row, event: null });

/** A first healthy check verifies, also from pending: it saw every record at once. */
function healthy(row: DomainRow, now: number): Step {
  if (row.state === "healthy") return quiet(row);
  const next = { ...moved(row, "healthy", now), verified_at: row.verified_at ?? now };
  if (UNVERIFIED.includes(row.state)) {
    return { row: next, event: { type: "verified", data: { domain: summary(next) } } };
  }
  return { row: next, event: { type: "recovered", data: { domain_id: row.id, from_state: row.state } } };
}

function troubled(row: DomainRow, state: "degraded" | "failing", check: DomainCheck, now: number): Step {
  const issues = check.issues ?? [];
  const fallback_active = state === "failing" && (check.fallback_active ?? false);
  if (row.state === state) return quiet({ ...row, issues, fallback_active });
  const next = { ...moved(row, state, now), issues, fallback_active };
  const data = { domain_id: row.id, issues };
  return {
    row: next,
    event: { type: state, data: state === "failing" ? { ...data, fallback_active } : data },
  };
}

function suspended(row: DomainRow, reason: SuspendReason, now: number): Step {
  const next = { ...moved(row, "suspended", now), issues: row.issues, suspended_reason: reason };
  return { row: next, event: { type: "suspended", data: { domain_id: row.id, reason } } };
}

function moved(row: DomainRow, state: DomainState, now: number): DomainRow {
  return scheduled({
    ...row,
    state,
    since: now,
    issues: [],
    fallback_active: false,
    suspended_reason: null,
    reminders: 0,
  });
}

function scheduled(row: DomainRow): DomainRow {
  if (!ATTENTION.includes(row.state)) return { ...row, due: null };
  const times = [Infinity];
  const hours = REMINDER_HOURS[row.reminders];
  if (hours !== undefined) times.push(row.since + hours * HOUR_MS);
  if (row.state === "failing") times.push(row.since + FAILING_SUSPENDS_MS);
  if (UNVERIFIED.includes(row.state)) times.push(row.created_at + UNVERIFIED_EXPIRES_MS);
  const due = Math.min(...times);
  return { ...row, due: due === Infinity ? null : due };
}

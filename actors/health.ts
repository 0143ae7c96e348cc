/**
 * Endpoint health ("Dead deliveries and auto-disable"): the streak of failures and what becomes of the endpoint. Pure
 * verdicts, and the rows of a disabling: one change with the `webhook.disabled` event that tells of it.
 */
import { buildEnvelope, webhookDisabledId } from "../lib/envelope.ts";
import type { EventId, EventKey, Ids } from "../lib/ids.ts";
import { type EndpointRow, type HealthRow, keys } from "../lib/keys.ts";
import { FAILING_SPAN_MS, FAILURES_TO_DISABLE, SECOND_MS } from "../lib/limits.ts";
import type { Write } from "../lib/edge/kv.ts";
import { eventWrites, type StoredEvent } from "./event_store.ts";
import type { Target } from "./directory.ts";
import type { Settlement } from "./work.ts";

export const healthy: HealthRow = {
  consecutive_failures: 0,
  failing_since: null,
  last_success_at: null,
  last_failure_at: null,
};

/** Adds one attempt to the streak. `failing_since` is the first failure since the last success. */
export function observe(
  health: HealthRow,
  settlement: Settlement & { kind: "succeeded" | "failed" },
): HealthRow {
  const { at } = settlement;
  if (settlement.kind === "succeeded") {
    return { ...health, consecutive_failures: 0, failing_since: null, last_success_at: at };
  }
  return {
    ...health,
    consecutive_failures: health.consecutive_failures + 1,
    failing_since: health.failing_since ?? at,
    last_failure_at: at,
  };
}

/** Whether a change has to be written: a streak always, a sign of health at most once a second. */
export function worthWriting(before: HealthRow, after: HealthRow): boolean {
  if (after.consecutive_failures !== before.consecutive_failures) return true;
  return (after.last_success_at ?? 0) - (before.last_success_at ?? -SECOND_MS) >= SECOND_MS;
}

/** 410 disables at once; 100 consecutive failures over at least 24 h disable. Null: the endpoint stays. */
export function judge(health: HealthRow, settlement: Settlement, now: number): "gone" | "failing" | null {
  if (settlement.kind !== "failed") return null;
  if (settlement.error === "status_410") return "gone";
  const span = now - (health.failing_since ?? now);
  return health.consecutive_failures >= FAILURES_TO_DISABLE && span >= FAILING_SPAN_MS ? "failing" : null;
}

/**
 * The rows that disable an endpoint, and the platform event about it (its id is deterministic, so a record that runs again
 * writes the same rows).
 */
export function disable(
  target: Target,
  reason: "gone" | "failing",
  trigger: { createdAt: number; event: EventId; attempt: number },
  d: { now(): number; ids: Ids; hashKey: Uint8Array },
): { writes: Write[]; event: StoredEvent } {
  const now = d.now();
  const row: EndpointRow = { ...target.row, enabled: false, disabled_reason: reason, updated_at: now };
  const id = webhookDisabledId(d.hashKey, trigger.createdAt, row.id, trigger.event, trigger.attempt);
  const event: StoredEvent = {
    key: id.slice(4) as EventKey,
    id,
    type: "webhook.disabled",
    tenant: row.tenant_id,
    partner: target.partner,
    identity: null,
    about: row.id,
    kind: "platform",
    owner: "platform",
    seq: null,
    at: trigger.createdAt,
    body: buildEnvelope({
      id,
      type: "webhook.disabled",
      occurredAt: trigger.createdAt,
      tenant: row.tenant_id,
      identity: null,
      sequence: null,
      data: { webhook_id: row.id, reason },
    }),
  };
  const writes: Write[] = [
    { op: "set", key: keys.endpoint(row.id), value: row },
    { op: "set", key: keys.endpointsRevision(), value: d.ids.ulid() },
    { op: "set", key: keys.platformPending(event.key), value: now },
    ...eventWrites(event),
  ];
  return { writes, event };
}

/**
 * Coalescing of new-mail notifications (document, "Handing new mail to the Notifier"): what a user is told of, and when. Pure.
 *
 * - A mail that counts is told 2 minutes after the last one, so that a burst is one notification, and at most 10 minutes after
 *   the first, so that a steady stream is told of, too.
 * - With the filter `needs_reply` a mail without a verdict is held up to 5 minutes for its triage, then forgotten.
 * - A mail counts once. Whether it may be seen at all is judged when the notification is made, not here.
 */
import type { Id, IdentityId } from "./ids.ts";
import type { NotificationPref, NotifyRow } from "./keys.ts";
import { MINUTE_MS } from "./limits.ts";
import type { MessageRow } from "./payloads/rows.ts";

export const QUIET_MS = 2 * MINUTE_MS;
export const LONGEST_WAIT_MS = 10 * MINUTE_MS;
export const TRIAGE_HOLD_MS = 5 * MINUTE_MS;
/** At so many a notification goes at once: the row stays a small value. */
export const MAX_COUNTED = 200;
/** The oldest is forgotten past this. */
export const MAX_HELD = 200;

type Filter = NotificationPref["filter"];

/** What an event says of a mail. `triaged` is a verdict alone; the others are new mail. */
export interface MailNews {
  kind: "new" | "triaged";
  identity: IdentityId;
  message: Id<"message">;
  needs_reply: boolean;
}

export const NOTHING: NotifyRow = { counted: [], held: [], first_at: null, last_at: null, due: null };

/** The row after one piece of news; the same row when it changes nothing. */
export function noted(row: NotifyRow, news: MailNews, filter: Filter, now: number): NotifyRow {
  const { identity, message } = news;
  const about = (mail: { message: string }) => mail.message === message;
  if (row.counted.some(about)) return row;
  const held = row.held.some(about);
  const counts = news.kind === "new" ? filter === "all" || news.needs_reply : held && news.needs_reply;
  if (counts) {
    return timed({
      counted: [...row.counted, { identity, message }],
      held: held ? row.held.filter((mail) => !about(mail)) : row.held,
      first_at: row.first_at ?? now,
      last_at: now,
      due: row.due,
    });
  }
  if (news.kind === "triaged") {
    // A verdict on a mail that is not waiting for one changes nothing; a no lets go of one that is.
    return held ? timed({ ...row, held: row.held.filter((mail) => !about(mail)) }) : row;
  }
  if (held) return row;
  const waiting = [...row.held, { identity, message, until: now + TRIAGE_HOLD_MS }];
  return timed({ ...row, held: waiting.slice(-MAX_HELD) });
}

/** Forgets what was held long enough. */
export function expired(row: NotifyRow, now: number): NotifyRow {
  if (!row.held.some((mail) => mail.until <= now)) return row;
  return timed({ ...row, held: row.held.filter((mail) => mail.until > now) });
}

/** Whether what counts is to be told now. */
export const ripe = (row: NotifyRow, now: number): boolean =>
  row.counted.length >= MAX_COUNTED || (tellAt(row) ?? Infinity) <= now;

/** The row once it was told. */
export const told = (row: NotifyRow): NotifyRow => timed({ ...NOTHING, held: row.held });

function tellAt({ first_at, last_at }: NotifyRow): number | null {
  return first_at === null ? null : Math.min(last_at! + QUIET_MS, first_at + LONGEST_WAIT_MS);
}

function timed(row: NotifyRow): NotifyRow {
  const times = row.held.map((mail) => mail.until);
  const tell = tellAt(row);
  if (tell !== null) times.push(tell);
  return { ...row, due: times.length === 0 ? null : Math.min(...times) };
}

/** Flags of mail that its owner does not see as new. */
const OUT_OF_SIGHT = new Set(["archived", "spam", "trash"]);

/** The visibility rule: an inbound mail that is in the inbox now. Null: it was erased. */
export function visible(mail: Pick<MessageRow, "direction" | "status" | "flags"> | null): boolean {
  return mail !== null && mail.direction === "inbound" &&
    (mail.status === "received" || mail.status === "released") &&
    !mail.flags.some((flag) => OUT_OF_SIGHT.has(flag));
}

export const needsReply = (mail: Pick<MessageRow, "triage" | "flags">): boolean =>
  mail.triage?.needs_reply ?? mail.flags.includes("needs_reply");

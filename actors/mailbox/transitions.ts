/**
 * The state machine of outbound mail. Pure: what is impossible is null, and the caller makes it a 409.
 *
 * A message: queued → sent | rejected | failed | uncertain | suppressed | canceled; uncertain → sent | failed by being
 * reconciled. Once sent, each recipient goes its own way, and the message shows the sum of them.
 * A recipient: pending → deferred … → delivered | bounced; delivered → complained | bounced (a late bounce).
 */
import type { RecipientState } from "../../lib/payloads/rows.ts";
import type { MessageStatus, OutboundStatus } from "../../lib/payloads/shapes.ts";

export type MessageOutcome =
  | "sent"
  | "rejected"
  | "failed"
  | "uncertain"
  | "suppressed"
  | "canceled"
  | "reconciled";
export type RecipientOutcome = "delivered" | "deferred" | "bounced" | "complained";

/** What a message becomes by an outcome of the whole; null when that is impossible from where it is. */
export function nextStatus(
  from: MessageStatus,
  outcome: MessageOutcome,
  reconciledAs: "sent" | "failed" = "sent",
): OutboundStatus | null {
  if (outcome === "reconciled") return from === "uncertain" ? reconciledAs : null;
  return from === "queued" ? outcome : null;
}

const ON_ITS_WAY = new Set<MessageStatus>(["sent", "delivered", "deferred", "bounced", "complained"]);

/** Whether recipients of a message in this state can have outcomes. */
export const onItsWay = (status: MessageStatus): boolean => ON_ITS_WAY.has(status);

const RECIPIENT: Record<RecipientState, readonly RecipientOutcome[]> = {
  pending: ["delivered", "deferred", "bounced"],
  deferred: ["delivered", "deferred", "bounced"],
  delivered: ["complained", "bounced"],
  bounced: [],
  complained: [],
  suppressed: [],
};

/** What a recipient becomes; null when that is impossible. */
export const nextRecipient = (from: RecipientState, outcome: RecipientOutcome): RecipientState | null =>
  RECIPIENT[from].includes(outcome) ? outcome : null;

const WORST_FIRST: [RecipientState, OutboundStatus][] = [
  ["complained", "complained"],
  ["bounced", "bounced"],
  ["deferred", "deferred"],
  ["pending", "sent"],
  ["delivered", "delivered"],
];

/** What a sent message shows for its recipients: the worst news, and `delivered` only when nobody is open. */
export function sumOf(recipients: Iterable<RecipientState>): OutboundStatus {
  const seen = new Set(recipients);
  return WORST_FIRST.find(([state]) => seen.has(state))?.[1] ?? "suppressed";
}

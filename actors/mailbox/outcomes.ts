/**
 * What became of outbound mail, recorded. The state machine is `transitions.ts`; a hard bounce
 * and a complaint suppress the address in the same commit.
 */
import { invalidState } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import { summarize } from "../../lib/payloads/message.ts";
import {
  messageBounced,
  messageCanceled,
  messageComplained,
  messageDeferred,
  messageDelivered,
  messageFailed,
  messageReconciled,
  messageRejected,
  messageSent,
  messageSuppressed,
  messageUncertain,
} from "../../lib/payloads/outcome.ts";
import type { MessageRow } from "../../lib/payloads/rows.ts";
import type { MessageSummary } from "../../lib/payloads/shapes.ts";
import { normalAddress } from "../../lib/payloads/suppression.ts";
import type { Appended, Tx } from "../owner.ts";
import type { Outcome } from "./outcome_input.ts";
import { loadRecipients, saveRecipients } from "./queue.ts";
import {
  badField,
  type Done,
  done,
  emit,
  loadHeader,
  loadIdentity,
  loadMessage,
  saveMessage,
} from "./store.ts";
import { suppress } from "./suppressions.ts";
import { type MessageOutcome, nextRecipient, nextStatus, onItsWay, sumOf } from "./transitions.ts";

const UNCERTAIN_FIX = "Look the message up at the provider and report it as reconciled.";

/** Records an outcome with its event. @throws 409 for an impossible one; 400 for a recipient it does not have. */
export async function recordOutcome(
  tx: Tx,
  hashKey: Uint8Array,
  message: Id<"message">,
  outcome: Outcome,
): Promise<Done<MessageSummary>> {
  await loadIdentity(tx);
  const row = await loadMessage(tx, message);
  if (row.direction !== "outbound") {
    throw invalidState(
      "Cannot record an outcome: the message is an inbound one.",
      "Name an outbound message.",
    );
  }
  const events = "recipient" in outcome
    ? await ofRecipient(tx, hashKey, row, outcome)
    : await ofMessage(tx, row, outcome);
  const header = await loadHeader(tx, row);
  return done(summarize(row, header), ...events);
}

type OfRecipient = Extract<Outcome, { recipient: string }>;
type OfMessage = Exclude<Outcome, { recipient: string }>;

async function ofRecipient(
  tx: Tx,
  hashKey: Uint8Array,
  row: MessageRow,
  outcome: OfRecipient,
): Promise<Appended[]> {
  const recipients = await loadRecipients(tx, row.id);
  const recipient = normalAddress(outcome.recipient);
  const before = recipients[recipient];
  if (before === undefined) throw badField("recipient", "is no recipient of this message");
  if (!onItsWay(row.status)) throw impossible(outcome.outcome, `the message is ${row.status}`);
  const after = nextRecipient(before, outcome.outcome);
  if (after === null) throw impossible(outcome.outcome, `the recipient is ${before}`);
  recipients[recipient] = after;
  saveRecipients(tx, row.id, recipients);
  save(tx, row, sumOf(Object.values(recipients)));
  const about = { message: row.id };
  const to = { message_id: row.id, recipient };
  switch (outcome.outcome) {
    case "delivered":
      return [await emit(tx, messageDelivered, { ...to, smtp_code: outcome.smtp_code }, about)];
    case "deferred": {
      const { smtp_code, smtp_response } = outcome;
      return [await emit(tx, messageDeferred, { ...to, smtp_code, smtp_response }, about)];
    }
    case "bounced": {
      const { bounce_type, smtp_code, smtp_response } = outcome;
      const suppressed = bounce_type === "hard";
      const data = { ...to, bounce_type, smtp_code, smtp_response, suppressed };
      const event = await emit(tx, messageBounced, data, about);
      return suppressed ? [event, ...await suppressNow(tx, hashKey, row, recipient, "hard_bounce")] : [event];
    }
    case "complained": {
      const event = await emit(tx, messageComplained, { ...to, suppressed: true }, about);
      return [event, ...await suppressNow(tx, hashKey, row, recipient, "complaint")];
    }
  }
}

/** The suppression's event, unless it was there before. */
async function suppressNow(
  tx: Tx,
  hashKey: Uint8Array,
  row: MessageRow,
  address: string,
  reason: "hard_bounce" | "complaint",
): Promise<Appended[]> {
  const source_message_id = row.id as Id<"message">;
  const { events } = await suppress(tx, hashKey, { address, reason, source_message_id });
  return events.filter(({ duplicate }) => !duplicate);
}

async function ofMessage(tx: Tx, row: MessageRow, outcome: OfMessage): Promise<Appended[]> {
  const about = { message: row.id };
  const message_id = row.id;
  const move = (as: MessageOutcome, reconciledAs?: "sent" | "failed") => {
    const next = nextStatus(row.status, as, reconciledAs);
    if (next === null) throw impossible(as, `the message is ${row.status}`);
    if (next === "sent") row.sent_at = tx.now;
    save(tx, row, next);
  };
  switch (outcome.outcome) {
    case "sent": {
      move("sent");
      const { provider, provider_message_id, sent_via_fallback } = outcome;
      const message = summarize(row, await loadHeader(tx, row));
      return [
        await emit(tx, messageSent, { message, provider, provider_message_id, sent_via_fallback }, about),
      ];
    }
    case "rejected":
      move("rejected");
      return [
        await emit(
          tx,
          messageRejected,
          { message_id, reason: outcome.reason, detail: outcome.detail },
          about,
        ),
      ];
    case "failed":
      move("failed");
      return [await emit(tx, messageFailed, { message_id, reason: outcome.reason }, about)];
    case "uncertain": {
      move("uncertain");
      const data = { message_id, reason: outcome.reason, fix: outcome.fix ?? UNCERTAIN_FIX };
      return [await emit(tx, messageUncertain, data, about)];
    }
    case "reconciled":
      move("reconciled", outcome.status);
      return [await emit(tx, messageReconciled, { message_id, status: outcome.status }, about)];
    case "suppressed":
      return [await leaveOut(tx, row, outcome.recipients, () => move("suppressed"))];
    case "canceled":
      move("canceled");
      return [await emit(tx, messageCanceled, { message_id }, about)];
  }
}

/** Leaves recipients out of a queued message; with nobody left the message itself is suppressed. */
async function leaveOut(tx: Tx, row: MessageRow, given: string[], end: () => void): Promise<Appended> {
  if (nextStatus(row.status, "suppressed") === null) {
    throw impossible("suppressed", `the message is ${row.status}`);
  }
  const states = await loadRecipients(tx, row.id);
  const recipients = [...new Set(given.map(normalAddress))];
  for (const [at, recipient] of recipients.entries()) {
    const state = states[recipient];
    if (state === undefined) throw badField(`recipients.${at}`, "is no recipient of this message");
    if (state !== "pending") throw impossible("suppressed", `recipient ${at} is ${state}`);
    states[recipient] = "suppressed";
  }
  saveRecipients(tx, row.id, states);
  if (Object.values(states).every((state) => state === "suppressed")) end();
  return await emit(tx, messageSuppressed, { message_id: row.id, recipients }, { message: row.id });
}

function save(tx: Tx, row: MessageRow, status: MessageRow["status"]): void {
  row.status = status;
  row.updated_at = tx.now;
  saveMessage(tx, row);
}

const impossible = (outcome: string, why: string) =>
  invalidState(`Cannot record ${outcome}: ${why}.`, "Read the message to see where it stands.");

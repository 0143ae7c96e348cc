/** The command that registers outbound mail, and the rows of its recipients. What becomes of it is `outcomes.ts`. */
import { invalidState } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import { summarize } from "../../lib/payloads/message.ts";
import { messageSuppressed } from "../../lib/payloads/outcome.ts";
import type { RecipientsRow } from "../../lib/payloads/rows.ts";
import type { MessageSummary } from "../../lib/payloads/shapes.ts";
import { normalAddress } from "../../lib/payloads/suppression.ts";
import type { Tx } from "../owner.ts";
import { createMessage } from "./receive.ts";
import { badField, type Done, done, emit, loadAddresses, loadIdentity, stateKey } from "./store.ts";
import { isSuppressed } from "./suppressions.ts";

/** Each recipient's suppression is a read that the commit checks. */
export const MAX_OUTBOUND_RECIPIENTS = 50;

/**
 * Registers an outbound message as queued. Suppressed recipients are left out with `message.suppressed`; when none is
 * left, that is the end of it. @param bcc recipients beside `to` and `cc`, never shown.
 * @throws 409 when the identity is paused; 400 when the sender is no active address of it.
 */
export async function queueMessage(
  tx: Tx,
  hashKey: Uint8Array,
  mail: ParsedMessage,
  options: { bcc: string[]; thread?: Id<"thread"> | undefined },
): Promise<Done<MessageSummary>> {
  const identity = await loadIdentity(tx);
  if (identity.status === "paused") {
    throw invalidState("Cannot send: the identity is paused.", "Resume the identity first.");
  }
  const sender = normalAddress(mail.from.address);
  const addresses = await loadAddresses(tx);
  if (!addresses.some(({ address, status }) => address === sender && status === "active")) {
    throw badField("from.address", "is no active address of this identity");
  }
  const given = [...mail.to, ...mail.cc].map((entry) => entry.address).concat(options.bcc);
  if (given.length === 0 || given.length > MAX_OUTBOUND_RECIPIENTS) {
    throw badField("to", `the message needs 1 to ${MAX_OUTBOUND_RECIPIENTS} recipients`);
  }
  const names = [...new Set(given.map(normalAddress))];
  const recipients: RecipientsRow = Object.fromEntries(names.map((name) => [name, "pending"]));
  const left: string[] = [];
  for (const name of names) if (await isSuppressed(tx, hashKey, name)) left.push(name);
  for (const name of left) recipients[name] = "suppressed";
  const header = {
    from: mail.from,
    to: mail.to,
    cc: mail.cc,
    delivered_to: null,
    is_primary_recipient: false,
    subject: mail.subject,
    message_id: mail.message_id,
    in_reply_to: mail.in_reply_to,
    references: mail.references,
    attachments: mail.attachments.map((part) => ({ id: tx.ids.next("attachment"), ...part })),
  };
  const row = await createMessage(tx, { ...mail, sent_at: null }, header, {
    direction: "outbound",
    status: left.length === names.length ? "suppressed" : "queued",
    quarantine_reason: null,
    received_at: null,
    thread: options.thread,
  });
  saveRecipients(tx, row.id, recipients);
  const summary = summarize(row, header);
  if (left.length === 0) return done(summary);
  const data = { message_id: row.id, recipients: left };
  return done(summary, await emit(tx, messageSuppressed, data, { message: row.id }));
}

const recipientsKey = (tx: Tx, message: string) => stateKey(tx.owner, "recipients", message);
export const loadRecipients = async (tx: Tx, message: string): Promise<RecipientsRow> =>
  await tx.get<RecipientsRow>(recipientsKey(tx, message)) ?? {};
export const saveRecipients = (tx: Tx, message: string, row: RecipientsRow): void =>
  tx.set(recipientsKey(tx, message), row);

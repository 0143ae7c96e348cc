/**
 * Commands on inbound mail: receive or quarantine, release, triage, re-parse. The message's rows and its event are one
 * commit (O1); what is kept of the content is what a re-parse needs.
 */
import { invalidState } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import { TEXT_BYTES_MAX } from "../../lib/limits.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import {
  messageQuarantined,
  messageReceived,
  messageReleased,
  messageTriaged,
  quarantinedData,
  receivedData,
  type ReleasedBy,
  releasedData,
  summarize,
  triagedData,
  verificationData,
  verificationReceived,
} from "../../lib/payloads/message.ts";
import type { AddressRow, MessageHeader, MessageRow } from "../../lib/payloads/rows.ts";
import type { MessageSummary, QuarantineReason, Triage } from "../../lib/payloads/shapes.ts";
import { normalAddress } from "../../lib/payloads/suppression.ts";
import { capUtf8, textBytes } from "../../lib/text.ts";
import type { Appended, Tx } from "../owner.ts";
import {
  type Done,
  done,
  emit,
  loadAddresses,
  loadHeader,
  loadIdentity,
  loadMessage,
  loadText,
  saveChunks,
  saveMessage,
} from "./store.ts";
import { enterThread, findThread } from "./threads.ts";

/** What a caller may know beyond the mail itself. */
export interface ReceiveOptions {
  /** An existing thread of this identity, instead of the one its references say. */
  thread?: Id<"thread"> | undefined;
  /** It carries a verification code or link. The value itself never gets here. */
  verification?: { kind: "code" | "link"; sender_domain?: string | undefined } | undefined;
}

/** Receives a mail: `message.received` or `message.quarantined`, and `verification.received` when it says so. */
export async function receiveMessage(
  tx: Tx,
  mail: ParsedMessage,
  options: ReceiveOptions = {},
): Promise<Done<MessageSummary>> {
  await loadIdentity(tx);
  const header = headerOf(tx, mail, await loadAddresses(tx));
  const reason = quarantineReasonOf(mail);
  const status = reason === null ? "received" : "quarantined";
  const row = await createMessage(tx, mail, header, {
    status,
    direction: "inbound",
    quarantine_reason: reason,
    received_at: tx.now,
    thread: options.thread,
  });
  const about = { message: row.id };
  if (reason !== null) {
    return done(
      summarize(row, header),
      await emit(tx, messageQuarantined, quarantinedData(row, header), about),
    );
  }
  const limit = textBytes(tx.tenant.policy.webhook_text_bytes);
  const events = [await emit(tx, messageReceived, receivedData(row, header, mail.text, limit, false), about)];
  if (options.verification !== undefined) {
    const data = verificationData(row, header, options.verification);
    events.push(await emit(tx, verificationReceived, data, about));
  }
  return done(summarize(row, header), ...events);
}

/** A given reason, else a malicious verdict, else a failed DMARC check; null lets it into the inbox. */
function quarantineReasonOf({ quarantine_reason, trust }: ParsedMessage): QuarantineReason | null {
  if (quarantine_reason !== null) return quarantine_reason;
  if (trust.verdict === "malicious") return "trust_verdict";
  return trust.dmarc === "fail" ? "dmarc_failed" : null;
}

function headerOf(tx: Tx, mail: ParsedMessage, addresses: AddressRow[]): MessageHeader {
  const own = new Set(addresses.filter(({ status }) => status === "active").map(({ address }) => address));
  const isOwn = ({ address }: { address: string }) => own.has(normalAddress(address));
  return {
    from: mail.from,
    to: mail.to,
    cc: mail.cc,
    delivered_to: mail.delivered_to ?? [...mail.to, ...mail.cc].find(isOwn)?.address ?? null,
    is_primary_recipient: mail.to.some(isOwn),
    subject: mail.subject,
    message_id: mail.message_id,
    in_reply_to: mail.in_reply_to,
    references: mail.references,
    attachments: mail.attachments.map((part) => ({ id: tx.ids.next("attachment"), ...part })),
  };
}

/** Writes a new message's rows and enters it in its thread. */
export async function createMessage(
  tx: Tx,
  mail: ParsedMessage,
  header: MessageHeader,
  given:
    & Pick<MessageRow, "status" | "direction" | "quarantine_reason" | "received_at">
    & { thread: Id<"thread"> | undefined },
): Promise<MessageRow> {
  const id = tx.ids.next("message");
  const thread_id = given.thread ?? await findThread(tx, mail) ?? tx.ids.next("thread");
  await enterThread(tx, { thread: thread_id, message: id, rfcId: mail.message_id, mustExist: given.thread });
  const kept = capUtf8(mail.text, TEXT_BYTES_MAX);
  const row: MessageRow = {
    id,
    thread_id,
    direction: given.direction,
    status: given.status,
    kind: mail.kind,
    trust: mail.trust,
    triage: null,
    quarantine_reason: given.quarantine_reason,
    labels: mail.labels,
    flags: mail.flags,
    sent_at: mail.sent_at,
    received_at: given.received_at,
    created_at: tx.now,
    updated_at: tx.now,
    header_chunks: saveChunks(tx, "header", id, JSON.stringify(header)),
    text_chunks: saveChunks(tx, "text", id, kept.text),
    text_cut: kept.truncated,
  };
  saveMessage(tx, row);
  return row;
}

/** Lets a quarantined message into the inbox. @throws 409 unless it is quarantined. */
export async function releaseMessage(
  tx: Tx,
  message: Id<"message">,
  by: ReleasedBy,
  reason: string | null,
): Promise<Done<MessageSummary>> {
  await loadIdentity(tx);
  const row = await loadMessage(tx, message);
  if (row.status !== "quarantined") {
    throw invalidState(
      `Cannot release the message: it is ${row.status}.`,
      "Only quarantined messages are released.",
    );
  }
  const next: MessageRow = { ...row, status: "released", updated_at: tx.now };
  saveMessage(tx, next);
  const header = await loadHeader(tx, next);
  const event = await emit(tx, messageReleased, releasedData(next, header, by, reason), { message });
  return done(summarize(next, header), event);
}

/** Sets the triage verdict; the same one again changes and sends nothing. @throws 409 unless it is in the inbox. */
export async function triageMessage(
  tx: Tx,
  message: Id<"message">,
  triage: Triage,
): Promise<Done<MessageSummary>> {
  await loadIdentity(tx);
  const row = await inInbox(tx, message, "triage");
  const header = await loadHeader(tx, row);
  const same = row.triage !== null && row.triage.needs_reply === triage.needs_reply &&
    row.triage.priority === triage.priority && row.triage.category === triage.category;
  if (same) return done(summarize(row, header));
  const others = row.flags.filter((flag) => flag !== "needs_reply");
  const flags = triage.needs_reply ? [...others, "needs_reply"] : others;
  const next = { ...row, triage, flags, updated_at: tx.now };
  saveMessage(tx, next);
  return done(summarize(next, header), await emit(tx, messageTriaged, triagedData(next), { message }));
}

/** Sends a message's `message.received` again under the policy of today. @throws 409 unless it is in the inbox. */
export async function reprocessMessage(tx: Tx, message: Id<"message">): Promise<Done<MessageSummary>> {
  await loadIdentity(tx);
  const row = await inInbox(tx, message, "reprocess");
  const header = await loadHeader(tx, row);
  const text = await loadText(tx, row);
  const limit = textBytes(tx.tenant.policy.webhook_text_bytes);
  const event: Appended = await emit(tx, messageReceived, receivedData(row, header, text, limit, true), {
    message,
  });
  return done(summarize(row, header), event);
}

async function inInbox(tx: Tx, message: Id<"message">, verb: string): Promise<MessageRow> {
  const row = await loadMessage(tx, message);
  if (row.direction === "inbound" && row.status !== "quarantined") return row;
  throw row.direction === "outbound"
    ? invalidState(`Cannot ${verb} the message: it is an outbound one.`, "Name a received message.")
    : invalidState(`Cannot ${verb} the message: it is quarantined.`, "Release it first.");
}

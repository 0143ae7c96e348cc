/**
 * Payloads of a message's own life (reference §5): `message.received`, `.quarantined`, `.released`, `.triaged`, and
 * `verification.received`. Thin (FR-WH-4): built from rows already read, no body but the capped `extracted_text`.
 */
import * as z from "zod";
import { rfc3339 } from "../envelope.ts";
import { capUtf8 } from "../text.ts";
import { EXAMPLE, exampleSummary } from "./examples.ts";
import type { MessageHeader, MessageRow } from "./rows.ts";
import {
  attachment,
  detail,
  idOf,
  mailboxType,
  MAX_ATTACHMENTS,
  type MessageSummary,
  messageSummary,
  quarantineReason,
  triage,
  trust,
} from "./shapes.ts";

/** A message as payloads and answers show it. */
export function summarize(row: MessageRow, header: MessageHeader): MessageSummary {
  return {
    id: row.id,
    thread_id: row.thread_id,
    direction: row.direction,
    status: row.status,
    from: header.from,
    to: header.to,
    cc: header.cc,
    delivered_to: header.delivered_to,
    is_primary_recipient: header.is_primary_recipient,
    subject: header.subject,
    sent_at: row.sent_at === null ? null : rfc3339(row.sent_at),
    received_at: row.received_at === null ? null : rfc3339(row.received_at),
    kind: row.kind,
    labels: row.labels,
    in_reply_to: header.in_reply_to,
    flags: row.flags,
  };
}

const attachments = z.array(attachment).max(MAX_ATTACHMENTS);

export const messageReceived = mailboxType(
  "message.received",
  z.strictObject({
    message: messageSummary,
    thread_id: idOf("thread"),
    trust,
    extracted_text: z.string(),
    extracted_text_truncated: z.boolean(),
    attachments,
    reprocessed: z.literal(true).optional(),
  }),
  "A mail was accepted into the identity's inbox. The text is cut at the tenant's webhook_text_bytes. " +
    "`reprocessed` is there only when a re-parse sends it again.",
  {
    message: exampleSummary,
    thread_id: EXAMPLE.thread,
    trust: { verdict: "trusted", spf: "pass", dkim: "pass", dmarc: "pass" },
    extracted_text:
      "Hello Noor,\n\ncould you send me the offer for the two standing desks again?\n\nKind regards\nMarta",
    extracted_text_truncated: false,
    attachments: [{
      id: EXAMPLE.attachment,
      filename: "floor-plan.pdf",
      content_type: "application/pdf",
      size: 48_213,
    }],
  },
);

/** @param textBytes the tenant's `webhook_text_bytes`. */
export function receivedData(
  row: MessageRow,
  header: MessageHeader,
  text: string,
  textBytes: number,
  reprocessed: boolean,
): z.infer<typeof messageReceived.data> {
  const capped = capUtf8(text, textBytes);
  return {
    message: summarize(row, header),
    thread_id: row.thread_id,
    trust: row.trust,
    extracted_text: capped.text,
    extracted_text_truncated: capped.truncated || row.text_cut,
    attachments: header.attachments,
    ...(reprocessed ? { reprocessed } : {}),
  };
}

export const messageQuarantined = mailboxType(
  "message.quarantined",
  z.strictObject({
    message: messageSummary,
    thread_id: idOf("thread"),
    trust,
    attachments,
    quarantine_reason: quarantineReason,
  }),
  "A mail was held back from the inbox. It carries no text until it is released.",
  {
    message: {
      ...exampleSummary,
      status: "quarantined",
      from: { address: "billing@parcel-desk.example", name: "Parcel Desk" },
      subject: "Your parcel is waiting: pay now",
      flags: ["dmarc_failed"],
    },
    thread_id: EXAMPLE.thread,
    trust: { verdict: "suspicious", spf: "softfail", dkim: "none", dmarc: "fail" },
    attachments: [],
    quarantine_reason: "dmarc_failed",
  },
);

export function quarantinedData(
  row: MessageRow,
  header: MessageHeader,
): z.infer<typeof messageQuarantined.data> {
  return {
    message: summarize(row, header),
    thread_id: row.thread_id,
    trust: row.trust,
    attachments: header.attachments,
    quarantine_reason: row.quarantine_reason ?? "policy",
  };
}

export const messageReleased = mailboxType(
  "message.released",
  z.strictObject({
    message: messageSummary,
    released_by_key_id: idOf("key").nullable(),
    released_by_user_id: idOf("user").nullable(),
    reason: detail.nullable(),
  }).refine((d) => (d.released_by_key_id === null) !== (d.released_by_user_id === null), {
    error: "must name either the key or the user who released it",
    path: ["released_by_key_id"],
  }),
  "A quarantined mail was let into the inbox, by a key or by a user.",
  {
    message: { ...exampleSummary, status: "released" },
    released_by_key_id: null,
    released_by_user_id: EXAMPLE.user,
    reason: "Known supplier",
  },
);

/** Who let a message out: one of the two. */
export type ReleasedBy = { key: string } | { user: string };

export function releasedData(
  row: MessageRow,
  header: MessageHeader,
  by: ReleasedBy,
  reason: string | null,
): z.infer<typeof messageReleased.data> {
  return {
    message: summarize(row, header),
    released_by_key_id: "key" in by ? by.key : null,
    released_by_user_id: "user" in by ? by.user : null,
    reason,
  };
}

export const messageTriaged = mailboxType(
  "message.triaged",
  z.strictObject({ message_id: idOf("message"), thread_id: idOf("thread"), triage }),
  "A triage verdict was set on a message, or changed.",
  {
    message_id: EXAMPLE.message,
    thread_id: EXAMPLE.thread,
    triage: { needs_reply: true, priority: "normal", category: "sales" },
  },
);

export function triagedData(row: MessageRow & { triage: z.infer<typeof triage> }): z.infer<
  typeof messageTriaged.data
> {
  return { message_id: row.id, thread_id: row.thread_id, triage: row.triage };
}

export const verificationReceived = mailboxType(
  "verification.received",
  z.strictObject({
    message_id: idOf("message"),
    sender_domain: z.string().min(1).max(253),
    kind: z.enum(["code", "link"]),
  }),
  "A mail carried a verification code or link. The value itself is never sent.",
  { message_id: EXAMPLE.message, sender_domain: "accounts.lindenhof.example", kind: "code" },
);

export function verificationData(
  row: MessageRow,
  header: MessageHeader,
  verification: { kind: "code" | "link"; sender_domain?: string },
): z.infer<typeof verificationReceived.data> {
  const { address } = header.from;
  const domain = verification.sender_domain ?? address.slice(address.lastIndexOf("@") + 1);
  return { message_id: row.id, sender_domain: domain.toLowerCase(), kind: verification.kind };
}

export const messageTypes = [messageReceived, messageQuarantined, messageReleased, messageTriaged];

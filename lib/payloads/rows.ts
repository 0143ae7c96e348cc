/**
 * State rows of a mailbox, under `keys.ownerState(owner, part, …)`. Each fits one value (64 KiB) by its bounds; headers
 * and text of a message are chunks of bytes beside its row, which counts them.
 */
import * as z from "zod";
import {
  attachment,
  direction,
  identityShape,
  mailAddress,
  messageKind,
  messageStatus,
  pauseReason,
  quarantineReason,
  triage,
  trust,
} from "./shapes.ts";

const ms = z.int().nonnegative();

/** part `identity`: one row. */
export const identityRow = z.object({
  id: z.string(),
  tenant_id: z.string(),
  display_name: z.string(),
  description: z.string().nullable(),
  external_id: z.string().nullable(),
  status: identityShape.shape.status,
  paused_reason: pauseReason.nullable(),
  primary_address_id: z.string().nullable(),
  primary_address: z.string().nullable(),
  /** The erasure under way, once deleted. */
  erasure_request_id: z.string().nullable(),
  created_at: ms,
  updated_at: ms,
});
export type IdentityRow = z.infer<typeof identityRow>;

/** An address of the identity. Part `addresses` is one row, a list of them: every mail looks at all of them. */
export const addressRow = z.object({
  id: z.string(),
  address: z.string(),
  status: z.enum(["pending", "active", "retired"]),
  is_primary: z.boolean(),
  retire_at: ms.nullable(),
  created_at: ms,
});
export type AddressRow = z.infer<typeof addressRow>;

/** `keys.mailAddress`. */
export const mailAddressRow = z.object({ identity: z.string(), address: z.string() });
export type MailAddressRow = z.infer<typeof mailAddressRow>;

/** part `key`, kid: a signing key of the identity. */
export const signingKeyRow = z.object({ status: z.enum(["active", "retired", "revoked"]), created_at: ms });
export type SigningKeyRow = z.infer<typeof signingKeyRow>;

/** part `message`, id: what changes. */
export const messageRow = z.object({
  id: z.string(),
  thread_id: z.string(),
  direction,
  status: messageStatus,
  kind: messageKind,
  trust,
  triage: triage.nullable(),
  quarantine_reason: quarantineReason.nullable(),
  labels: z.array(z.string()),
  flags: z.array(z.string()),
  sent_at: ms.nullable(),
  received_at: ms.nullable(),
  created_at: ms,
  updated_at: ms,
  /** Chunk rows of parts `header` and `text`. */
  header_chunks: z.int().positive(),
  text_chunks: z.int().nonnegative(),
  /** The text was longer than what is kept (65,536 B). */
  text_cut: z.boolean(),
});
export type MessageRow = z.infer<typeof messageRow>;

/** JSON of the `header` chunks: what stays. `message_id` and `references` are the mail's own, for threads. */
export const messageHeader = z.object({
  from: mailAddress,
  to: z.array(mailAddress),
  cc: z.array(mailAddress),
  delivered_to: z.string().nullable(),
  is_primary_recipient: z.boolean(),
  subject: z.string().nullable(),
  message_id: z.string().nullable(),
  in_reply_to: z.string().nullable(),
  references: z.array(z.string()),
  attachments: z.array(attachment),
});
export type MessageHeader = z.infer<typeof messageHeader>;

/** part `recipients`, message id: an outbound message's recipients, `bcc` included, by lower-case address. */
export const recipientState = z.enum([
  "pending",
  "deferred",
  "delivered",
  "bounced",
  "complained",
  "suppressed",
]);
export type RecipientState = z.infer<typeof recipientState>;
export const recipientsRow = z.record(z.string(), recipientState);
export type RecipientsRow = z.infer<typeof recipientsRow>;

/** part `suppression`, keyed hash of the address. */
export const suppressionRow = z.object({
  address_hint: z.string(),
  reason: z.enum(["hard_bounce", "complaint", "manual"]),
  source_message_id: z.string().nullable(),
  created_at: ms,
});
export type SuppressionRow = z.infer<typeof suppressionRow>;

/** part `thread`, id. */
export const threadRow = z.object({ messages: z.int().nonnegative(), last_at: ms });
export type ThreadRow = z.infer<typeof threadRow>;

/** part `thread_message`, thread id, message id: true. What an erasure of a thread lists. */

/** part `rfc_id`, the mail's own Message-ID: what a reply's references find. */
export const rfcIdRow = z.object({ message: z.string(), thread: z.string() });
export type RfcIdRow = z.infer<typeof rfcIdRow>;

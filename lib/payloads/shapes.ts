/**
 * The shapes that mailbox payloads share (reference §5), all strict and bounded. Times are RFC 3339 UTC with
 * milliseconds. Nothing here can hold a body: the capped `extracted_text` of `message.received` alone does.
 */
import * as z from "zod";
import type { EventType } from "../catalogue.ts";
import { aKind, type IdKind, PREFIX } from "../ids.ts";

export const MAX_ADDRESS_CHARS = 254;
export const MAX_NAME_CHARS = 128;
export const MAX_SUBJECT_CHARS = 998;
export const MAX_RECIPIENTS = 100;
export const MAX_ATTACHMENTS = 100;
export const MAX_FILENAME_CHARS = 200;
export const MAX_RFC_ID_CHARS = 512;
export const MAX_LABELS = 32;
/** Answers of mail servers and explanations of refusals. */
export const MAX_DETAIL_CHARS = 512;

/** An id of one kind: prefix, underscore, ULID. */
export const idOf = (kind: IdKind) =>
  z.string().regex(new RegExp(`^${PREFIX[kind]}_[0-7][0-9A-HJKMNP-TV-Z]{25}$`), {
    error: `must be ${aKind(kind)} id (${PREFIX[kind]}_ and a ULID)`,
  });

export const time = z.iso.datetime({ precision: 3 });
/** A word of the machine: codes, flags, categories. */
export const word = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/, { error: "must be a lower-case word" });
export const label = z.string().min(1).max(64);
export const detail = z.string().max(MAX_DETAIL_CHARS);
/** Forgiving on purpose: what mail really carries, one `@` with something on both sides and no white space. */
export const emailAddress = z.string().max(MAX_ADDRESS_CHARS).regex(/^[^\s@<>]+@[^\s@<>]+$/u, {
  error: "must be a mail address",
});
export const mailAddress = z.strictObject({
  address: emailAddress,
  name: z.string().max(MAX_NAME_CHARS).nullable(),
});
export type MailAddress = z.infer<typeof mailAddress>;

export const direction = z.enum(["inbound", "outbound"]);
export const inboundStatus = z.enum(["received", "quarantined", "released"]);
export const outboundStatus = z.enum([
  "queued",
  "sent",
  "delivered",
  "deferred",
  "bounced",
  "complained",
  "rejected",
  "failed",
  "uncertain",
  "suppressed",
  "canceled",
]);
export type OutboundStatus = z.infer<typeof outboundStatus>;
export const messageStatus = z.enum([...inboundStatus.options, ...outboundStatus.options]);
export type MessageStatus = z.infer<typeof messageStatus>;
export const messageKind = z.enum(["mail", "auto_reply", "bulk", "bounce", "calendar"]);
export type MessageKind = z.infer<typeof messageKind>;

const authResult = z.enum(["pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"]);
export type AuthResult = z.infer<typeof authResult>;
export const trust = z.strictObject({
  verdict: z.enum(["trusted", "unknown", "suspicious", "malicious"]),
  spf: authResult,
  dkim: authResult,
  dmarc: authResult,
});
export type Trust = z.infer<typeof trust>;

export const triage = z.strictObject({
  needs_reply: z.boolean(),
  priority: z.enum(["low", "normal", "high"]),
  category: word.nullable(),
});
export type Triage = z.infer<typeof triage>;

export const quarantineReason = z.enum([
  "spam",
  "malware",
  "dmarc_failed",
  "untrusted_sender",
  "policy",
  "trust_verdict",
]);
export type QuarantineReason = z.infer<typeof quarantineReason>;

export const attachment = z.strictObject({
  id: idOf("attachment"),
  filename: z.string().max(MAX_FILENAME_CHARS).nullable(),
  content_type: z.string().max(127),
  /** Bytes. */
  size: z.int().nonnegative(),
});
export type Attachment = z.infer<typeof attachment>;

export const messageSummary = z.strictObject({
  id: idOf("message"),
  thread_id: idOf("thread"),
  direction,
  status: messageStatus,
  from: mailAddress,
  to: z.array(mailAddress).max(MAX_RECIPIENTS),
  cc: z.array(mailAddress).max(MAX_RECIPIENTS),
  delivered_to: emailAddress.nullable(),
  is_primary_recipient: z.boolean(),
  subject: z.string().max(MAX_SUBJECT_CHARS).nullable(),
  sent_at: time.nullable(),
  received_at: time.nullable(),
  kind: messageKind,
  labels: z.array(label).max(MAX_LABELS),
  in_reply_to: z.string().max(MAX_RFC_ID_CHARS).nullable(),
  flags: z.array(word).max(MAX_LABELS),
});
export type MessageSummary = z.infer<typeof messageSummary>;

export const pauseReason = z.enum(["manual", "abuse_threshold", "tenant_suspended"]);
export type PauseReason = z.infer<typeof pauseReason>;
/** What crossed the abuse threshold: named rates and counts. */
export const abuseMetrics = z.record(word, z.number()).refine((m) => Object.keys(m).length <= 16, {
  error: "must name at most 16 metrics",
});

export const identityShape = z.strictObject({
  id: idOf("identity"),
  tenant_id: idOf("tenant"),
  display_name: z.string().max(MAX_NAME_CHARS),
  description: z.string().max(500).nullable(),
  /** The application's own reference. */
  external_id: z.string().max(128).nullable(),
  status: z.enum(["active", "paused", "deleting"]),
  paused_reason: pauseReason.nullable(),
  primary_address: emailAddress.nullable(),
  created_at: time,
  updated_at: time,
});
export type IdentityShape = z.infer<typeof identityShape>;

export const addressShape = z.strictObject({
  id: idOf("address"),
  address: emailAddress,
  status: z.enum(["pending", "active", "retired"]),
  is_primary: z.boolean(),
  retire_at: time.nullable(),
  created_at: time,
});
export type AddressShape = z.infer<typeof addressShape>;

/** A catalogue entry of owner kind `mailbox` whose example the schema has accepted by the compiler. */
export function mailboxType<const N extends string, S extends z.ZodType>(
  name: N,
  data: S,
  description: string,
  example: z.input<S>,
): EventType & { name: N; data: S; example: z.input<S> } {
  return { name, owner: "mailbox", data, description, example };
}

/**
 * A raw mail (`message/rfc822`) → the parsed message a mailbox receives. Pure but for the parser's promises. What a
 * sender wrote is bounded, cleaned and never trusted for sizes; what cannot be read is a 400 that names the field.
 */
import PostalMime, { type Address, type Email } from "postal-mime";
import { invalidRequest } from "./errors.ts";
import { MAX_BODY_BYTES } from "./limits.ts";
import { authOf, kindOf, quarantineOf } from "./mail_headers.ts";
import {
  type MailAddress,
  MAX_ADDRESS_CHARS,
  MAX_ATTACHMENTS,
  MAX_FILENAME_CHARS,
  MAX_NAME_CHARS,
  MAX_RECIPIENTS,
  MAX_RFC_ID_CHARS,
  MAX_SUBJECT_CHARS,
  type MessageKind,
  type QuarantineReason,
  type Trust,
} from "./payloads/shapes.ts";
import { cleanLine, cleanText, dropStyles } from "./text.ts";

export const MAX_MIME_DEPTH = 50;
export const MAX_HEADER_BYTES = 256 * 1024;
export const MAX_REFERENCES = 20;

/** A message as it comes in, from a raw mail or from JSON. Times in Unix ms. */
export interface ParsedMessage {
  from: MailAddress;
  to: MailAddress[];
  cc: MailAddress[];
  /** Whom the mail server accepted it for, if it said. */
  delivered_to: string | null;
  subject: string | null;
  sent_at: number | null;
  /** The mail's own `Message-ID`, `In-Reply-To` and `References`, angle brackets included. */
  message_id: string | null;
  in_reply_to: string | null;
  references: string[];
  kind: MessageKind;
  trust: Trust;
  quarantine_reason: QuarantineReason | null;
  labels: string[];
  flags: string[];
  text: string;
  attachments: { filename: string | null; content_type: string; size: number }[];
}

/**
 * @param raw the mail's bytes, at most 1 MiB.
 * @throws ApiError 400 with the field in `details.errors`: not a mail, no sender, nested too deep, headers too large,
 * too many attachments.
 */
export async function parseMail(raw: Uint8Array<ArrayBuffer>): Promise<ParsedMessage> {
  if (raw.length === 0) throw refused("body", "is empty");
  if (raw.length > MAX_BODY_BYTES) throw refused("body", `is over ${MAX_BODY_BYTES} bytes`);
  const mail = await readMime(raw);
  if (!mail.headers.some(({ key }) => /^[a-z][a-z0-9-]*$/.test(key))) {
    throw refused("body", "is not a mail: it starts with no header field");
  }
  const from = mail.from && mailboxes([mail.from])[0];
  if (!from) {
    throw refused("from", "the mail names no sender: its From header is missing or holds no address");
  }
  if (mail.attachments.length > MAX_ATTACHMENTS) {
    throw refused("attachments", `the mail has more than ${MAX_ATTACHMENTS} attachments`);
  }
  const header = (name: string) => mail.headers.find(({ key }) => key === name)?.value ?? "";
  const trust = authOf(header("authentication-results"));
  return {
    from,
    // A mailing may name thousands; summaries carry the first hundred.
    to: mailboxes(mail.to ?? []).slice(0, MAX_RECIPIENTS),
    cc: mailboxes(mail.cc ?? []).slice(0, MAX_RECIPIENTS),
    delivered_to: mail.deliveredTo === undefined ? null : cleanAddress(mail.deliveredTo),
    subject: mail.subject === undefined ? null : cleanLine(mail.subject, MAX_SUBJECT_CHARS),
    sent_at: timeOf(mail.date),
    message_id: rfcIds(mail.messageId)[0] ?? null,
    in_reply_to: rfcIds(mail.inReplyTo)[0] ?? null,
    references: rfcIds(mail.references).slice(-MAX_REFERENCES),
    kind: kindOf(header, mail.attachments.map(({ mimeType }) => mimeType)),
    trust,
    quarantine_reason: quarantineOf(header, trust),
    labels: [],
    flags: mail.attachments.length > 0 ? ["has_attachments"] : [],
    text: await textOf(mail),
    attachments: mail.attachments.map((part) => ({
      filename: part.filename === null ? null : cleanLine(part.filename, MAX_FILENAME_CHARS),
      content_type: cleanLine(part.mimeType, 127) || "application/octet-stream",
      size: sizeOf(part.content),
    })),
  };
}

async function readMime(raw: Uint8Array<ArrayBuffer>): Promise<Email> {
  try {
    return await PostalMime.parse(raw, {
      maxNestingDepth: MAX_MIME_DEPTH,
      maxHeadersSize: MAX_HEADER_BYTES,
      maxRfc822NestingDepth: 3,
    });
  } catch {
    // The parser rejects only past its limits. Its message is not passed on: it may quote the mail (P1).
    throw refused(
      "body",
      `cannot be read as MIME: its parts nest deeper than ${MAX_MIME_DEPTH} or its headers are over ${MAX_HEADER_BYTES} bytes`,
    );
  }
}

/** The text of the mail: its plain parts, or its HTML as text when it has none. */
async function textOf(mail: Email): Promise<string> {
  const plain = cleanText(mail.text ?? "");
  return plain !== "" || mail.html === undefined ? plain : await htmlToText(mail.html);
}

/**
 * HTML as plain text. The parser turns HTML into text only where a plain part stands beside it, so it gets one, empty: its
 * converter is linear in time and knows every entity.
 */
export async function htmlToText(html: string): Promise<string> {
  const body = new TextEncoder().encode(dropStyles(html.toWellFormed())).toBase64();
  const mail = await PostalMime.parse(
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n\r\n--b\r\n" +
      "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
      `${body}\r\n--b--\r\n`,
  );
  return cleanText(mail.text ?? "");
}

function mailboxes(addresses: Address[]): MailAddress[] {
  return addresses.flatMap((entry) => entry.group ?? [entry]).flatMap((entry) => {
    const address = cleanAddress(entry.address ?? "");
    return address === null ? [] : [{ address, name: cleanLine(entry.name, MAX_NAME_CHARS) || null }];
  });
}

function cleanAddress(text: string): string | null {
  const address = cleanLine(text, MAX_ADDRESS_CHARS + 1);
  return address.length <= MAX_ADDRESS_CHARS && /^[^\s@<>]+@[^\s@<>]+$/u.test(address) ? address : null;
}

/** The `<…>` ids of a header, in order. */
function rfcIds(text: string | undefined): string[] {
  const ids = (text ?? "").match(/<[^\s<>]{1,510}>/g) ?? [];
  return ids.filter((id) => id.length <= MAX_RFC_ID_CHARS).map((id) => id.toWellFormed());
}

/** A date outside years 1970 to 9999 is no date. */
function timeOf(date: string | undefined): number | null {
  const ms = date === undefined ? NaN : Date.parse(date);
  return ms >= 0 && ms < 253_402_300_800_000 ? ms : null;
}

const sizeOf = (content: ArrayBuffer | Uint8Array | string): number =>
  typeof content === "string" ? content.length : content.byteLength;

const refused = (path: string, message: string) =>
  invalidRequest([{ path, message }], "Send a complete RFC 5322 mail, or the parsed message as JSON.");

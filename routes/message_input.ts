/** The JSON body of `POST /v1/identities/{i}/messages`: a mail that was parsed elsewhere, or one to be sent. */
import * as z from "zod";
import { htmlToText, MAX_REFERENCES, type ParsedMessage } from "../lib/mail.ts";
import {
  direction,
  emailAddress,
  label,
  MAX_ATTACHMENTS,
  MAX_FILENAME_CHARS,
  MAX_LABELS,
  MAX_NAME_CHARS,
  MAX_RECIPIENTS,
  MAX_SUBJECT_CHARS,
  messageKind,
  quarantineReason,
  trust,
  word,
} from "../lib/payloads/shapes.ts";
import { cleanLine, cleanText } from "../lib/text.ts";
import { instant } from "./schemas.ts";
import { idOf } from "./table.ts";

const person = z.strictObject({
  address: emailAddress,
  name: z.string().max(MAX_NAME_CHARS).nullable().default(null),
});
const rfcId = z.string().regex(/^<[^\s<>]{1,510}>$/, "must be a message id in angle brackets");
const people = z.array(person).max(MAX_RECIPIENTS).default([]);

const UNKNOWN = { verdict: "unknown", spf: "none", dkim: "none", dmarc: "none" } as const;
const ONLY: Record<z.infer<typeof direction>, readonly string[]> = {
  inbound: ["trust", "quarantine_reason", "verification", "delivered_to", "sent_at"],
  outbound: ["bcc"],
};

export const messageInput = z.strictObject({
  direction: direction.default("inbound").meta({
    description: "`outbound` registers a message as queued; its outcomes are reported afterwards.",
  }),
  from: person,
  to: people,
  cc: people,
  bcc: z.array(emailAddress).max(MAX_RECIPIENTS).optional(),
  delivered_to: emailAddress.optional(),
  subject: z.string().max(MAX_SUBJECT_CHARS).nullable().default(null),
  text: z.string().optional(),
  html: z.string().optional().meta({ description: "Used when there is no `text`." }),
  sent_at: instant.optional(),
  message_id: rfcId.nullable().default(null),
  in_reply_to: rfcId.nullable().default(null),
  references: z.array(rfcId).max(MAX_REFERENCES).default([]),
  thread_id: idOf("thread").optional(),
  kind: messageKind.default("mail"),
  labels: z.array(label).max(MAX_LABELS).default([]),
  /** One place is left for the flags the mailbox sets itself. */
  flags: z.array(word).max(MAX_LABELS - 2).default([]),
  attachments: z.array(z.strictObject({
    filename: z.string().max(MAX_FILENAME_CHARS).nullable().default(null),
    content_type: z.string().regex(/^[\w.+-]{1,60}\/[\w.+-]{1,60}$/, "must be a media type"),
    size: z.int().nonnegative(),
  })).max(MAX_ATTACHMENTS).default([]),
  trust: trust.optional(),
  quarantine_reason: quarantineReason.optional().meta({
    description: "Holds the mail back. So do a malicious verdict and a failed DMARC check.",
  }),
  verification: z.strictObject({
    kind: z.enum(["code", "link"]),
    sender_domain: z.string().min(1).max(253).regex(/^[^\s@]+$/).optional(),
  }).optional().meta({ description: "The mail carries a code or a link: sends verification.received too." }),
}).superRefine((body, check) => {
  const other = body.direction === "inbound" ? "outbound" : "inbound";
  for (const field of ONLY[other]) {
    if (body[field as keyof typeof body] === undefined) continue;
    check.addIssue({ code: "custom", path: [field], message: `goes with ${other} messages only` });
  }
});
export type MessageInput = z.infer<typeof messageInput>;

/** The body in the shape a raw mail is parsed to. */
export async function parsedOf(body: MessageInput): Promise<ParsedMessage> {
  const named = ({ address, name }: z.infer<typeof person>) => ({
    address,
    name: cleanLine(name ?? "", MAX_NAME_CHARS) || null,
  });
  const flags = new Set(body.flags);
  if (body.attachments.length > 0) flags.add("has_attachments");
  return {
    from: named(body.from),
    to: body.to.map(named),
    cc: body.cc.map(named),
    delivered_to: body.delivered_to ?? null,
    subject: body.subject === null ? null : cleanLine(body.subject, MAX_SUBJECT_CHARS),
    sent_at: body.sent_at ?? null,
    message_id: body.message_id,
    in_reply_to: body.in_reply_to,
    references: body.references,
    kind: body.kind,
    trust: body.trust ?? UNKNOWN,
    quarantine_reason: body.quarantine_reason ?? null,
    labels: [...new Set(body.labels)],
    flags: [...flags],
    text: body.text === undefined && body.html !== undefined
      ? await htmlToText(body.html)
      : cleanText(body.text ?? ""),
    attachments: body.attachments.map(({ filename, ...rest }) => ({
      filename: filename === null ? null : cleanLine(filename, MAX_FILENAME_CHARS),
      ...rest,
    })),
  };
}

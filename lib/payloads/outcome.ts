/**
 * Payloads of what became of an outbound message (reference §5): `message.sent` to `message.canceled`. What a provider
 * answered is bounded; the message's own text never appears.
 */
import * as z from "zod";
import { EXAMPLE, exampleOutbound } from "./examples.ts";
import { detail, emailAddress, idOf, mailboxType, MAX_RECIPIENTS, messageSummary, word } from "./shapes.ts";

const message_id = idOf("message");
const recipient = emailAddress;
export const smtpCode = z.int().min(200).max(599).nullable();
export const smtpResponse = detail.nullable();
const MARTA = exampleOutbound.to[0]!.address;
const OF = { message_id: EXAMPLE.outbound };
const TO = { ...OF, recipient: MARTA };

export const messageSent = mailboxType(
  "message.sent",
  z.strictObject({
    message: messageSummary,
    provider: word,
    provider_message_id: z.string().max(256).nullable(),
    sent_via_fallback: z.boolean(),
  }),
  "A provider accepted the message for sending.",
  {
    message: exampleOutbound,
    provider: "northrelay",
    provider_message_id: "nr-7f3a91c2",
    sent_via_fallback: false,
  },
);

export const messageDelivered = mailboxType(
  "message.delivered",
  z.strictObject({ message_id, recipient, smtp_code: smtpCode }),
  "A recipient's mail server took the message.",
  { ...TO, smtp_code: 250 },
);

export const messageDeferred = mailboxType(
  "message.deferred",
  z.strictObject({ message_id, recipient, smtp_code: smtpCode, smtp_response: smtpResponse }),
  "A recipient's mail server asked to try later; the provider goes on trying.",
  { ...TO, smtp_code: 451, smtp_response: "4.7.1 Greylisted, try again later" },
);

export const messageBounced = mailboxType(
  "message.bounced",
  z.strictObject({
    message_id,
    recipient,
    bounce_type: z.enum(["hard", "soft"]),
    smtp_code: smtpCode,
    smtp_response: smtpResponse,
    suppressed: z.boolean(),
  }),
  "A recipient's mail server refused the message for good. A hard bounce suppresses the address.",
  {
    ...TO,
    bounce_type: "hard",
    smtp_code: 550,
    smtp_response: "5.1.1 No such mailbox",
    suppressed: true,
  },
);

export const messageComplained = mailboxType(
  "message.complained",
  z.strictObject({ message_id, recipient, suppressed: z.literal(true) }),
  "A recipient reported the message as spam. The address is suppressed.",
  { ...TO, suppressed: true },
);

export const messageRejected = mailboxType(
  "message.rejected",
  z.strictObject({ message_id, reason: word, detail: detail.nullable() }),
  "The provider refused to take the message.",
  { ...OF, reason: "attachment_type", detail: "Executable attachments are not accepted" },
);

export const messageFailed = mailboxType(
  "message.failed",
  z.strictObject({ message_id, reason: word }),
  "The message could not be sent by any provider.",
  { ...OF, reason: "providers_unavailable" },
);

export const messageUncertain = mailboxType(
  "message.uncertain",
  z.strictObject({ message_id, reason: word, fix: detail }),
  "It is not known whether the provider took the message. It is not sent again until it is reconciled.",
  {
    ...OF,
    reason: "timeout_after_data",
    fix: "Look the message up at the provider and report it as reconciled.",
  },
);

export const messageReconciled = mailboxType(
  "message.reconciled",
  z.strictObject({ message_id, status: z.enum(["sent", "failed"]) }),
  "What became of an uncertain message is known now.",
  { ...OF, status: "sent" },
);

export const messageSuppressed = mailboxType(
  "message.suppressed",
  z.strictObject({ message_id, recipients: z.array(recipient).min(1).max(MAX_RECIPIENTS) }),
  "Recipients were left out because their addresses are suppressed.",
  { ...OF, recipients: [MARTA] },
);

export const messageCanceled = mailboxType(
  "message.canceled",
  z.strictObject({ message_id }),
  "The message was canceled before it was sent.",
  OF,
);

export const outcomeTypes = [
  messageSent,
  messageDelivered,
  messageDeferred,
  messageBounced,
  messageComplained,
  messageRejected,
  messageFailed,
  messageUncertain,
  messageReconciled,
  messageSuppressed,
  messageCanceled,
];

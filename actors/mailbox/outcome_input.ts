/** What `POST …/outcomes` takes: one of eleven outcomes, each with the fields its event needs. */
import * as z from "zod";
import { smtpCode, smtpResponse } from "../../lib/payloads/outcome.ts";
import { detail, emailAddress, MAX_RECIPIENTS, word } from "../../lib/payloads/shapes.ts";

const recipient = emailAddress;
const smtp_code = smtpCode.default(null);
const smtp_response = smtpResponse.default(null);

export const outcomeInput = z.discriminatedUnion("outcome", [
  z.strictObject({
    outcome: z.literal("sent"),
    provider: word,
    provider_message_id: z.string().max(256).nullable().default(null),
    sent_via_fallback: z.boolean().default(false),
  }),
  z.strictObject({ outcome: z.literal("delivered"), recipient, smtp_code }),
  z.strictObject({ outcome: z.literal("deferred"), recipient, smtp_code, smtp_response }),
  z.strictObject({
    outcome: z.literal("bounced"),
    recipient,
    bounce_type: z.enum(["hard", "soft"]),
    smtp_code,
    smtp_response,
  }),
  z.strictObject({ outcome: z.literal("complained"), recipient }),
  z.strictObject({ outcome: z.literal("rejected"), reason: word, detail: detail.nullable().default(null) }),
  z.strictObject({ outcome: z.literal("failed"), reason: word }),
  z.strictObject({ outcome: z.literal("uncertain"), reason: word, fix: detail.optional() }),
  z.strictObject({ outcome: z.literal("reconciled"), status: z.enum(["sent", "failed"]) }),
  z.strictObject({
    outcome: z.literal("suppressed"),
    recipients: z.array(recipient).min(1).max(MAX_RECIPIENTS),
  }),
  z.strictObject({ outcome: z.literal("canceled") }),
]);
export type Outcome = z.infer<typeof outcomeInput>;

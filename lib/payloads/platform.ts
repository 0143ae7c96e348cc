/** Platform events (reference §5): no owner object, `sequence` null. */
import * as z from "zod";
import type { EventType } from "../catalogue.ts";

const ulid = "[0-7][0-9A-HJKMNP-TV-Z]{25}";
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_${ulid}$`));
const time = z.iso.datetime({ precision: 3 });
const name = z.string().min(1).max(128);

export const webhookDisabledReason = z.enum(["gone", "failing"]);

const WEBHOOK = "whk_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y";
const USER = "usr_01JD8T4Y0Z3M5Q7R9S1V2W4X70";

const type = (
  name: string,
  data: Record<string, z.ZodType>,
  example: unknown,
  description: string,
): EventType => ({ name, owner: "platform", data: z.strictObject(data), example, description });

export const platformTypes: readonly EventType[] = [
  type(
    "webhook.disabled",
    { webhook_id: id("whk"), reason: webhookDisabledReason },
    { webhook_id: WEBHOOK, reason: "gone" },
    "An endpoint was disabled because it answered 410 or kept failing. Never sent to the endpoint itself.",
  ),
  type(
    "webhook.test",
    { message: z.literal("hello") },
    { message: "hello" },
    "One attempt on request; never retried, fanned out or replayed.",
  ),
  type(
    "member.invited",
    { invitation_id: name, email_hint: name, role: name },
    { invitation_id: "inv_01JD8T4Y0Z3M5Q7R9S1V2W4X71", email_hint: "a***@acme.dev", role: "admin" },
    "A person was invited.",
  ),
  type(
    "member.joined",
    { user_id: id("usr"), role: name },
    { user_id: USER, role: "admin" },
    "A person accepted an invitation.",
  ),
  type(
    "member.role_changed",
    { user_id: id("usr"), from: name, to: name },
    { user_id: USER, from: "member", to: "admin" },
    "A member's role changed.",
  ),
  type("member.removed", { user_id: id("usr") }, { user_id: USER }, "A member was removed."),
  type(
    "billing.plan_changed",
    { from_plan: name, to_plan: name, reason: name },
    { from_plan: "free", to_plan: "team", reason: "upgrade" },
    "The tenant's plan changed.",
  ),
  type(
    "billing.payment_failed",
    { grace_until: time },
    { grace_until: "2026-10-15T00:00:00.000Z" },
    "A payment failed; service goes on until the grace period ends.",
  ),
  type(
    "billing.limit_reached",
    { feature: name, granted: z.number(), resets_at: time.nullable() },
    { feature: "messages_per_month", granted: 10000, resets_at: "2026-11-01T00:00:00.000Z" },
    "A plan's limit was reached.",
  ),
  type(
    "tenant.policy_updated",
    {
      fields: z.array(name).min(1),
      by: z.enum(["key", "user", "platform"]),
      actor_key_id: id("key").nullable(),
      actor_user_id: id("usr").nullable(),
      policy_version: z.int().positive(),
    },
    {
      fields: ["retention.events_days"],
      by: "key",
      actor_key_id: "key_01JD8T4Y0Z3M5Q7R9S1V2W4X72",
      actor_user_id: null,
      policy_version: 2,
    },
    "A tenant's policy changed.",
  ),
];

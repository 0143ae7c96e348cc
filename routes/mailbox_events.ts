/** Suppressions, and events whose cause lies outside the mailbox (reference §3, "Owner routes"). */
import * as z from "zod";
import { invariant } from "../lib/errors.ts";
import { membersOf } from "../lib/json.ts";
import { emailAddress } from "../lib/payloads/shapes.ts";
import { suppressionReason } from "../lib/payloads/suppression.ts";
import { emitEvent, emittable } from "../actors/mailbox/emit_event.ts";
import { createSuppression } from "../actors/mailbox/suppressions.ts";
import { answer, withEvent } from "./owner_answer.ts";
import { eventCaused, showEventOrNull } from "./owners.ts";
import { instantShown, iso } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const common = {
  method: "POST",
  permission: "events:write",
  scope: { by: "owner", param: "identity_id", thing: "identity" },
  params: { identity_id: idOf("identity") },
} as const;

const suppressionShown = z.object({
  address_hint: z.string(),
  reason: suppressionReason,
  source_message_id: idOf("message").nullable(),
  created_at: instantShown,
});

/** One emission: its `data` by the schema of its type. */
const emissionOf = <const N extends string, D extends z.ZodType>(type: { name: N; data: D }) =>
  z.strictObject({ type: z.literal(type.name), data: type.data, event_id: idOf("event").optional() });
const [created, rotated, revoked, quota, verification] = emittable;
const emission = z.discriminatedUnion("type", [
  emissionOf(created),
  emissionOf(rotated),
  emissionOf(revoked),
  emissionOf(quota),
  emissionOf(verification),
]);

export const mailboxEventRoutes: Route[] = [
  route({
    ...common,
    path: "/v1/identities/{identity_id}/suppressions",
    summary: "Suppress an address. Sends suppression.created under a derived id: twice is one event.",
    body: z.strictObject({
      address: emailAddress,
      reason: suppressionReason.default("manual"),
      source_message_id: idOf("message").nullable().default(null),
    }),
    response: withEvent("suppression", suppressionShown),
    status: 201,
    handler: async ({ owner, body, services }) => {
      const { owners, config } = services;
      const result = await owners.run(owner, (tx) => createSuppression(tx, config.hashKey, body));
      const { created_at, ...row } = result.state;
      return {
        status: result.event?.duplicate ? 200 : 201,
        body: answer("suppression", { ...result, state: { ...row, created_at: iso(created_at) } }),
      };
    },
  }),
  route({
    ...common,
    path: "/v1/identities/{identity_id}/events",
    summary: "Emit an event of the identity: key changes, quota warnings, verifications seen elsewhere. " +
      "A change that changes nothing sends nothing.",
    body: emission,
    response: z.object({ emitted: z.boolean(), event: eventCaused.nullable() }),
    status: 201,
    handler: async ({ owner, body, json, services }) => {
      invariant(json !== null, "O3");
      const wire = membersOf(json)?.get("data"); // goes out as the producer wrote it
      const result = await services.owners.run(owner, (tx) => emitEvent(tx, { ...body, wire }));
      return {
        status: result.state.emitted ? 201 : 200,
        body: { ...result.state, event: showEventOrNull(result.event) },
      };
    },
  }),
];

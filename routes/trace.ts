/** `GET /v1/events/{event_id}/trace`: what became of an event at every endpoint the key reaches, and what comes next. */
import * as z from "zod";
import { notFound } from "../lib/errors.ts";
import type { EventId } from "../lib/ids.ts";
import { attemptError, type KeyRow, keys, type TenantRow } from "../lib/keys.ts";
import { reachesEndpoint, reachesEvent } from "../lib/reach.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { scopeOfEndpoint } from "../actors/endpoints.ts";
import { loadEvents, type StoredEvent } from "../actors/event_store.ts";
import { keysOfIds } from "../actors/replay.ts";
import type { EndpointTrace } from "../actors/trace.ts";
import { deliveryShown, showDelivery } from "./deliveries.ts";
import { instantShown, iso, isoOrNull } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const STATES = [
  "not_matched",
  "waiting_for_fan_out",
  "queued",
  "in_flight",
  "retrying",
  "held",
  "succeeded",
  "dead",
  "dead_lettered",
  "forgotten",
  "unknown",
] as const satisfies readonly EndpointTrace["state"][];

const RULES = [
  "deleted",
  "disabled",
  "test_events_are_never_fanned_out",
  "other_scope",
  "about_itself",
  "event_type",
  "identity_filter",
  "created_after_event",
  "changed_since",
] as const satisfies readonly EndpointTrace["rule"][];

const endpointTraced = z.object({
  webhook_id: idOf("endpoint"),
  scope: z.enum(["tenant", "partner", "platform"]),
  matched: z.boolean(),
  rule: z.enum(RULES).nullable().meta({ description: "The rule that says no." }),
  state: z.enum(STATES),
  attempts: z.array(deliveryShown),
  next: z.object({
    attempt: z.int(),
    at: instantShown.nullable().meta({
      description: "Null: with the partner's reactivation, or at any moment.",
    }),
    error: attemptError.nullable().meta({ description: "As things stand it ends dead with this." }),
  }).nullable(),
  replayable_until: instantShown.nullable(),
});

const traced = z.object({
  event: z.object({
    id: idOf("event"),
    type: z.string(),
    tenant_id: idOf("tenant").nullable(),
    identity_id: idOf("identity").nullable(),
    sequence: z.int().nullable(),
    occurred_at: instantShown,
    erased: z.boolean(),
  }),
  endpoints: z.array(endpointTraced),
});

const showTrace = ({ endpoint, rule, state, attempts, next, replayableUntil }: EndpointTrace) => ({
  webhook_id: endpoint.id,
  scope: scopeOfEndpoint(endpoint).level,
  matched: state !== "not_matched",
  rule,
  state,
  attempts: attempts.map((row) => showDelivery(endpoint.id, row)),
  next: next === null ? null : { attempt: next.attempt, at: isoOrNull(next.at), error: next.error },
  replayable_until: isoOrNull(replayableUntil),
});

/** As `GET /v1/events/{event_id}` finds it, but with its payload erased, too. */
async function findEvent(kv: Kv, id: EventId, key: KeyRow): Promise<StoredEvent> {
  const reached = await loadEvents(kv, await keysOfIds(kv, [id]), (row) => reachesEvent(key, row));
  for (const event of reached.values()) if (event.id === id) return event;
  throw notFound("event");
}

export const traceRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/events/{event_id}/trace",
    permission: "events:read",
    scope: { by: "event", param: "event_id" },
    summary:
      "Explain an event: which endpoints receive it and why others do not, its attempts, what comes next.",
    params: { event_id: idOf("event") },
    response: traced,
    status: 200,
    handler: async ({ params, key, services }) => {
      const event = await findEvent(services.kv, params.event_id, key);
      const tenant = event.tenant === null
        ? null
        : (await services.kv.get<TenantRow>(keys.tenant(event.tenant))).value;
      const endpoints = await services.deliveries.trace(event, (row) => reachesEndpoint(key, row, tenant));
      return {
        body: {
          event: {
            id: event.id,
            type: event.type,
            tenant_id: event.tenant,
            identity_id: event.identity,
            sequence: event.seq,
            occurred_at: iso(event.at),
            erased: event.body === null,
          },
          endpoints: endpoints.map(showTrace),
        },
      };
    },
  }),
];

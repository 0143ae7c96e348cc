/** Custom owners: an application appends its own events under its own keys (reference §3, "Owner routes"). */
import * as z from "zod";
import { invalidRequest } from "../lib/errors.ts";
import { elementsOf, type JsonText, membersOf } from "../lib/json.ts";
import { MAX_BATCH_EVENTS } from "../lib/limits.ts";
import type { Appended } from "../actors/owner.ts";
import { appendCustom, appendCustomBatch, type CustomEvent, customOwner } from "../actors/custom_owner.ts";
import type { Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

/** The event a command caused, as every owner route answers it. */
export const eventCaused = z.object({ id: idOf("event"), type: z.string(), sequence: z.int() });
export const showEvent = ({ id, type, sequence }: Pick<Appended, "id" | "type" | "sequence">) => ({
  id,
  type,
  sequence,
});
export const showEventOrNull = (event: Appended | null) => event === null ? null : showEvent(event);

/** How long an owner's key may be is judged in bytes, by the actor. */
const ownerKey = z.string().min(1).max(256);

const newEvent = z.strictObject({
  type: z.string().min(1).max(128),
  data: z.unknown().meta({ description: "What the type's schema accepts. Sent on exactly as written." }),
  event_id: idOf("event").optional().meta({
    description:
      "A deterministic id. Seen before by this owner, nothing is appended and the first event is answered.",
  }),
});

const ownerShown = z.object({ tenant_id: idOf("tenant"), key: z.string(), sequence: z.int() });
const appended = { event: eventCaused, duplicate: z.boolean() };

const params = { tenant_id: idOf("tenant"), key: ownerKey };
const scope = { by: "tenant", param: "tenant_id" } as const;
const depsOf = (services: Services) => ({ owners: services.owners, types: services.eventTypes });

export const ownerRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/owners/{key}/events",
    permission: "events:write",
    scope,
    summary: "Append an event of a registered type to an owner of your own.",
    tag: "owners",
    params,
    body: newEvent,
    response: z.object({ owner: ownerShown, ...appended }),
    status: 201,
    handler: async ({ params, body, json, services, tenant }) => {
      const owner = customOwner(tenant.id, params.key);
      const event = await appendCustom(depsOf(services), owner, asWritten(body, json!, ""));
      return {
        status: event.duplicate ? 200 : 201,
        body: { owner: shown(params, [event]), event: showEvent(event), duplicate: event.duplicate },
      };
    },
  }),
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/owners/{key}/events/batch",
    permission: "events:write",
    scope,
    summary: `Append up to ${MAX_BATCH_EVENTS} events in one commit, in order: all or none.`,
    tag: "owners",
    params,
    body: z.strictObject({ events: z.array(newEvent).min(1).max(MAX_BATCH_EVENTS) }),
    response: z.object({ owner: ownerShown, data: z.array(z.object(appended)) }),
    status: 201,
    handler: async ({ params, body, json, services, tenant }) => {
      const owner = customOwner(tenant.id, params.key);
      const written = elementsOf(membersOf(json!)!.get("events")!)!;
      const events = body.events.map((event, i) => asWritten(event, written[i]!, `events.${i}.`));
      const all = await appendCustomBatch(depsOf(services), owner, events);
      return {
        body: {
          owner: shown(params, all),
          data: all.map((event) => ({ event: showEvent(event), duplicate: event.duplicate })),
        },
      };
    },
  }),
];

/** The event with its data as the producer's own text. @param path prefix of the error paths. */
function asWritten(event: z.output<typeof newEvent>, json: JsonText, path: string): CustomEvent {
  const data = membersOf(json)?.get("data");
  if (data === undefined) throw invalidRequest([{ path: `${path}data`, message: "is required" }]);
  return { type: event.type, data, event_id: event.event_id };
}

function shown(params: { tenant_id: string; key: string }, events: Appended[]) {
  const sequence = Math.max(...events.map((event) => event.sequence));
  return { tenant_id: params.tenant_id, key: params.key, sequence };
}

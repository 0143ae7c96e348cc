/** Events as they went out, and a tenant's index of them (reference §3). */
import * as z from "zod";
import { notFound } from "../lib/errors.ts";
import { eventRowOf, type StoredRow } from "../lib/event_row.ts";
import { type EventId, type EventKey, type TenantId, ulidFloor } from "../lib/ids.ts";
import { type EventIndexRow, type KeyRow, keys } from "../lib/keys.ts";
import { MAX_OWNER_KEY_BYTES } from "../lib/limits.ts";
import { reachesEvent } from "../lib/reach.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { newestOf } from "../actors/event_index.ts";
import { getAll, loadEvents, type StoredEvent } from "../actors/event_store.ts";
import { keysOfIds } from "../actors/replay.ts";
import { page } from "./cursor.ts";
import { instant, instantShown, iso, listOf, listQuery } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const envelope = z.object({
  id: idOf("event"),
  type: z.string(),
  api_version: z.string(),
  occurred_at: instantShown,
  tenant_id: idOf("tenant").nullable(),
  identity_id: idOf("identity").nullable(),
  sequence: z.int().nullable(),
  data: z.unknown(),
});

const eventShown = z.object({
  id: idOf("event"),
  type: z.string(),
  tenant_id: idOf("tenant").nullable(),
  identity_id: idOf("identity").nullable(),
  owner_kind: z.enum(["mailbox", "domain", "job", "custom", "platform"]),
  owner_id: z.string(),
  sequence: z.int().nullable(),
  occurred_at: instantShown,
  erased: z.boolean().meta({
    description: "The payload is gone; the event can no longer be read or replayed.",
  }),
});

const showEvent = (key: EventKey, row: StoredRow) => ({
  id: row.id ?? `evt_${key}`,
  type: row.type,
  tenant_id: row.tenant,
  identity_id: row.identity,
  owner_kind: row.kind,
  owner_id: row.owner,
  sequence: row.seq,
  occurred_at: iso(row.at),
  erased: row.erased,
});

/** A deterministic id may name an event of several owners: the first within reach. */
async function findEvent(kv: Kv, id: EventId, key: KeyRow): Promise<StoredEvent> {
  const reached = await loadEvents(kv, await keysOfIds(kv, [id]), (row) => reachesEvent(key, row));
  for (const event of reached.values()) if (event.id === id && event.body !== null) return event;
  throw notFound("event");
}

export const eventRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/events/{event_id}",
    permission: "events:read",
    scope: { by: "event", param: "event_id" },
    summary: "Read an event's envelope: the very bytes that are signed and sent.",
    params: { event_id: idOf("event") },
    response: envelope,
    status: 200,
    handler: async ({ params, key, services }) => ({
      bytes: (await findEvent(services.kv, params.event_id, key)).body!,
    }),
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/events",
    permission: "events:read",
    scope: { by: "tenant", param: "tenant_id", identityKeys: true },
    summary: "List a tenant's events, newest first. An identity-level key sees its identity's alone.",
    params: { tenant_id: idOf("tenant") },
    query: {
      ...listQuery,
      type: z.string().min(1).max(128).optional(),
      identity_id: idOf("identity").optional(),
      owner_id: z.string().min(1).max(MAX_OWNER_KEY_BYTES).optional(),
      since: instant.optional(),
      until: instant.optional(),
    },
    response: listOf(eventShown),
    status: 200,
    handler: async (ctx) => {
      const { query, key, services } = ctx;
      const tenant: TenantId = ctx.tenant.id;
      const fits = (row: EventIndexRow) =>
        (query.type === undefined || row.type === query.type) &&
        (query.identity_id === undefined || row.identity === query.identity_id) &&
        (query.owner_id === undefined || row.owner === query.owner_id) &&
        (key.level !== "identity" || row.identity === key.identity_id);
      return {
        body: await page<EventIndexRow>(ctx, {
          scan: (bounds) => newestOf(services.kv, tenant, bounds),
          // An event's key carries its occurred_at, so the bounds are exact.
          from: query.since === undefined ? undefined : ulidFloor(query.since),
          to: query.until === undefined ? undefined : ulidFloor(query.until),
          show: async (rows) => {
            const wanted = rows.filter(({ value }) => fits(value)).map(({ id }) => id as EventKey);
            const found = await getAll(services.kv, wanted.map(keys.event));
            const byKey = new Map<string, StoredRow | null>(
              wanted.map((id, i) => [id, eventRowOf(id, found[i]!.value)]),
            );
            return rows.map(({ id }) => {
              const row = byKey.get(id) ?? null; // pruned since, or refused by a filter
              return row === null ? null : showEvent(id as EventKey, row);
            });
          },
        }),
      };
    },
  }),
];

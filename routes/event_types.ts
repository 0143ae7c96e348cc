/** The event types a tenant registers for its custom owners (reference §3, §5). */
import * as z from "zod";
import { notFound } from "../lib/errors.ts";
import { MAX_TYPE_NAME_CHARS } from "../lib/custom_types.ts";
import { type EventTypeRow, keys } from "../lib/keys.ts";
import { auditWrites } from "../actors/audit.ts";
import { page } from "./cursor.ts";
import { instantShown, iso, listOf, listQuery } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const name = z.string().min(1).max(MAX_TYPE_NAME_CHARS);
const description = z.string().max(1_000);
const schema = z.union([z.record(z.string(), z.unknown()), z.boolean()]).meta({
  description: "JSON Schema 2020-12. A keyword that is not supported is refused, never ignored.",
});

const typeShown = z.object({
  name,
  description,
  schema,
  example: z.unknown(),
  created_at: instantShown,
  updated_at: instantShown,
});

const showType = (row: EventTypeRow) => ({
  name: row.name,
  description: row.description,
  schema: row.schema,
  example: row.example,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
});

const params = { tenant_id: idOf("tenant"), name };

export const eventTypeRoutes: Route[] = [
  route({
    method: "PUT",
    path: "/v1/tenants/{tenant_id}/event-types/{name}",
    permission: "events:write",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Register or replace an event type. Its example must satisfy its schema.",
    tag: "event-types",
    params,
    body: z.strictObject({ schema, example: z.unknown(), description: description.default("") }),
    response: typeShown,
    status: 200,
    handler: async ({ params, body, key, services, tenant }) => {
      const definition = { ...body, name: params.name, example: body.example ?? null };
      const entry = { action: "event_type.put", by: key, tenant: tenant.id, partner: tenant.partner_id };
      const audit = auditWrites(services, { ...entry, subject: params.name });
      const { row, created } = await services.eventTypes.put(tenant.id, definition, audit);
      return { status: created ? 201 : 200, body: showType(row) };
    },
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/event-types/{name}",
    permission: "events:read",
    scope: { by: "tenant", param: "tenant_id", identityKeys: true },
    summary: "Read an event type of the tenant's own.",
    tag: "event-types",
    params,
    response: typeShown,
    status: 200,
    handler: async ({ params, services, tenant }) => {
      const row = await services.eventTypes.get(tenant.id, params.name);
      if (row === null) throw notFound("event_type");
      return { body: showType(row) };
    },
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/event-types",
    permission: "events:read",
    scope: { by: "tenant", param: "tenant_id", identityKeys: true },
    summary: "List the tenant's own event types, by name from the last.",
    tag: "event-types",
    params: { tenant_id: idOf("tenant") },
    query: listQuery,
    response: listOf(typeShown),
    status: 200,
    handler: async (ctx) => ({
      body: await page<EventTypeRow>(ctx, {
        prefix: keys.eventTypes(ctx.tenant.id),
        at: (name) => keys.eventType(ctx.tenant.id, name),
        show: (rows) => rows.map(({ value }) => showType(value)),
      }),
    }),
  }),
];

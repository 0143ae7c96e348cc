/** Tenants: the rows of `/v1/tenants` (reference §3). */
import * as z from "zod";
import { keys, type TenantRow } from "../lib/keys.ts";
import { DAY_MS, REPLAY_WINDOW_MS, TEXT_BYTES_MAX } from "../lib/limits.ts";
import { scopeOf } from "../lib/reach.ts";
import { getAll } from "../actors/event_store.ts";
import { createTenant, updateTenant } from "../actors/tenancy.ts";
import { page } from "./cursor.ts";
import { instantShown, iso, listOf, listQuery, text } from "./schemas.ts";
import { scopeDenied } from "./scope.ts";
import { idOf, type Route, route } from "./table.ts";

/** Payloads outlive the replay window at most by what an operator may want to look at. */
const MAX_EVENTS_DAYS = 12 * REPLAY_WINDOW_MS / DAY_MS;

const policyPatch = z.strictObject({
  webhook_text_bytes: z.int().min(0).max(TEXT_BYTES_MAX).optional(),
  retention: z.strictObject({ events_days: z.int().min(1).max(MAX_EVENTS_DAYS).optional() }).optional(),
});

const slug = z.string().regex(
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
  "must be 1 to 63 lower-case letters, digits or inner hyphens",
);

export const tenantShown = z.object({
  id: idOf("tenant"),
  partner_id: idOf("partner").nullable(),
  slug,
  name: z.string(),
  policy: z.object({
    webhook_text_bytes: z.int(),
    retention: z.object({ events_days: z.int() }),
  }),
  created_at: instantShown,
  updated_at: instantShown,
});

export const showTenant = (row: TenantRow) => ({
  id: row.id,
  partner_id: row.partner_id,
  slug: row.slug,
  name: row.name,
  policy: row.policy,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
});

export const tenantRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/tenants",
    permission: "tenants:manage",
    scope: { by: "caller" },
    summary: "Create a tenant. A partner key's tenants belong to its partner for ever.",
    body: z.strictObject({ slug, name: text(200), policy: policyPatch.optional() }),
    response: tenantShown,
    status: 201,
    handler: async ({ body, key, services }) => {
      if (key.level !== "platform" && key.level !== "partner") {
        throw scopeDenied("it needs a platform or partner key");
      }
      const row = await createTenant(services, { ...body, partner: key.partner_id }, key);
      return { body: showTenant(row) };
    },
  }),
  route({
    method: "GET",
    path: "/v1/tenants",
    permission: "tenants:manage",
    scope: { by: "caller" },
    summary: "List the tenants within the key's reach, newest first.",
    query: listQuery,
    response: listOf(tenantShown),
    status: 200,
    handler: async (ctx) => {
      const { kv } = ctx.services, scope = scopeOf(ctx.key);
      if (scope.level === "tenant") throw scopeDenied("it needs a platform or partner key");
      if (scope.level === "platform") {
        const source = { prefix: keys.tenants(), at: (id: string) => keys.tenant(id as TenantRow["id"]) };
        const show = (rows: { value: TenantRow }[]) => rows.map(({ value }) => showTenant(value));
        return { body: await page<TenantRow>(ctx, { ...source, show }) };
      }
      const { partner } = scope;
      return {
        body: await page<true>(ctx, {
          prefix: keys.tenantsOfPartner(partner),
          at: (id) => keys.tenantOfPartner(partner, id as TenantRow["id"]),
          show: async (rows) => {
            const found = await getAll<TenantRow>(
              kv,
              rows.map(({ id }) => keys.tenant(id as TenantRow["id"])),
            );
            return found.map(({ value }) => value === null ? null : showTenant(value));
          },
        }),
      };
    },
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}",
    permission: "tenants:manage",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Read a tenant.",
    params: { tenant_id: idOf("tenant") },
    response: tenantShown,
    status: 200,
    handler: ({ tenant }) => ({ body: showTenant(tenant) }),
  }),
  route({
    method: "PATCH",
    path: "/v1/tenants/{tenant_id}",
    permission: "tenants:manage",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Change a tenant's name or policy. A changed policy sends tenant.policy_updated.",
    params: { tenant_id: idOf("tenant") },
    body: z.strictObject({ name: text(200).optional(), policy: policyPatch.optional() }),
    response: tenantShown,
    status: 200,
    handler: async ({ params, body, key, services }) => {
      const row = await updateTenant(services, params.tenant_id, body, key);
      services.poke();
      return { body: showTenant(row) };
    },
  }),
];

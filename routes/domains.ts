/** Domains: the rows of the domain state machine (reference §3, §5). */
import * as z from "zod";
import { checkResult, type DomainRow } from "../lib/domain_states.ts";
import { keys, type OwnerRef } from "../lib/keys.ts";
import { domainIssue, domainState, removeReason, suspendReason } from "../lib/payloads/domain.ts";
import { getAll } from "../actors/event_store.ts";
import {
  addDomain,
  checkDomain,
  type DomainChange,
  readDomain,
  removeDomain,
} from "../actors/domain_monitor.ts";
import { page } from "./cursor.ts";
import { eventCaused, showEventOrNull } from "./owners.ts";
import { instantShown, iso, isoOrNull, listOf, listQuery } from "./schemas.ts";
import { scopeDenied } from "./scope.ts";
import { idOf, type Route, route } from "./table.ts";

const MAX_ISSUES = 50;

const domainShown = z.object({
  id: idOf("domain"),
  tenant_id: idOf("tenant"),
  name: z.string(),
  state: domainState,
  state_since: instantShown,
  issues: z.array(domainIssue),
  fallback_active: z.boolean(),
  suspended_reason: suspendReason.nullable(),
  removed_reason: removeReason.nullable(),
  created_at: instantShown,
  verified_at: instantShown.nullable(),
});
const changed = z.object({ domain: domainShown, event: eventCaused.nullable() });

const showDomain = (tenant: string, row: DomainRow) => ({
  id: row.id,
  tenant_id: tenant,
  name: row.name,
  state: row.state,
  state_since: iso(row.since),
  issues: row.issues,
  fallback_active: row.fallback_active,
  suspended_reason: row.suspended_reason,
  removed_reason: row.removed_reason,
  created_at: iso(row.created_at),
  verified_at: isoOrNull(row.verified_at),
});
const showChange = (tenant: string, { row, event }: DomainChange) => ({
  domain: showDomain(tenant, row),
  event: showEventOrNull(event),
});

const params = { domain_id: idOf("domain") };
const scope = { by: "owner", param: "domain_id", thing: "domain" } as const;

export const domainRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/domains",
    permission: "events:write",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Add a domain; it is pending until its checks pass.",
    tag: "domains",
    params: { tenant_id: idOf("tenant") },
    body: z.strictObject({ name: z.string().min(1).max(253) }),
    response: changed,
    status: 201,
    handler: async ({ body, services, tenant }) => ({
      body: showChange(tenant.id, await addDomain(services, tenant.id, body.name)),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/domains",
    permission: "events:read",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "List a tenant's domains, newest first, removed ones included.",
    tag: "domains",
    params: { tenant_id: idOf("tenant") },
    query: listQuery,
    response: listOf(domainShown),
    status: 200,
    handler: async (ctx) => {
      const tenant = ctx.tenant.id;
      const owner = (id: string): OwnerRef => ({ kind: "domain", tenant, id });
      return {
        body: await page(ctx, {
          prefix: keys.ownersOfTenant(tenant, "domain"),
          at: (id) => keys.ownerOfTenant(owner(id)),
          show: async (rows) => {
            const wanted = rows.map(({ id }) => keys.ownerState(owner(id), "domain"));
            const found = await getAll<DomainRow>(ctx.services.kv, wanted);
            return found.map(({ value }) => value === null ? null : showDomain(tenant, value));
          },
        }),
      };
    },
  }),
  route({
    method: "GET",
    path: "/v1/domains/{domain_id}",
    permission: "events:read",
    scope,
    summary: "Read a domain.",
    params,
    response: domainShown,
    status: 200,
    handler: async ({ owner, services }) => ({
      body: showDomain(owner.tenant, await readDomain(services.kv, owner)),
    }),
  }),
  route({
    method: "POST",
    path: "/v1/domains/{domain_id}/checks",
    permission: "events:write",
    scope,
    summary: "Report what a check of the domain found; the state follows.",
    params,
    body: z.strictObject({
      result: checkResult,
      issues: z.array(domainIssue).max(MAX_ISSUES).optional(),
      fallback_active: z.boolean().optional(),
    }),
    response: changed,
    status: 200,
    handler: async ({ body, owner, services }) => ({
      body: showChange(owner.tenant, await checkDomain(services, owner, body)),
    }),
  }),
  route({
    method: "DELETE",
    path: "/v1/domains/{domain_id}",
    permission: "events:write",
    scope,
    summary: "Remove a domain and free its name. Only a platform key may say it was evicted.",
    params,
    query: { reason: z.enum(["requested", "evicted"]).optional() },
    response: changed,
    status: 200,
    handler: async ({ query, key, owner, services }) => {
      const reason = query.reason ?? "requested";
      if (reason === "evicted" && key.level !== "platform") {
        throw scopeDenied("eviction needs a platform-level key");
      }
      return { body: showChange(owner.tenant, await removeDomain(services, owner, reason)) };
    },
  }),
];

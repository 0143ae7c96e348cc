/** Endpoints: the rows of `/v1/webhooks` and `/v1/tenants/{tenant_id}/webhooks` (reference §3). A secret is shown once. */
import * as z from "zod";
import { maskedHeaders } from "../lib/endpoint_headers.ts";
import type { EndpointId } from "../lib/ids.ts";
import {
  disabledReason,
  type EndpointRow,
  type HealthRow,
  type KeyRow,
  keys,
  type Scope,
} from "../lib/keys.ts";
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, MAX_URL_BYTES } from "../lib/limits.ts";
import { scopeOf } from "../lib/reach.ts";
import {
  createEndpoint,
  deleteEndpoint,
  live,
  rotateSecret,
  scopeOfEndpoint,
  updateEndpoint,
} from "../actors/endpoints.ts";
import { getAll } from "../actors/event_store.ts";
import { page, type PageContext } from "./cursor.ts";
import { instantShown, iso, isoOrNull, listOf, listQuery, text } from "./schemas.ts";
import { scopeDenied } from "./scope.ts";
import type { Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

const url = z.string().min(1).max(MAX_URL_BYTES, `must be at most ${MAX_URL_BYTES} bytes`);
const events = z.array(z.string().min(1).max(128)).min(1).max(200);
const identityIds = z.array(idOf("identity")).min(1).max(100);
const description = text(500).nullish();

/** Names and values are judged by `lib/endpoint_headers.ts`, each refused at its own path. */
const headers = z.record(z.string(), z.string()).nullish();
const signatureVersions = z.array(z.enum(["v1", "v1a"])).min(1).max(2)
  .refine((versions) => versions.includes("v1"), "must hold v1")
  .refine((versions) => new Set(versions).size === versions.length, "must not hold a version twice");

const createBody = z.strictObject({
  url,
  events,
  identity_ids: identityIds.nullish(),
  description,
  headers,
  signature_versions: signatureVersions.optional(),
});

const endpointFields = {
  id: idOf("endpoint"),
  scope: z.enum(["tenant", "partner", "platform"]),
  tenant_id: idOf("tenant").nullable(),
  partner_id: idOf("partner").nullable(),
  url: z.string(),
  events: z.array(z.string()),
  identity_ids: z.array(idOf("identity")).nullable(),
  description: z.string().nullable(),
  headers: z.record(z.string(), z.string()).meta({ description: "Names only: every value is `***`." }),
  signature_versions: z.array(z.enum(["v1", "v1a"])),
  public_key: z.string().nullable().meta({ description: "`whpk_…` verifies `v1a`; null without it." }),
  enabled: z.boolean(),
  disabled_reason: disabledReason.nullable(),
  consecutive_failures: z.int(),
  last_success_at: instantShown.nullable(),
  last_failure_at: instantShown.nullable(),
  previous_secret_expires_at: instantShown.nullable(),
  created_at: instantShown,
  updated_at: instantShown,
};
const endpointShown = z.object(endpointFields);
const secretShown = z.string().meta({ description: "`whsec_` and 32 bytes in base64. Shown once." });
const endpointCreated = z.object({ ...endpointFields, secret: secretShown });

const showEndpoint = (row: EndpointRow, health: HealthRow | null, now: number) => ({
  id: row.id,
  scope: scopeOfEndpoint(row).level,
  tenant_id: row.tenant_id,
  partner_id: row.partner_id,
  url: row.url,
  events: row.events,
  identity_ids: row.identity_ids,
  description: row.description,
  headers: maskedHeaders(row.header_names ?? []),
  signature_versions: row.v1a_enc === undefined ? ["v1"] : ["v1", "v1a"],
  public_key: row.v1a_public ?? null,
  enabled: row.enabled,
  disabled_reason: row.disabled_reason,
  consecutive_failures: health?.consecutive_failures ?? 0,
  last_success_at: isoOrNull(health?.last_success_at ?? null),
  last_failure_at: isoOrNull(health?.last_failure_at ?? null),
  previous_secret_expires_at: (row.prev_secret_expires_at ?? 0) > now
    ? isoOrNull(row.prev_secret_expires_at)
    : null,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
});

async function shown(services: Services, row: EndpointRow) {
  const health = await services.kv.get<HealthRow>(keys.health(row.id));
  return showEndpoint(row, health.value, services.now());
}

async function create(services: Services, scope: Scope, body: z.output<typeof createBody>, key: KeyRow) {
  const { row, secret } = await createEndpoint(services, scope, body, key);
  return { body: { ...showEndpoint(row, null, services.now()), secret } };
}

async function list(ctx: PageContext & { services: Services }, scope: Scope) {
  const { kv, now } = ctx.services;
  return {
    body: await page<true>(ctx, {
      prefix: keys.endpointsOfScope(scope),
      at: (id) => keys.endpointOfScope(scope, id as EndpointId),
      show: async (rows) => {
        const ids = rows.map(({ id }) => id as EndpointId);
        const [found, health] = await Promise.all([
          getAll<EndpointRow>(kv, ids.map(keys.endpoint)),
          getAll<HealthRow>(kv, ids.map(keys.health)),
        ]);
        return found.map(({ value }, i) =>
          value === null ? null : showEndpoint(value, health[i]!.value, now())
        );
      },
    }),
  };
}

export const webhookRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/webhooks",
    permission: "webhooks:manage",
    scope: { by: "caller" },
    summary: "Create a platform endpoint (platform key) or a partner endpoint (partner key).",
    body: createBody,
    response: endpointCreated,
    status: 201,
    oneTime: ["secret"],
    handler: ({ body, key, services }) => {
      const scope = scopeOf(key);
      if (scope.level === "tenant") {
        throw scopeDenied("a tenant's endpoints are made under /v1/tenants/{tenant_id}");
      }
      return create(services, scope, body, key);
    },
  }),
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/webhooks",
    permission: "webhooks:manage",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Create a tenant endpoint.",
    params: { tenant_id: idOf("tenant") },
    body: createBody,
    response: endpointCreated,
    status: 201,
    oneTime: ["secret"],
    handler: ({ tenant, body, key, services }) =>
      create(services, { level: "tenant", tenant: tenant.id }, body, key),
  }),
  route({
    method: "GET",
    path: "/v1/webhooks",
    permission: "webhooks:read",
    scope: { by: "caller" },
    summary: "List the endpoints of the calling key's own scope, newest first.",
    query: listQuery,
    response: listOf(endpointShown),
    status: 200,
    handler: (ctx) => list(ctx, scopeOf(ctx.key)),
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/webhooks",
    permission: "webhooks:read",
    scope: { by: "tenant", param: "tenant_id", identityKeys: true },
    summary: "List a tenant's endpoints, newest first.",
    params: { tenant_id: idOf("tenant") },
    query: listQuery,
    response: listOf(endpointShown),
    status: 200,
    handler: (ctx) => list(ctx, { level: "tenant", tenant: ctx.tenant.id }),
  }),
  route({
    method: "GET",
    path: "/v1/webhooks/{webhook_id}",
    permission: "webhooks:read",
    scope: { by: "endpoint", param: "webhook_id", identityKeys: true },
    summary: "Read an endpoint.",
    params: { webhook_id: idOf("endpoint") },
    response: endpointShown,
    status: 200,
    handler: async ({ endpoint, services }) => ({ body: await shown(services, live(endpoint)) }),
  }),
  route({
    method: "PATCH",
    path: "/v1/webhooks/{webhook_id}",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Change an endpoint. Enabling resets its failures and its reason.",
    params: { webhook_id: idOf("endpoint") },
    body: z.strictObject({
      url: url.optional(),
      events: events.optional(),
      identity_ids: identityIds.nullish(),
      description,
      enabled: z.boolean().optional(),
      headers,
      signature_versions: signatureVersions.optional(),
    }),
    response: endpointShown,
    status: 200,
    handler: async ({ params, body, key, services }) => ({
      body: await shown(services, await updateEndpoint(services, params.webhook_id, body, key)),
    }),
  }),
  route({
    method: "DELETE",
    path: "/v1/webhooks/{webhook_id}",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Delete an endpoint. What is pending for it is dropped; its log stays readable.",
    params: { webhook_id: idOf("endpoint") },
    status: 204,
    handler: async ({ params, key, services }) => {
      await deleteEndpoint(services, params.webhook_id, key);
      return {};
    },
  }),
  route({
    method: "POST",
    path: "/v1/webhooks/{webhook_id}/rotate-secret",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Make a new secret; the old one signs beside it for the overlap.",
    params: { webhook_id: idOf("endpoint") },
    body: z.strictObject({
      overlap_hours: z.int().min(0).max(MAX_OVERLAP_HOURS).default(DEFAULT_OVERLAP_HOURS),
    }),
    response: endpointCreated,
    status: 200,
    oneTime: ["secret"],
    handler: async ({ params, body, key, services }) => {
      const { row, secret } = await rotateSecret(services, params.webhook_id, body.overlap_hours, key);
      return { body: { ...await shown(services, row), secret } };
    },
  }),
];

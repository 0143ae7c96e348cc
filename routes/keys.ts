/** API keys: the rows of `/v1/keys` (reference §2, §3). A key string is shown once, when it is made. */
import * as z from "zod";
import { invalidRequest } from "../lib/errors.ts";
import type { Id } from "../lib/ids.ts";
import { keyLevel, type KeyRow, keys, permission, type Scope, scopeName } from "../lib/keys.ts";
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS } from "../lib/limits.ts";
import { reachesKey, scopeOf } from "../lib/reach.ts";
import { getAll } from "../actors/event_store.ts";
import { createKey, type KeyDeps, readKey, revokeKey, rotateKey } from "../actors/key_admin.ts";
import { page } from "./cursor.ts";
import { instant, instantShown, iso, isoOrNull, listOf, listQuery, text } from "./schemas.ts";
import { partnerInReach, tenantInReach } from "./scope.ts";
import type { Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

const keyFields = {
  id: idOf("key"),
  name: z.string(),
  level: keyLevel,
  partner_id: idOf("partner").nullable(),
  tenant_id: idOf("tenant").nullable(),
  identity_id: idOf("identity").nullable(),
  permissions: z.array(permission),
  expires_at: instantShown.nullable(),
  revoked_at: instantShown.nullable(),
  created_at: instantShown,
};
const keyShown = z.object(keyFields);
const keyMinted = z.object({ ...keyFields, secret: z.string().meta({ description: "Shown once." }) });

const showKey = (row: KeyRow) => ({
  id: row.id,
  name: row.name,
  level: row.level,
  partner_id: row.partner_id,
  tenant_id: row.tenant_id,
  identity_id: row.identity_id,
  permissions: row.permissions,
  expires_at: isoOrNull(row.expires_at),
  revoked_at: isoOrNull(row.revoked_at),
  created_at: iso(row.created_at),
});

const depsOf = (services: Services): KeyDeps => ({
  ...services,
  pepper: services.config.keyPepper,
  mode: services.config.keyMode,
});

export const keyRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/keys",
    permission: "keys:manage",
    scope: { by: "caller" },
    summary: "Create a key no wider than the calling one. Its secret is shown once.",
    body: z.strictObject({
      name: text(200),
      level: keyLevel,
      partner_id: idOf("partner").optional(),
      tenant_id: idOf("tenant").optional(),
      identity_id: idOf("identity").optional(),
      permissions: z.array(permission).min(1),
      expires_at: instant.nullish(),
    }),
    response: keyMinted,
    status: 201,
    oneTime: ["secret"],
    handler: async ({ body, key, services }) => {
      const spec = { ...body, expires_at: body.expires_at ?? null };
      const { row, secret } = await createKey(depsOf(services), spec, key);
      return { body: { ...showKey(row), secret } };
    },
  }),
  route({
    method: "GET",
    path: "/v1/keys",
    permission: "keys:manage",
    scope: { by: "caller" },
    summary: "List the keys of the calling key's scope, or of a tenant or partner within its reach.",
    query: {
      ...listQuery,
      tenant_id: idOf("tenant").optional(),
      partner_id: idOf("partner").optional(),
    },
    response: listOf(keyShown),
    status: 200,
    handler: async (ctx) => {
      const { services, key } = ctx;
      const { scope, tenant } = await namedScope(services, key, ctx.query);
      const name = scopeName(scope);
      return {
        body: await page<string>(ctx, {
          prefix: keys.apiKeysOfScope(name),
          at: (id) => keys.apiKeyOfScope(name, id as Id<"key">),
          show: async (rows) => {
            const found = await getAll<KeyRow>(services.kv, rows.map(({ value }) => keys.apiKey(value)));
            return found.map(({ value }) =>
              value === null || !reachesKey(key, value, tenant) ? null : showKey(value)
            );
          },
        }),
      };
    },
  }),
  route({
    method: "GET",
    path: "/v1/keys/{key_id}",
    permission: "keys:manage",
    scope: { by: "key", param: "key_id" },
    summary: "Read a key.",
    params: { key_id: idOf("key") },
    response: keyShown,
    status: 200,
    handler: async ({ params, key, services }) => ({
      body: showKey((await readKey(services.kv, params.key_id, key)).row),
    }),
  }),
  route({
    method: "DELETE",
    path: "/v1/keys/{key_id}",
    permission: "keys:manage",
    scope: { by: "key", param: "key_id" },
    summary: "Revoke a key. Its row stays, with the time.",
    params: { key_id: idOf("key") },
    status: 204,
    handler: async ({ params, key, services }) => {
      const { lookup } = await revokeKey(depsOf(services), params.key_id, key);
      services.keyCache.forget(lookup);
      return {};
    },
  }),
  route({
    method: "POST",
    path: "/v1/keys/{key_id}/rotate",
    permission: "keys:manage",
    scope: { by: "key", param: "key_id" },
    summary: "Replace a key by a new one like it; the old one stays good for the overlap.",
    params: { key_id: idOf("key") },
    body: z.strictObject({
      overlap_hours: z.int().min(0).max(MAX_OVERLAP_HOURS).default(DEFAULT_OVERLAP_HOURS),
    }),
    response: keyMinted,
    status: 201,
    oneTime: ["secret"],
    handler: async ({ params, body, key, services }) => {
      const minted = await rotateKey(depsOf(services), params.key_id, body.overlap_hours, key);
      services.keyCache.forget(minted.replaced);
      return { body: { ...showKey(minted.row), secret: minted.secret } };
    },
  }),
];

/** The scope a list names, held against the key's reach; its own when it names none. */
export async function namedScope(
  services: Pick<Services, "kv">,
  key: KeyRow,
  named: { tenant_id?: Id<"tenant"> | undefined; partner_id?: Id<"partner"> | undefined },
): Promise<{ scope: Scope; tenant: Awaited<ReturnType<typeof tenantInReach>> | null }> {
  if (named.tenant_id !== undefined && named.partner_id !== undefined) {
    throw invalidRequest([{ path: "partner_id", message: "does not go with tenant_id" }]);
  }
  if (named.partner_id !== undefined) {
    const partner = await partnerInReach(services.kv, named.partner_id, key);
    return { scope: { level: "partner", partner: partner.id }, tenant: null };
  }
  const own = scopeOf(key);
  const id = named.tenant_id ?? (own.level === "tenant" ? own.tenant : undefined);
  if (id === undefined) return { scope: own, tenant: null };
  const tenant = await tenantInReach(services.kv, id, key);
  return { scope: { level: "tenant", tenant: tenant.id }, tenant };
}

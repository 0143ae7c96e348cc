/** What a page names, held against the visitor's key by the API's own rules (`routes/scope.ts`): out of reach is not found. */
import { notFound } from "../../lib/errors.ts";
import type { EndpointId, PartnerId, TenantId } from "../../lib/ids.ts";
import {
  type EndpointRow,
  type HealthRow,
  type KeyRow,
  keys,
  type PartnerRow,
  type Scope,
  type TenantRow,
} from "../../lib/keys.ts";
import { MAX_ENDPOINTS_PER_SCOPE_OWNER } from "../../lib/limits.ts";
import { scopeOf } from "../../lib/reach.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { scopeOfEndpoint } from "../../actors/endpoints.ts";
import { getAll } from "../../actors/event_store.ts";
import { demand } from "../auth.ts";
import { partnerInReach, resolveScope, tenantInReach } from "../scope.ts";

/** A scope with the name people know it by. `path` is its part of the console's addresses. */
export interface Place {
  scope: Scope;
  path: string;
  name: string;
  tenant: TenantRow | null;
  partner: PartnerRow | null;
}

export interface Reach {
  kv: Kv;
  key: KeyRow;
}

const PLATFORM: Place = {
  scope: { level: "platform" },
  path: "platform",
  name: "Platform",
  tenant: null,
  partner: null,
};

/** The place of a path's `{scope}`. @throws ApiError 404 */
export async function placeOf(r: Reach, path: string): Promise<Place> {
  if (path.startsWith("ten_")) {
    const tenant = await tenantInReach(r.kv, path as TenantId, r.key);
    return { scope: { level: "tenant", tenant: tenant.id }, path, name: tenant.name, tenant, partner: null };
  }
  if (path.startsWith("ptn_")) {
    const partner = await partnerInReach(r.kv, path as PartnerId, r.key);
    return {
      scope: { level: "partner", partner: partner.id },
      path,
      name: partner.name,
      tenant: null,
      partner,
    };
  }
  if (r.key.level !== "platform") throw notFound("route");
  return PLATFORM;
}

/** The place of a scope that is known to be in reach. */
export const placeOfScope = (r: Reach, scope: Scope): Promise<Place> =>
  placeOf(
    r,
    scope.level === "tenant" ? scope.tenant : scope.level === "partner" ? scope.partner : "platform",
  );

/** Where a visitor starts. */
export const homeOf = (key: KeyRow): string => {
  const scope = scopeOf(key);
  return scope.level === "tenant" ? scope.tenant : scope.level === "partner" ? scope.partner : "platform";
};

export interface Endpoint {
  row: EndpointRow;
  health: HealthRow | null;
}

/** One endpoint, deleted ones included. @throws ApiError 403, 404 */
export async function endpointOf(r: Reach, id: string): Promise<Endpoint & { place: Place }> {
  demand(r.key, "webhooks:read");
  const rule = { by: "endpoint", param: "id", identityKeys: true } as const;
  const { context } = await resolveScope(r.kv, rule, { id }, r.key);
  const row = context.endpoint as EndpointRow;
  const [health, place] = await Promise.all([
    r.kv.get<HealthRow>(keys.health(row.id)),
    placeOfScope(r, scopeOfEndpoint(row)),
  ]);
  return { row, health: health.value, place };
}

/** The endpoints of a place, newest first. @throws ApiError 403 */
export async function endpointsOf(r: Reach, place: Place): Promise<Endpoint[]> {
  demand(r.key, "webhooks:read");
  const ids: EndpointId[] = [];
  const options = { reverse: true, limit: 2 * MAX_ENDPOINTS_PER_SCOPE_OWNER };
  for await (const entry of r.kv.list({ prefix: keys.endpointsOfScope(place.scope) }, options)) {
    ids.push(entry.key.at(-1) as EndpointId);
  }
  const [rows, health] = await Promise.all([
    getAll<EndpointRow>(r.kv, ids.map(keys.endpoint)),
    getAll<HealthRow>(r.kv, ids.map(keys.health)),
  ]);
  return rows.flatMap(({ value }, i) => value === null ? [] : [{ row: value, health: health[i]!.value }]);
}

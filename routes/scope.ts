/**
 * Finds the thing a request names by its row's scope rule and holds it against the key's reach. Missing and out of reach throw
 * the same error, so that they answer the same bytes (reference §2).
 */
import { ApiError, notFound, type NotFoundThing } from "../lib/errors.ts";
import type { EndpointId, PartnerId, TenantId } from "../lib/ids.ts";
import { tenantOf } from "../actors/tenancy.ts";
import {
  type EndpointRow,
  type KeyRow,
  keys,
  type OwnerKind,
  type OwnerRef,
  type PartnerRow,
  type TenantRow,
} from "../lib/keys.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { reachesEndpoint, reachesTenant } from "../lib/reach.ts";
import type { OwnedThing, ScopeRule } from "./table.ts";

/** What was found, and the tenant the request counts against (its rate, its idempotency scope). */
export interface Found {
  context: Record<string, unknown>;
  tenant: TenantId | null;
}

const KIND: Record<OwnedThing, OwnerKind> = { identity: "mailbox", domain: "domain", job: "job" };

/** @param named the ids of the request: path parameters, or the fields of its body for `in: "body"`. */
export async function resolveScope(
  kv: Kv,
  rule: ScopeRule,
  named: Record<string, unknown>,
  key: KeyRow,
): Promise<Found> {
  if (rule === "any") return { context: {}, tenant: key.tenant_id };
  if (rule === "platform") {
    if (key.level !== "platform") throw scopeDenied("it needs a platform-level key");
    return { context: {}, tenant: null };
  }
  switch (rule.by) {
    case "tenant": {
      const tenant = await tenantInReach(kv, named[rule.param] as TenantId, key);
      if (key.level === "identity" && !rule.identityKeys) {
        throw scopeDenied("an identity-level key is too narrow");
      }
      return { context: { tenant }, tenant: tenant.id };
    }
    case "owner":
      return await resolveOwner(kv, rule.thing, String(named[rule.param]), key);
    case "endpoint": {
      const endpoint = await endpointInReach(kv, named[rule.param] as EndpointId, key);
      if (key.level === "identity" && !rule.identityKeys) {
        throw scopeDenied("an identity-level key only reads here");
      }
      return { context: { endpoint }, tenant: endpoint.tenant_id };
    }
    case "partner": {
      const partner = await partnerInReach(kv, named[rule.param] as PartnerId, key);
      return { context: { partner }, tenant: null };
    }
    case "key":
    case "event":
    case "caller":
      return { context: {}, tenant: key.tenant_id };
  }
}

export async function tenantInReach(kv: Kv, id: TenantId, key: KeyRow): Promise<TenantRow> {
  const { value } = await kv.get<TenantRow>(keys.tenant(id));
  if (value === null || !reachesTenant(key, value)) throw notFound("tenant");
  return value;
}

export async function partnerInReach(kv: Kv, id: PartnerId, key: KeyRow): Promise<PartnerRow> {
  const { value } = await kv.get<PartnerRow>(keys.partner(id));
  const reached = key.level === "platform" || key.level === "partner" && key.partner_id === id;
  if (value === null || !reached) throw notFound("partner");
  return value;
}

async function endpointInReach(kv: Kv, id: EndpointId, key: KeyRow): Promise<EndpointRow> {
  const { value } = await kv.get<EndpointRow>(keys.endpoint(id));
  const tenant = await tenantOf(kv, value?.tenant_id);
  if (value === null || !reachesEndpoint(key, value, tenant)) throw notFound("webhook");
  return value;
}

async function resolveOwner(kv: Kv, thing: OwnedThing, id: string, key: KeyRow): Promise<Found> {
  const missing: NotFoundThing = thing;
  const { value: owner } = await kv.get<OwnerRef>(keys.ownerOf(id));
  const tenant = await tenantOf(kv, owner?.tenant);
  if (owner === null || owner.kind !== KIND[thing]) throw notFound(missing);
  if (tenant === null || !reachesTenant(key, tenant)) throw notFound(missing);
  if (key.level === "identity" && key.identity_id !== owner.id) throw notFound(missing);
  return { context: { tenant, owner }, tenant: tenant.id };
}

export const scopeDenied = (why: string): ApiError =>
  new ApiError("scope_denied", `Cannot do this with this key: ${why}.`, "Use a key of a wider level.");

/**
 * What a key reaches (reference §2), widest level first: `platform` every tenant, `partner` its own tenants and its partner's
 * endpoints, `tenant` its tenant, `identity` its own identity. Pure: every route's scope is held against these four.
 */
import type { EndpointRow, EventRow, KeyLevel, KeyRow, Scope, TenantRow } from "./keys.ts";

/** Widest first. */
const WIDTH: Record<KeyLevel, number> = { platform: 3, partner: 2, tenant: 1, identity: 0 };

/** Whether a key of level `a` is wider than one of level `b`. */
export const wider = (a: KeyLevel, b: KeyLevel): boolean => WIDTH[a] > WIDTH[b];

/** `webhooks:manage` includes `webhooks:read`. */
export function holds(key: Pick<KeyRow, "permissions">, needed: KeyRow["permissions"][number]): boolean {
  return key.permissions.includes(needed) ||
    needed === "webhooks:read" && key.permissions.includes("webhooks:manage");
}

/** An identity-level key reaches its tenant's row; what it may do there is the route's to say. */
export function reachesTenant(key: KeyRow, tenant: Pick<TenantRow, "id" | "partner_id">): boolean {
  if (key.level === "platform") return true;
  if (key.level === "partner") return tenant.partner_id !== null && tenant.partner_id === key.partner_id;
  return tenant.id === key.tenant_id;
}

/** @param tenant the endpoint's tenant; null for a partner or platform endpoint. */
export function reachesEndpoint(key: KeyRow, endpoint: EndpointRow, tenant: TenantRow | null): boolean {
  if (key.level === "platform") return true;
  if (endpoint.tenant_id !== null) return tenant !== null && reachesTenant(key, tenant);
  return key.level === "partner" && endpoint.partner_id !== null && endpoint.partner_id === key.partner_id;
}

/** A partner key reaches the events of its tenants, and the platform events about its own endpoints. */
export function reachesEvent(key: KeyRow, event: Pick<EventRow, "tenant" | "partner" | "identity">): boolean {
  if (key.level === "platform") return true;
  if (key.level === "partner") return event.partner !== null && event.partner === key.partner_id;
  if (event.tenant === null || event.tenant !== key.tenant_id) return false;
  return key.level === "tenant" || event.identity !== null && event.identity === key.identity_id;
}

/** @param tenant the other key's tenant, when it has one. */
export function reachesKey(key: KeyRow, other: KeyRow, tenant: TenantRow | null): boolean {
  if (key.level === "platform") return true;
  if (wider(other.level, key.level)) return false;
  if (other.level === "partner") return other.partner_id === key.partner_id;
  if (tenant === null || !reachesTenant(key, tenant)) return false;
  return key.level !== "identity" || other.identity_id === key.identity_id;
}

/** The scope a key works on when a request names none. An identity-level key's is its tenant's. */
export function scopeOf(key: KeyRow): Scope {
  if (key.level === "platform") return { level: "platform" };
  if (key.level === "partner") return { level: "partner", partner: key.partner_id! };
  return { level: "tenant", tenant: key.tenant_id! };
}

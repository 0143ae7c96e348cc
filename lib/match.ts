/**
 * Which endpoints receive an event ("Endpoint resolution and filters"): one function, used by fan-out, replay and trace.
 * Invariant S1: no endpoint ever receives an event outside its scope.
 */
import type { EndpointId, IdentityId, PartnerId, TenantId } from "./ids.ts";

/** What matching needs of an event. `about` is the endpoint a `webhook.disabled` tells of. */
export interface MatchEvent {
  type: string;
  tenant: TenantId | null;
  partner: PartnerId | null;
  identity: IdentityId | null;
  about: EndpointId | null;
}

/** What matching needs of an endpoint. Both scope ids null: a platform endpoint. */
export interface MatchEndpoint {
  id: EndpointId;
  tenant_id: TenantId | null;
  partner_id: PartnerId | null;
  events: readonly string[];
  identity_ids: readonly IdentityId[] | null;
  enabled: boolean;
  deleted_at: number | null;
}

/** Why an endpoint does not receive an event; the words a trace shows. */
export type Mismatch =
  | "deleted"
  | "disabled"
  | "test_events_are_never_fanned_out"
  | "other_scope"
  | "about_itself"
  | "event_type"
  | "identity_filter";

/** The rule that says no, or null when the endpoint receives the event. */
export function mismatch(event: MatchEvent, endpoint: MatchEndpoint): Mismatch | null {
  if (endpoint.deleted_at !== null) return "deleted";
  if (!inScope(event, endpoint)) return "other_scope"; // before all that could tell one tenant of another
  if (!endpoint.enabled) return "disabled";
  return filtered(event, endpoint);
}

/** The same without regard to `enabled`: what replay asks, whose deliveries a disabled endpoint answers for itself. */
export function filtered(event: MatchEvent, endpoint: MatchEndpoint): Mismatch | null {
  if (event.type === "webhook.test") return "test_events_are_never_fanned_out";
  if (!inScope(event, endpoint)) return "other_scope";
  if (event.about === endpoint.id) return "about_itself";
  if (endpoint.events[0] !== "*" && !endpoint.events.includes(event.type)) return "event_type";
  if (endpoint.identity_ids !== null) {
    if (event.identity === null || !endpoint.identity_ids.includes(event.identity)) return "identity_filter";
  }
  return null;
}

/** Tenant endpoints see their tenant, partner endpoints their partner's tenants, platform endpoints everything. */
export function inScope(
  event: MatchEvent,
  endpoint: Pick<MatchEndpoint, "tenant_id" | "partner_id">,
): boolean {
  if (endpoint.tenant_id !== null) {
    return event.tenant === endpoint.tenant_id && event.type !== "webhook.disabled";
  }
  if (endpoint.partner_id !== null) return event.partner === endpoint.partner_id;
  return true;
}

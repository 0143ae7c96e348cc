/**
 * Which endpoints receive an event, written a second time from the document ("Endpoint resolution and filters") and on
 * purpose not from lib/match.ts: the model must not share the mistakes of what it judges.
 */
import type { EndpointRow } from "../lib/keys.ts";

export interface Seen {
  type: string;
  tenant: string | null;
  partner: string | null;
  identity: string | null;
  /** The endpoint a `webhook.disabled` is about. */
  about: string | null;
}

/** S1: may this endpoint ever see the event? */
export function mayEverSee(event: Seen, endpoint: EndpointRow): boolean {
  const level = endpoint.tenant_id ? "tenant" : endpoint.partner_id ? "partner" : "platform";
  if (event.type === "webhook.disabled") {
    // "goes to platform endpoints and to the endpoints of the disabled endpoint's partner, never to tenant endpoints and
    // never to the endpoint it is about"
    if (event.about === endpoint.id || level === "tenant") return false;
    return level === "platform" || event.partner === endpoint.partner_id;
  }
  switch (level) {
    case "platform":
      return true;
    case "partner":
      return event.tenant !== null && event.partner !== null && event.partner === endpoint.partner_id;
    case "tenant":
      return event.tenant === endpoint.tenant_id;
  }
}

/** Scope and filters, as the endpoint's row stands. */
export function passes(event: Seen, endpoint: EndpointRow): boolean {
  if (event.type === "webhook.test" || !mayEverSee(event, endpoint)) return false;
  const types = new Set(endpoint.events);
  if (!types.has("*") && !types.has(event.type)) return false;
  if (endpoint.identity_ids === null) return true;
  return event.identity !== null && new Set<string>(endpoint.identity_ids).has(event.identity);
}

export const receives = (event: Seen, endpoint: EndpointRow): boolean =>
  endpoint.deleted_at === null && endpoint.enabled && passes(event, endpoint);

/** Every row of the route table: the HTTP API, its OpenAPI document and the isolation test come from this list. */
import { auditRoutes } from "./audit.ts";
import { deliveryRoutes } from "./deliveries.ts";
import { docsRoutes } from "./docs/docs.tsx";
import { domainRoutes } from "./domains.ts";
import { eventTypeRoutes } from "./event_types.ts";
import { eventRoutes } from "./events.ts";
import { identityRoutes } from "./identities.ts";
import { jobRoutes } from "./jobs.ts";
import { keyRoutes } from "./keys.ts";
import { mailboxEventRoutes } from "./mailbox_events.ts";
import { messageRoutes } from "./messages.ts";
import { notificationRoutes } from "./notifications.ts";
import { ownerRoutes } from "./owners.ts";
import { partnerRoutes } from "./partners.ts";
import { platformRoutes } from "./platform.ts";
import { portalLinkRoutes } from "./portal_links.ts";
import type { RouteConfig } from "./services.ts";
import type { Route } from "./table.ts";
import { tenantRoutes } from "./tenants.ts";
import { traceRoutes } from "./trace.ts";
import { webhookRoutes } from "./webhooks.ts";

const rows: readonly Route[] = [
  ...tenantRoutes,
  ...partnerRoutes,
  ...keyRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...eventRoutes,
  ...traceRoutes,
  ...notificationRoutes,
  ...identityRoutes,
  ...messageRoutes,
  ...mailboxEventRoutes,
  ...domainRoutes,
  ...eventTypeRoutes,
  ...jobRoutes,
  ...ownerRoutes,
  ...auditRoutes,
  ...portalLinkRoutes,
];

/** The configuration decides whether `/metrics` needs a key. */
export function allRoutes(config: RouteConfig): Route[] {
  const others: Route[] = [...rows, ...docsRoutes(config, () => all)];
  const all: Route[] = [...others, ...platformRoutes(config, others)];
  return all;
}

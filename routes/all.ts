/** Every row of the route table: the HTTP API, its OpenAPI document and the isolation test come from this list. */
import { deliveryRoutes } from "./deliveries.ts";
import { eventRoutes } from "./events.ts";
import { keyRoutes } from "./keys.ts";
import { partnerRoutes } from "./partners.ts";
import type { Route } from "./table.ts";
import { tenantRoutes } from "./tenants.ts";
import { webhookRoutes } from "./webhooks.ts";

export const allRoutes: readonly Route[] = [
  ...tenantRoutes,
  ...partnerRoutes,
  ...keyRoutes,
  ...webhookRoutes,
  ...deliveryRoutes,
  ...eventRoutes,
];

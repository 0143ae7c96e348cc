/** Portal links: one-time ways into the console for a tenant's own customers. */
import * as z from "zod";
import { MINUTE_MS } from "../lib/limits.ts";
import { createPortalLink } from "../actors/portal.ts";
import { instantShown, iso } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

export const DEFAULT_LINK_MINUTES = 60;
/** A week: a link in a mail that is read after a holiday is made anew. */
export const MAX_LINK_MINUTES = 7 * 24 * 60;

export const portalLinkRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/portal-links",
    permission: "webhooks:manage",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Make a link that signs one browser in to the console of this tenant, reading or managing.",
    tag: "portal-links",
    params: { tenant_id: idOf("tenant") },
    body: z.strictObject({
      mode: z.enum(["read", "manage"]),
      expires_in_minutes: z.int().min(1).max(MAX_LINK_MINUTES).default(DEFAULT_LINK_MINUTES),
    }),
    response: z.object({
      id: idOf("portalLink"),
      url: z.string().meta({ description: "Shown once; good for one sign-in." }),
      expires_at: instantShown,
    }),
    status: 201,
    oneTime: ["url"],
    handler: async ({ tenant, body, key, services, origin }) => {
      const { config } = services;
      const { row, token } = await createPortalLink(
        { ...services, pepper: config.keyPepper },
        { tenant, mode: body.mode, ttlMs: body.expires_in_minutes * MINUTE_MS },
        key,
      );
      const base = config.consoleHost ? `https://${config.consoleHost}` : origin;
      return {
        body: { id: row.id, url: `${base}/console/portal?token=${token}`, expires_at: iso(row.expires_at) },
      };
    },
  }),
];

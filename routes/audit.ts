/** The audit trail: the row of `/v1/audit-events` (reference §3). */
import * as z from "zod";
import type { Id } from "../lib/ids.ts";
import { type AuditRow, keys } from "../lib/keys.ts";
import { ulidFloor } from "../lib/ids.ts";
import { page } from "./cursor.ts";
import { namedScope } from "./keys.ts";
import { instant, instantShown, iso, listOf, listQuery } from "./schemas.ts";
import { scopeDenied } from "./scope.ts";
import { idOf, type Route, route } from "./table.ts";

const auditShown = z.object({
  id: idOf("audit"),
  at: instantShown,
  action: z.string(),
  key_id: z.union([idOf("key"), idOf("portalLink")]).nullable().meta({
    description:
      "Who did it: a key, or the portal link of a console session; null: a command on the machine.",
  }),
  tenant_id: idOf("tenant").nullable(),
  partner_id: idOf("partner").nullable(),
  subject: z.string(),
});

export const auditRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/audit-events",
    permission: "audit:read",
    scope: { by: "caller" },
    summary: "List who changed what in the calling key's scope, or in a tenant or partner within its reach.",
    query: {
      ...listQuery,
      tenant_id: idOf("tenant").optional(),
      partner_id: idOf("partner").optional(),
      action: z.string().min(1).max(64).optional(),
      since: instant.optional(),
      until: instant.optional(),
    },
    response: listOf(auditShown),
    status: 200,
    handler: async (ctx) => {
      const { query, key, services } = ctx;
      if (key.level === "identity") throw scopeDenied("an identity-level key is too narrow");
      const { scope } = await namedScope(services, key, query);
      return {
        body: await page<AuditRow>(ctx, {
          prefix: keys.auditOf(scope),
          at: (id) => keys.audit(scope, id as Id<"audit">),
          from: query.since === undefined ? undefined : `aud_${ulidFloor(query.since)}`,
          to: query.until === undefined ? undefined : `aud_${ulidFloor(query.until)}`,
          show: (rows) =>
            rows.map(({ value }) =>
              query.action === undefined || value.action === query.action
                ? { ...value, at: iso(value.at) }
                : null
            ),
        }),
      };
    },
  }),
];

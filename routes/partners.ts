/** Partners: the rows of `/v1/partners` (reference §3). Suspension holds deliveries, reactivation lets them go on. */
import * as z from "zod";
import type { PartnerId } from "../lib/ids.ts";
import { keys, type PartnerRow } from "../lib/keys.ts";
import { createPartner, updatePartner } from "../actors/tenancy.ts";
import { page } from "./cursor.ts";
import { instantShown, iso, listOf, listQuery, text } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const status = z.enum(["active", "suspended"]);

const partnerShown = z.object({
  id: idOf("partner"),
  name: z.string(),
  status,
  created_at: instantShown,
  updated_at: instantShown,
});

const showPartner = (row: PartnerRow) => ({
  id: row.id,
  name: row.name,
  status: row.status,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
});

export const partnerRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/partners",
    permission: "partners:manage",
    scope: "platform",
    summary: "Create a partner.",
    body: z.strictObject({ name: text(200) }),
    response: partnerShown,
    status: 201,
    handler: async ({ body, key, services }) => ({
      body: showPartner(await createPartner(services, body.name, key)),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/partners",
    permission: "partners:manage",
    scope: "platform",
    summary: "List partners, newest first.",
    query: listQuery,
    response: listOf(partnerShown),
    status: 200,
    handler: async (ctx) => ({
      body: await page<PartnerRow>(ctx, {
        prefix: keys.partners(),
        at: (id) => keys.partner(id as PartnerId),
        show: (rows) => rows.map(({ value }) => showPartner(value)),
      }),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/partners/{partner_id}",
    permission: "partners:manage",
    scope: { by: "partner", param: "partner_id" },
    summary: "Read a partner.",
    params: { partner_id: idOf("partner") },
    response: partnerShown,
    status: 200,
    handler: ({ partner }) => ({ body: showPartner(partner) }),
  }),
  route({
    method: "PATCH",
    path: "/v1/partners/{partner_id}",
    permission: "partners:manage",
    // A partner must not lift its own suspension.
    scope: "platform",
    summary: "Rename, suspend or reactivate a partner.",
    params: { partner_id: idOf("partner") },
    body: z.strictObject({ name: text(200).optional(), status: status.optional() }),
    response: partnerShown,
    status: 200,
    handler: async ({ params, body, key, services }) => {
      const { row, reactivated } = await updatePartner(services, params.partner_id, body, key);
      // Should this fail, the sweep finds what is parked under an active partner.
      if (reactivated) await services.deliveries.unpark(row.id);
      return { body: showPartner(row) };
    },
  }),
];

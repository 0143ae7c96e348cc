/** The delivery log of an endpoint, and what makes new attempts: test, replay, redeliver (reference §3). */
import * as z from "zod";
import { type EndpointId, ulidFloor } from "../lib/ids.ts";
import { attemptError, type AttemptRow, attemptStatus, type EndpointRow, type KeyRow } from "../lib/keys.ts";
import { MAX_FIRST_LAG_MS, MAX_REPLAY_IDS } from "../lib/limits.ts";
import { attemptOf, newestAttempts } from "../actors/attempt_store.ts";
import { auditWrites } from "../actors/audit.ts";
import { live, partnerOfEndpoint } from "../actors/endpoints.ts";
import { page } from "./cursor.ts";
import { instant, instantShown, iso, isoOrNull, listOf, listQuery } from "./schemas.ts";
import type { Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

export const deliveryShown = z.object({
  id: idOf("delivery"),
  webhook_id: idOf("endpoint"),
  tenant_id: idOf("tenant").nullable(),
  event_id: idOf("event"),
  event_type: z.string(),
  attempt: z.int(),
  first_attempt: z.int(),
  status: attemptStatus,
  http_status: z.int().nullable(),
  error: attemptError.nullable(),
  duration_ms: z.int(),
  next_attempt_at: instantShown.nullable(),
  created_at: instantShown,
});

export const showDelivery = (endpoint: EndpointId, row: AttemptRow) => ({
  id: row.id,
  webhook_id: endpoint,
  tenant_id: row.tenant_id,
  event_id: row.event_id,
  event_type: row.event_type,
  attempt: row.attempt,
  first_attempt: row.first_attempt,
  status: row.status,
  http_status: row.http_status,
  error: row.error,
  duration_ms: row.duration_ms,
  next_attempt_at: isoOrNull(row.next_attempt_at),
  created_at: iso(row.created_at),
});

const params = { webhook_id: idOf("endpoint") };
const queued = z.object({ queued: z.int() });

const replayBody = z.union([
  z.strictObject({ event_ids: z.array(idOf("event")).min(1).max(MAX_REPLAY_IDS) }),
  z.strictObject({ since: instant, until: instant, status: attemptStatus.optional() })
    .refine(({ since, until }) => since < until, { path: ["until"], message: "must be after since" }),
]);

async function audit(services: Services, action: string, row: EndpointRow, by: KeyRow) {
  const partner = await partnerOfEndpoint(services.kv, row);
  return auditWrites(services, { action, by, tenant: row.tenant_id, partner, subject: row.id });
}

export const deliveryRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/webhooks/{webhook_id}/deliveries",
    permission: "webhooks:read",
    scope: { by: "endpoint", param: "webhook_id", identityKeys: true },
    summary: "List an endpoint's attempts, newest first, also after it was deleted.",
    params,
    query: {
      ...listQuery,
      status: attemptStatus.optional(),
      event_type: z.string().min(1).max(128).optional(),
      event_id: idOf("event").optional(),
      after: instant.optional(),
      before: instant.optional(),
    },
    response: listOf(deliveryShown),
    status: 200,
    handler: async (ctx) => {
      const { params: { webhook_id }, query } = ctx;
      const fits = (row: AttemptRow) =>
        (query.status === undefined || row.status === query.status) &&
        (query.event_type === undefined || row.event_type === query.event_type) &&
        (query.event_id === undefined || row.event_id === query.event_id) &&
        (query.after === undefined || row.created_at >= query.after) &&
        (query.before === undefined || row.created_at < query.before);
      return {
        body: await page<AttemptRow>(ctx, {
          scan: (bounds) => newestAttempts(ctx.services.kv, webhook_id, bounds),
          // A row's id is of its created_at or a little before it; `fits` takes the bounds exactly.
          from: query.after === undefined ? undefined : `dlv_${ulidFloor(query.after - MAX_FIRST_LAG_MS)}`,
          to: query.before === undefined ? undefined : `dlv_${ulidFloor(query.before)}`,
          show: (rows) => rows.map(({ value }) => fits(value) ? showDelivery(webhook_id, value) : null),
        }),
      };
    },
  }),
  route({
    method: "GET",
    path: "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
    permission: "webhooks:read",
    scope: { by: "endpoint", param: "webhook_id", identityKeys: true },
    summary: "Read one attempt.",
    params: { ...params, delivery_id: idOf("delivery") },
    response: deliveryShown,
    status: 200,
    handler: async ({ params: { webhook_id, delivery_id }, services }) => {
      return { body: showDelivery(webhook_id, await attemptOf(services.kv, webhook_id, delivery_id)) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Deliver the event of an attempt again, as a replay of it.",
    params: { ...params, delivery_id: idOf("delivery") },
    response: queued,
    status: 202,
    handler: async ({ params: { webhook_id, delivery_id }, endpoint, key, services }) => {
      live(endpoint);
      const { event_id, event } = await attemptOf(services.kv, webhook_id, delivery_id);
      const extra = await audit(services, "webhook.redelivered", endpoint, key);
      return {
        body: await services.deliveries.replay(
          webhook_id,
          { event_ids: [event_id], key: event },
          extra,
        ),
      };
    },
  }),
  route({
    method: "POST",
    path: "/v1/webhooks/{webhook_id}/replay",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Deliver events again, by ids or by a window of occurred_at.",
    params,
    body: replayBody,
    response: queued,
    status: 202,
    handler: async ({ params: { webhook_id }, body, endpoint, key, services }) => {
      live(endpoint);
      const selection = "event_ids" in body ? body : {
        since: body.since,
        until: body.until,
        ...(body.status === undefined ? {} : { status: body.status }),
      };
      const extra = await audit(services, "webhook.replayed", endpoint, key);
      return { body: await services.deliveries.replay(webhook_id, selection, extra) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/webhooks/{webhook_id}/test",
    permission: "webhooks:manage",
    scope: { by: "endpoint", param: "webhook_id" },
    summary: "Send one webhook.test now, also to a disabled endpoint, and answer its attempt.",
    params,
    response: deliveryShown,
    status: 200,
    handler: async ({ params: { webhook_id }, endpoint, key, services }) => {
      live(endpoint);
      const extra = await audit(services, "webhook.tested", endpoint, key);
      return { body: showDelivery(webhook_id, await services.deliveries.test(webhook_id, extra)) };
    },
  }),
];

/** Erasure requests and exports: the rows of the job runner (reference §3). */
import * as z from "zod";
import { invariant, notFound } from "../lib/errors.ts";
import type { EventKey } from "../lib/ids.ts";
import { JsonText } from "../lib/json.ts";
import type { EventIndexRow, OwnerRef } from "../lib/keys.ts";
import { erasureReceipt, erasureScope } from "../lib/payloads/job.ts";
import type { ErasureRow, ExportRow, JobRow } from "../lib/payloads/job_rows.ts";
import { newestOf } from "../actors/event_index.ts";
import { loadEvents } from "../actors/event_store.ts";
import { advanceJob, readJob, requestErasure, requestExport } from "../actors/job_runner.ts";
import { erasedRequest } from "../actors/jobs/erasure.ts";
import { exported } from "../actors/jobs/export.ts";
import { page } from "./cursor.ts";
import { eventCaused } from "./owners.ts";
import { instantShown, iso, isoOrNull, listOf, listQuery, text } from "./schemas.ts";
import type { Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

/** Steps taken while the caller waits: small jobs answer complete, large ones go on at the sweep. */
const STEPS_AT_ONCE = 20;

const status = z.enum(["queued", "running", "completed", "failed"]);

const erasureShown = z.object({
  id: idOf("erasure"),
  job_id: idOf("job"),
  tenant_id: idOf("tenant"),
  scope: erasureScope,
  identity_id: idOf("identity"),
  message_id: idOf("message").nullable(),
  thread_id: idOf("thread").nullable(),
  reason: z.string(),
  status,
  error: z.string().nullable(),
  receipt: erasureReceipt.nullable(),
  created_at: instantShown,
  completed_at: instantShown.nullable(),
});
const exportShown = z.object({
  id: idOf("export"),
  job_id: idOf("job"),
  tenant_id: idOf("tenant"),
  identity_id: idOf("identity").nullable(),
  status,
  events: z.int(),
  expires_at: instantShown.nullable(),
  created_at: instantShown,
  completed_at: instantShown.nullable(),
});

const showErasure = (owner: OwnerRef, row: ErasureRow) => ({
  id: row.id,
  job_id: owner.id,
  tenant_id: owner.tenant,
  scope: row.scope,
  identity_id: row.identity_id,
  message_id: row.message_id,
  thread_id: row.thread_id,
  reason: row.reason,
  status: row.status,
  error: row.error,
  receipt: erasedRequest(row)?.receipt ?? null,
  created_at: iso(row.created_at),
  completed_at: isoOrNull(row.completed_at),
});
const showExport = (owner: OwnerRef, row: ExportRow) => ({
  id: row.id,
  job_id: owner.id,
  tenant_id: owner.tenant,
  identity_id: row.identity_id,
  status: row.status,
  events: row.events,
  expires_at: isoOrNull(row.expires_at),
  created_at: iso(row.created_at),
  completed_at: isoOrNull(row.completed_at),
});

const exportParams = { export_id: idOf("export") };
const exportScope = { by: "owner", param: "export_id", thing: "job" } as const;

export const jobRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/erasure-requests",
    permission: "erasure:manage",
    scope: { by: "tenant", param: "tenant_id", in: "body" },
    summary: "Erase a message, a thread or an identity with the payloads of all events that carry it.",
    body: z.strictObject({
      tenant_id: idOf("tenant"),
      scope: erasureScope,
      identity_id: idOf("identity").optional(),
      message_id: idOf("message").optional(),
      thread_id: idOf("thread").optional(),
      reason: text(500),
    }),
    response: z.object({ erasure_request: erasureShown, event: eventCaused.nullable() }),
    status: 202,
    handler: async ({ body, key, services, tenant }) => {
      const owner = await requestErasure(services, tenant, body, key);
      const row = await advanced(services, owner);
      invariant(row.kind === "erasure", "O1 (an erasure's job is an erasure)");
      return { body: { erasure_request: showErasure(owner, row), event: row.event } };
    },
  }),
  route({
    method: "GET",
    path: "/v1/erasure-requests/{erasure_request_id}",
    permission: "erasure:manage",
    scope: { by: "owner", param: "erasure_request_id", thing: "job" },
    summary: "Read an erasure request and, once it is complete, its receipt.",
    params: { erasure_request_id: idOf("erasure") },
    response: erasureShown,
    status: 200,
    handler: async ({ owner, services }) => {
      const row = await readJob(services.kv, owner);
      if (row.kind !== "erasure") throw notFound("job");
      return { body: showErasure(owner, row) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/exports",
    permission: "erasure:manage",
    scope: { by: "tenant", param: "tenant_id", in: "body" },
    summary: "Export the events of a tenant, or of one identity, up to now. Readable for seven days.",
    body: z.strictObject({ tenant_id: idOf("tenant"), identity_id: idOf("identity").optional() }),
    response: z.object({ export: exportShown, event: eventCaused.nullable() }),
    status: 202,
    handler: async ({ body, key, services, tenant }) => {
      const owner = await requestExport(services, tenant, body.identity_id ?? null, key);
      const row = await advanced(services, owner);
      invariant(row.kind === "export", "O1 (an export's job is an export)");
      return { body: { export: showExport(owner, row), event: row.event } };
    },
  }),
  route({
    method: "GET",
    path: "/v1/exports/{export_id}",
    permission: "erasure:manage",
    scope: exportScope,
    summary: "Read an export's progress.",
    params: exportParams,
    response: exportShown,
    status: 200,
    handler: async ({ owner, services }) => ({ body: showExport(owner, await exportOf(services, owner)) }),
  }),
  route({
    method: "GET",
    path: "/v1/exports/{export_id}/events",
    permission: "erasure:manage",
    scope: exportScope,
    summary: "Read an export: the envelopes, newest first. What was erased since is not among them.",
    params: exportParams,
    query: listQuery,
    response: listOf(z.unknown()),
    status: 200,
    handler: async (ctx) => {
      const { owner, services } = ctx;
      const row = await exportOf(services, owner);
      // An export that is not complete or has expired has nothing to read.
      if (row.expires_at === null || row.expires_at <= services.now()) throw notFound("job");
      return {
        body: await page<EventIndexRow>(ctx, {
          scan: (bounds) => newestOf(services.kv, owner.tenant, bounds),
          to: row.until,
          show: async (rows) => {
            const wanted = rows.filter(({ value }) => exported(row, value)).map(({ id }) => id as EventKey);
            const found = await loadEvents(services.kv, wanted);
            return rows.map(({ id }) => asSent(found.get(id as EventKey)?.body ?? null));
          },
        }),
      };
    },
  }),
];

/** The envelope's own text: its numbers and key order are the producer's. */
function asSent(body: Uint8Array | null): JsonText | null {
  return body === null ? null : new JsonText(new TextDecoder().decode(body), undefined);
}

async function exportOf(services: Services, owner: OwnerRef): Promise<ExportRow> {
  const row = await readJob(services.kv, owner);
  if (row.kind !== "export") throw notFound("job");
  return row;
}

/** The job is durable by now: what fails here is the sweep's to go on with, and no failure of the request. */
export async function advanced(services: Services, owner: OwnerRef): Promise<JobRow> {
  try {
    return await advanceJob(services, owner, STEPS_AT_ONCE);
  } catch {
    services.log.warn("job_left_to_sweep", { job_id: owner.id });
    return await readJob(services.kv, owner);
  }
}

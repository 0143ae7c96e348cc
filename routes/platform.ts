/** Operation of the service: health, readiness, metrics, the OpenAPI document, dead letters (reference §3, §8). */
import * as z from "zod";
import { ApiError, notFound } from "../lib/errors.ts";
import type { Id } from "../lib/ids.ts";
import { type DeadLetter, keys } from "../lib/keys.ts";
import { dueOf, headOfShard } from "../lib/edge/jobs.ts";
import { auditWrites } from "../actors/audit.ts";
import { page } from "./cursor.ts";
import { openApiDocument } from "./openapi.ts";
import { instantShown, iso, listOf, listQuery } from "./schemas.ts";
import type { ReadyCheck, RouteConfig, Services } from "./services.ts";
import { idOf, type Route, route } from "./table.ts";

const deadLetterShown = z.object({
  id: idOf("deadLetter"),
  kind: z.enum(["fanout", "deliver"]),
  webhook_id: idOf("endpoint").nullable(),
  events: z.int().meta({ description: "How many events the job points at." }),
  error: z.string(),
  created_at: instantShown,
});

const showDeadLetter = ({ id, job, error, created_at }: DeadLetter) => ({
  id,
  kind: job.kind,
  webhook_id: job.kind === "deliver" ? job.endpoint : null,
  events: job.kind === "deliver" ? job.items.length : job.events.length,
  error,
  created_at: iso(created_at),
});

/** Counting stops here: the gauge says "at least", and a scrape stays cheap. */
const MAX_COUNTED = 10_000;

async function metricsText(services: Services): Promise<string> {
  const { kv, metrics, jobs, now } = services;
  let items = 0, oldest = Infinity;
  for await (const _ of kv.list({ prefix: keys.deadLetters() }, { limit: MAX_COUNTED })) items++;
  for (let shard = 0; shard < jobs.shards; shard++) {
    for (const { key } of await headOfShard(kv, shard, 1)) oldest = Math.min(oldest, dueOf(key));
  }
  metrics.gauge("dlq_items", items);
  metrics.gauge("jobs_oldest_due_age_ms", Math.max(0, now() - Math.min(oldest, now())));
  return metrics.render();
}

/** What is wrong, in words. */
const wordsOf = (checks: readonly ReadyCheck[]): string =>
  checks.filter(({ ok }) => !ok).map(({ name, message }) => message ?? `${name} failed.`).join(" ");

function metricsRoute(open: boolean): Route {
  const shared = {
    method: "GET",
    path: "/metrics",
    summary: "Metrics in the Prometheus text format.",
    status: 200,
  } as const;
  const handler = async ({ services }: { services: Services }) => ({
    bytes: new TextEncoder().encode(await metricsText(services)),
    contentType: "text/plain; version=0.0.4; charset=utf-8",
  });
  return open
    ? route({ ...shared, permission: "public", scope: "any", handler })
    : route({ ...shared, permission: "platform:ops", scope: "platform", handler });
}

/** @param others every other row, for the document. */
export function platformRoutes(config: RouteConfig, others: readonly Route[]): Route[] {
  let document: unknown;
  const rows: Route[] = [
    route({
      method: "GET",
      path: "/health",
      permission: "public",
      scope: "any",
      summary: "Whether the process answers, and how deliveries leave it.",
      response: z.object({
        status: z.literal("ok"),
        version: z.string(),
        transport: z.enum(["socket", "fetch"]),
        notes: z.array(z.string()).meta({ description: "What an operator should know of its settings." }),
      }),
      status: 200,
      handler: () => {
        const { version, transport, notes = [] } = config;
        return { body: { status: "ok", version, transport, notes } };
      },
    }),
    route({
      method: "GET",
      path: "/ready",
      permission: "public",
      scope: "any",
      summary: "Whether it can take work: each thing it needs, by name.",
      response: z.object({
        status: z.literal("ready"),
        checks: z.array(z.object({ name: z.string(), ok: z.boolean(), message: z.string().optional() })),
      }),
      status: 200,
      handler: async ({ services }) => {
        const checks = await services.ready();
        if (checks.every(({ ok }) => ok)) return { body: { status: "ready", checks } };
        throw new ApiError(
          "unavailable",
          `Cannot take work now: ${wordsOf(checks)}`,
          "Wait and ask again; if it stays so, look into what the message names.",
          { checks },
          { "retry-after": "5" },
        );
      },
    }),
    metricsRoute(config.metricsOpen),
    route({
      method: "GET",
      path: "/openapi.json",
      permission: "public",
      scope: "any",
      summary: "This document.",
      status: 200,
      handler: () => ({ body: document ??= openApiDocument([...others, ...rows], config.version) }),
    }),
    route({
      method: "GET",
      path: "/v1/platform/dlq",
      permission: "platform:ops",
      scope: "platform",
      summary: "List dead letters: jobs whose processing kept failing on our side, newest first.",
      query: listQuery,
      response: listOf(deadLetterShown),
      status: 200,
      handler: async (ctx) => ({
        body: await page<DeadLetter>(ctx, {
          prefix: keys.deadLetters(),
          at: (id) => keys.deadLetter(id as Id<"deadLetter">),
          show: (found) => found.map(({ value }) => showDeadLetter(value)),
        }),
      }),
    }),
    route({
      method: "POST",
      path: "/v1/platform/dlq/{dead_letter_id}/redrive",
      permission: "platform:ops",
      scope: "platform",
      summary: "Put a dead letter's job back in line.",
      params: { dead_letter_id: idOf("deadLetter") },
      response: deadLetterShown,
      status: 202,
      handler: async ({ params, key, services }) => {
        const subject = params.dead_letter_id;
        const extra = auditWrites(services, {
          action: "dead_letter.redriven",
          by: key,
          tenant: null,
          partner: null,
          subject,
        });
        const item = await services.deliveries.redrive(subject, extra);
        if (item === null) throw notFound("dead_letter");
        return { body: showDeadLetter(item) };
      },
    }),
  ];
  return rows;
}

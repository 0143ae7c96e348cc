/** A place worth looking at: tenants, endpoints in every state, a day of figures, events with attempts of every outcome. */
import { createEndpoint, type EndpointDeps } from "../../actors/endpoints.ts";
import { indexWrites } from "../../actors/event_index.ts";
import { eventWrites, type StoredEvent } from "../../actors/event_store.ts";
import { hourOf } from "../../actors/stats.ts";
import { createPartner, createTenant } from "../../actors/tenancy.ts";
import { buildEnvelope } from "../../lib/envelope.ts";
import { countDuration } from "../../lib/histogram.ts";
import { type EventKey, firstDelivery } from "../../lib/ids.ts";
import {
  type AttemptError,
  type AttemptRow,
  type EndpointRow,
  type HealthRow,
  type HourRow,
  keys,
  type PairRow,
  type Scope,
  type TenantRow,
} from "../../lib/keys.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { nextDelayMs } from "../../lib/schedule.ts";
import type { Services } from "../../routes/services.ts";

export interface Seeded {
  acme: TenantRow;
  birch: TenantRow;
  partner: string;
  endpoints: {
    healthy: EndpointRow;
    unsteady: EndpointRow;
    failing: EndpointRow;
    gone: EndpointRow;
    fresh: EndpointRow;
  };
  /** One of a tenant that no other may see. */
  foreign: EndpointRow;
  /** Events of acme, oldest first, with an attempt each. */
  events: StoredEvent[];
  attempts: AttemptRow[];
}

/** Small, and the same every time. */
function makeUnit(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

export async function seed(services: Services, random = 11): Promise<Seeded> {
  const unit = makeUnit(random), now = services.now();
  const deps: EndpointDeps = {
    ...services,
    // Names are not looked up here: the hosts are not ours.
    guard: {
      check: (url) => Promise.resolve({ ok: true, url: new URL(url), resolved: "public" }),
    },
  };
  const partner = await createPartner(services, "Nordlicht Resale", null);
  const acme = await createTenant(services, { slug: "acme", name: "Acme Logistics", partner: null }, null);
  const birch = await createTenant(
    services,
    { slug: "birch", name: "Birch Health", partner: partner.id },
    null,
  );
  await services.eventTypes.put(acme.id, {
    name: "order.paid",
    description: "An order was paid in full.",
    schema: {
      type: "object",
      properties: { order_id: { type: "string" }, amount: { type: "number" }, currency: { type: "string" } },
      required: ["order_id"],
    },
    example: { order_id: "ord_1001", amount: 42.5, currency: "EUR" },
  });
  const endpoint = async (scope: Scope, url: string, events: string[], description: string | null) => {
    const { row } = await createEndpoint(deps, scope, {
      url,
      events,
      description,
    }, null);
    return row;
  };
  const at: Scope = { level: "tenant", tenant: acme.id };
  const fresh = await endpoint(at, "https://staging.acme-logistics.com/hooks", ["message.received"], null);
  const gone = await endpoint(
    at,
    "https://legacy.acme-logistics.com/cb",
    ["*"],
    "Old ERP, to be switched off",
  );
  const failing = await endpoint(at, "https://crm.acme-logistics.com/inbound", [
    "order.paid",
    "message.received",
    "message.bounced",
  ], "CRM sync");
  const unsteady = await endpoint(at, "https://api.acme-logistics.com/webhooks/mail", [
    "message.received",
    "message.bounced",
  ], "Ticket system");
  const healthy = await endpoint(
    at,
    "https://hooks.acme-logistics.com/pylota",
    ["*"],
    "Event lake, all types",
  );
  const foreign = await endpoint({ level: "tenant", tenant: birch.id }, "https://hooks.birch-health.com/in", [
    "*",
  ], null);
  await endpoint({ level: "partner", partner: partner.id }, "https://ops.nordlicht-resale.com/hooks", [
    "webhook.disabled",
  ], "Our on-call");
  await endpoint({ level: "platform" }, "https://siem.pylota.dev/ingest", ["*"], "Security events");

  const put = (key: Deno.KvKey, value: unknown) => services.kv.atomic().set(key, value).commit();
  await put(keys.endpoint(gone.id), { ...gone, enabled: false, disabled_reason: "gone" });
  const health = (row: EndpointRow, value: Partial<HealthRow>) =>
    put(keys.health(row.id), {
      consecutive_failures: 0,
      failing_since: null,
      last_success_at: null,
      last_failure_at: null,
      ...value,
    });
  await health(healthy, { last_success_at: now - 4 * SECOND_MS, last_failure_at: now - 3 * HOUR_MS });
  await health(unsteady, {
    consecutive_failures: 2,
    failing_since: now - 6 * MINUTE_MS,
    last_success_at: now - 7 * MINUTE_MS,
    last_failure_at: now - MINUTE_MS,
  });
  await health(failing, {
    consecutive_failures: 37,
    failing_since: now - 9 * HOUR_MS,
    last_success_at: now - 9 * HOUR_MS,
    last_failure_at: now - 40 * SECOND_MS,
  });
  await health(gone, { last_success_at: now - 30 * HOUR_MS, last_failure_at: now - 26 * HOUR_MS });

  const all: HourRow[] = [];
  const hours = async (subject: string, busy: number, failed: (hour: number) => number) => {
    for (let i = 0; i < 24; i++) {
      const hour = hourOf(now) - i * HOUR_MS,
        day = 0.35 + 0.65 * Math.max(0, Math.sin((new Date(hour).getUTCHours() - 5) / 24 * 2 * Math.PI));
      const row: HourRow = { succeeded: 0, failed: 0, dead: 0, took: [], latency: [] };
      row.succeeded = Math.round(busy * day * (0.8 + 0.4 * unit()));
      row.failed = Math.round(failed(i) * (0.6 + 0.8 * unit()));
      row.dead = row.failed > 20 ? Math.floor(unit() * 3) : 0;
      for (let n = 0; n < 60; n++) {
        countDuration(row.took, 20 + 300 * unit() ** 4);
        countDuration(row.latency, 40 + 900 * unit() ** 5);
      }
      await put(keys.hour(subject, hour, "seed"), row);
      all[i] ??= { succeeded: 0, failed: 0, dead: 0, took: row.took, latency: row.latency };
      all[i]!.succeeded += row.succeeded;
      all[i]!.failed += row.failed;
    }
  };
  await hours(healthy.id, 1400, (i) => i === 3 ? 120 : 2);
  await hours(unsteady.id, 210, (i) => i === 0 ? 14 : 4);
  await hours(failing.id, 0, (i) => i < 9 ? 40 : 0);
  for (const [i, row] of all.entries()) await put(keys.hour("all", hourOf(now) - i * HOUR_MS, "seed"), row);

  const events: StoredEvent[] = [], attempts: AttemptRow[] = [];
  for (let i = 0; i < 40; i++) {
    const occurred = now - (40 - i) * 47 * SECOND_MS;
    const event = eventAt(services, acme, occurred, i);
    events.push(event);
    for (const write of [...eventWrites(event), ...indexWrites([event])]) {
      if (write.op === "set") await put(write.key, write.value);
    }
    attempts.push(...await deliver(services, put, healthy, event, i === 21 ? [500, 503, 204] : [200]));
    if (event.type === "order.paid") await deliver(services, put, failing, event, ["timeout", "timeout"]);
  }
  return {
    acme,
    birch,
    partner: partner.id,
    endpoints: { healthy, unsteady, failing, gone, fresh },
    foreign,
    events,
    attempts,
  };
}

function eventAt(services: Services, tenant: TenantRow, at: number, i: number): StoredEvent {
  const key = services.ids.ulid() as EventKey;
  const type = ["order.paid", "message.received", "message.delivered", "message.bounced"][i % 4]!;
  const id = `evt_${key}` as StoredEvent["id"];
  const data = {
    order_id: `ord_${1001 + i}`,
    amount: 42.5,
    currency: "EUR",
    note: "Thank you & see you <soon>",
  };
  const shared = { id, type, tenant: tenant.id, identity: null };
  return {
    ...shared,
    key,
    partner: null,
    about: null,
    kind: "custom",
    owner: `order-${1001 + i}`,
    seq: i + 1,
    at,
    body: buildEnvelope({ ...shared, occurredAt: at, sequence: i + 1, data }),
  };
}

/** Attempts with these answers, a status or an error code each. */
async function deliver(
  services: Services,
  put: (key: Deno.KvKey, value: unknown) => Promise<unknown>,
  endpoint: EndpointRow,
  event: StoredEvent,
  answers: (number | AttemptError)[],
): Promise<AttemptRow[]> {
  const rows: AttemptRow[] = [];
  let at = event.at + 30;
  for (const [i, answer] of answers.entries()) {
    const ok = typeof answer === "number" && answer < 300, last = i === answers.length - 1;
    const next = ok ? null : at + nextDelayMs(i + 1, 0.5)!;
    rows.push({
      id: i === 0 ? firstDelivery(endpoint.id, event.key) : services.ids.next("delivery"),
      event: event.key,
      event_id: event.id,
      event_type: event.type,
      tenant_id: endpoint.tenant_id,
      attempt: i + 1,
      first_attempt: 1,
      status: ok ? "succeeded" : "failed",
      http_status: typeof answer === "number" ? answer : null,
      error: ok ? null : typeof answer === "number" ? "status_5xx" : answer,
      duration_ms: answer === "timeout" ? 15_000 : 40 + 37 * (i + 1),
      next_attempt_at: last || !ok ? next : null,
      created_at: at,
    });
    at = next ?? at;
  }
  for (const row of rows) await put(keys.attempt(endpoint.id, row.id), row);
  const last = rows.at(-1)!;
  if (last.attempt === 1 && last.status === "succeeded") return rows; // that is the state
  const pair: PairRow = {
    status: last.status,
    attempt: last.attempt,
    first: 1,
    succeeded: last.status === "succeeded",
    dead: false,
    ids: rows.map(({ id }) => id),
  };
  await put(keys.pair(endpoint.id, event.key), pair);
  return rows;
}

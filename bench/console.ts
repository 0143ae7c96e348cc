/**
 * `deno task bench:console [N]`: how long the console's pages take with N deliveries stored (1,000,000 by default), over 20
 * endpoints and 24 hours, on a KV file. Prints each page's median and exits 1 when one is over 100 ms.
 */
import { createKey } from "../actors/key_admin.ts";
import { attemptWrite, firstWrites, pairWrite } from "../actors/attempt_store.ts";
import { indexWrites } from "../actors/event_index.ts";
import { eventWrites, type StoredEvent } from "../actors/event_store.ts";
import { writeAll } from "../lib/edge/commit_batch.ts";
import { completeConfig, parseConfig } from "../lib/edge/config.ts";
import type { Write } from "../lib/edge/kv.ts";
import { realIds, realNow, realRandom } from "../lib/edge/ports.ts";
import { buildEnvelope } from "../lib/envelope.ts";
import { countDuration } from "../lib/histogram.ts";
import {
  type EndpointId,
  type EventId,
  type EventKey,
  firstDelivery,
  type TenantId,
  ulidFrom,
} from "../lib/ids.ts";
import { type AttemptRow, type HourRow, keys, permission } from "../lib/keys.ts";
import { DAY_MS, HOUR_MS } from "../lib/limits.ts";
import { type Server, startServer } from "../main.ts";
import { Visitor } from "../tests/console/support.ts";
import { EVENT_TYPE, invoice } from "./payload.ts";

const TARGET_MS = 100;
const ENDPOINTS = 20, PER_COMMIT = 180, VISITS = 15;

const n = Number(Deno.args[0] ?? 1_000_000);
const folder = await Deno.makeTempDir();
const parsed = parseConfig({ PM_PORT: "0", PM_KV_PATH: `${folder}/pm.db`, PM_LOG: "off" });
const config = await completeConfig(parsed, realRandom);
const server = await startServer(config);
let slow = 0;
try {
  const { key, tenant, endpoints } = await prepare(server, config.secrets.keyPepper.bytes);
  const last = await fill(server, tenant, endpoints);
  const visitor = new Visitor({ fetch: server.fetch } as Visitor["api"], `http://127.0.0.1:${server.port}`);
  await visitor.signIn(key);
  const base = `/console/${tenant}`, endpoint = `/console/endpoints/${endpoints[0]}`;
  const pages = {
    overview: base,
    endpoints: `${base}/endpoints`,
    endpoint,
    "endpoint, failed only": `${endpoint}?status=failed`,
    events: `${base}/events`,
    event: `/console/events/${last}`,
    "live tail": `${base}/live`,
    "whole service": "/console/platform",
    audit: `${base}/audit`,
  };
  for (const [name, path] of Object.entries(pages)) {
    const ms = await median(visitor, path);
    if (ms > TARGET_MS) slow++;
    console.log(
      `${name.padEnd(24)} ${ms.toFixed(1).padStart(8)} ms${ms > TARGET_MS ? `  over ${TARGET_MS} ms` : ""}`,
    );
  }
} finally {
  await server.stop();
  await Deno.remove(folder, { recursive: true });
}
Deno.exit(slow === 0 ? 0 : 1);

async function prepare(server: Server, pepper: Uint8Array) {
  const { kv, committer } = server.services;
  const { secret: key } = await createKey(
    { kv, committer, now: realNow, ids: realIds(), random: realRandom, pepper, mode: "test" },
    { name: "bench", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  const call = async (method: string, path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = new Request(`http://127.0.0.1${path}`, { method, headers, body: JSON.stringify(body) });
    return await (await server.fetch(request)).json();
  };
  const tenant: TenantId = (await call("POST", "/v1/tenants", { slug: "bench", name: "Bench" })).id;
  const endpoints: EndpointId[] = [];
  for (let i = 0; i < ENDPOINTS; i++) {
    const url = `https://hooks${i}.example.com/in`;
    endpoints.push((await call("POST", `/v1/tenants/${tenant}/webhooks`, { url, events: ["*"] })).id);
  }
  return { key, tenant, endpoints };
}

/** N events, each delivered to one endpoint, one in fifty failed; and the hours the pages draw. */
async function fill(server: Server, tenant: TenantId, endpoints: EndpointId[]): Promise<EventId> {
  const { kv } = server.services;
  const from = realNow() - DAY_MS;
  const hours = new Map<string, HourRow>();
  let last = "" as EventId;
  for (let done = 0; done < n;) {
    const commit = kv.atomic(), events: StoredEvent[] = [];
    const attempts = new Map(endpoints.map((endpoint) => [endpoint, [] as AttemptRow[]]));
    for (let i = 0; i < PER_COMMIT && done < n; i++, done++) {
      const at = Math.floor(from + (DAY_MS - 1_000) * done / n);
      const event = eventOf(tenant, at, done);
      const endpoint = endpoints[done % ENDPOINTS]!;
      last = event.id;
      events.push(event);
      writeAll(commit, eventWrites(event));
      attempts.get(endpoint)!.push(attemptOf(event, endpoint, done % 50 === 0));
      for (const subject of [endpoint, "all"]) count(hours, subject, at, done % 50 === 0);
    }
    writeAll(commit, indexWrites(events));
    for (const [endpoint, rows] of attempts) writeAll(commit, recorded(endpoint, rows));
    await commit.commit();
  }
  for (const [name, row] of hours) {
    const [subject, hour] = name.split(" ");
    await kv.atomic().set(keys.hour(subject!, Number(hour), "bench"), row).commit();
  }
  return last;
}

function eventOf(tenant: TenantId, at: number, i: number): StoredEvent {
  const key = ulidFrom(at, realRandom.bytes(10)) as EventKey, id = `evt_${key}` as EventId;
  const scope = { tenant, partner: null, identity: null, about: null };
  const envelope = { id, type: EVENT_TYPE, occurredAt: at, tenant, identity: null, sequence: i + 1 };
  const body = buildEnvelope({ ...envelope, data: invoice(i) });
  return {
    key,
    id,
    type: EVENT_TYPE,
    ...scope,
    kind: "custom",
    owner: `o-${i % 1_000}`,
    seq: i + 1,
    at,
    body,
  };
}

function attemptOf(event: StoredEvent, endpoint: EndpointId, failed: boolean): AttemptRow {
  return {
    id: firstDelivery(endpoint, event.key),
    event: event.key,
    event_id: event.id,
    event_type: event.type,
    tenant_id: event.tenant,
    attempt: 1,
    first_attempt: 1,
    status: failed ? "failed" : "succeeded",
    http_status: failed ? 500 : 204,
    error: failed ? "status_5xx" : null,
    duration_ms: 12,
    next_attempt_at: null,
    created_at: event.at,
  };
}

/** Those that succeeded are their pairs' state themselves. */
function recorded(endpoint: EndpointId, rows: AttemptRow[]): Write[] {
  const failed = rows.filter(({ status }) => status === "failed");
  return [
    ...firstWrites(endpoint, { named: rows.filter((row) => !failed.includes(row)), late: [] }),
    ...failed.flatMap((row): Write[] => [
      attemptWrite(endpoint, row),
      pairWrite(endpoint, row.event, null, row),
    ]),
  ];
}

function count(hours: Map<string, HourRow>, subject: string, at: number, failed: boolean): void {
  const name = `${subject} ${Math.floor(at / HOUR_MS) * HOUR_MS}`;
  const row = hours.get(name) ?? { succeeded: 0, failed: 0, dead: 0, took: [], latency: [] };
  hours.set(name, row);
  row[failed ? "failed" : "succeeded"]++;
  countDuration(row.took, 12);
  if (!failed) countDuration(row.latency, 40);
}

async function median(visitor: Visitor, path: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < VISITS; i++) {
    const start = performance.now();
    const { status } = await visitor.get(path);
    times.push(performance.now() - start);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
  }
  return times.sort((a, b) => a - b)[VISITS >> 1]!;
}

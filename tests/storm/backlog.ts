/**
 * A system over a KV file with more due rows than it can take at once: real clock, real timers, real commits. Receivers are
 * functions, so that a test counts what the system does and not what sockets cost.
 */
import { makeSystem, type System } from "../../actors/system.ts";
import { indexWrites } from "../../actors/event_index.ts";
import { eventWrites, type StoredEvent } from "../../actors/event_store.ts";
import { writeAll } from "../../lib/edge/commit_batch.ts";
import { dueOf, makeJobs } from "../../lib/edge/jobs.ts";
import { openKv } from "../../lib/edge/open_kv.ts";
import { realClock, realIds, realNow, realRandom, realTimers } from "../../lib/edge/ports.ts";
import { buildEnvelope } from "../../lib/envelope.ts";
import type { EndpointId, EventId, EventKey, TenantId } from "../../lib/ids.ts";
import { type DeliverItem, type EndpointRow, keys, type TenantRow } from "../../lib/keys.ts";
import { classifyResponse } from "../../lib/outcome.ts";
import { nextDelayMs } from "../../lib/schedule.ts";
import { watch } from "../support/watched_kv.ts";

export const MAX_IN_FLIGHT = 512;
export const MAX_PER_ENDPOINT = 32;
const TENANT = "ten_01STORM0000000000000000000" as TenantId;
const ROWS_PER_COMMIT = 300;

export interface BacklogOptions {
  /** Shards of the job rows. Default 8. */
  shards?: number;
  /** `PM_RETRY_SCALE`. Default 1. */
  retryScale?: number;
}

export interface Backlog extends AsyncDisposable {
  /** Endpoints, in the order they were asked for. */
  readonly endpoints: EndpointId[];
  /** Sends that began, by endpoint. */
  readonly sent: Map<EndpointId, number>;
  /** The most sends there were under way at once. */
  maxOpen: number;
  /** Job rows written or deleted since the start. */
  jobWrites: number;
  readonly recorded: () => number;
  /** Faults of ours. */
  readonly failures: { what: string; error: unknown }[];
  /** Rows of `count` new events due now, one item a row, on the endpoint. Before `start`. */
  seed(endpoint: EndpointId, count: number): Promise<void>;
  start(): Promise<System>;
  /** Due times of the job rows that are there. */
  dues(): Promise<number[]>;
}

/** What a receiver does: answers after so many ms with a status. */
export type Receive = (endpoint: EndpointId) => { ms: number; status: number };

export async function openBacklog(
  endpoints: number,
  receive: Receive,
  { shards = 8, retryScale = 1 }: BacklogOptions = {},
): Promise<Backlog> {
  const folder = await Deno.makeTempDir({ prefix: "pm-storm-" });
  const { kv: store, maxInFlight: commitsInFlight } = await openKv(`${folder}/pm.db`);
  const kv = watch(store), ids = realIds();
  const rows = Array.from({ length: endpoints }, () => endpointRow(ids.next("endpoint")));
  for (let i = 0; i < rows.length; i += ROWS_PER_COMMIT) {
    const commit = store.atomic().set(keys.tenant(TENANT), tenantRow);
    for (const row of rows.slice(i, i + ROWS_PER_COMMIT)) {
      commit.set(keys.endpoint(row.id), row);
      commit.set(keys.endpointOfScope({ level: "tenant", tenant: TENANT }, row.id), true);
    }
    await commit.commit();
  }
  const sent = new Map<EndpointId, number>();
  const under = waits();
  let open = 0, recorded = 0;
  let system: System | null = null;

  const backlog: Backlog = {
    endpoints: rows.map((row) => row.id),
    sent,
    maxOpen: 0,
    jobWrites: 0,
    recorded: () => recorded,
    failures: [],
    async seed(endpoint, count) {
      const jobs = makeJobs({
        now: realNow,
        ulid: ids.ulid,
        instance: "seed",
        shards,
        doorbell: false,
      });
      for (let done = 0; done < count;) {
        const commit = store.atomic(), events: StoredEvent[] = [];
        for (let i = 0; i < ROWS_PER_COMMIT / 3 && done < count; i++, done++) {
          const event = eventOf(ids.ulid() as EventKey);
          events.push(event);
          const { key, id, type } = event;
          const item: DeliverItem = { event: key, id, type, attempt: 1, first: 1, replay: false };
          writeAll(commit, eventWrites(event));
          writeAll(commit, jobs.write({ v: 1, kind: "deliver", endpoint, items: [item] }, realNow()).writes);
        }
        writeAll(commit, indexWrites(events));
        await commit.commit();
      }
    },
    async start() {
      kv.beforeCommit = (written) => {
        for (const key of written) if (key[0] === keys.jobs()[0]) backlog.jobWrites++;
      };
      system = makeSystem({
        kv,
        ports: { now: realNow, clock: realClock, timers: realTimers, random: realRandom, ids },
        http: {
          check: () => Promise.reject(new Error("nothing is checked here")),
          async send({ url }) {
            const endpoint = new URL(url).pathname.slice(1) as EndpointId;
            sent.set(endpoint, (sent.get(endpoint) ?? 0) + 1);
            backlog.maxOpen = Math.max(backlog.maxOpen, ++open);
            const { ms, status } = receive(endpoint);
            if (ms > 0) await under.wait(ms);
            open--;
            return { durationMs: ms, outcome: classifyResponse(status, null, realNow()) };
          },
        },
        openSecret: () => Promise.resolve(new Uint8Array(32).fill(1)),
        hashKey: new Uint8Array(32).fill(7),
        userAgent: "storm",
        commitsInFlight,
        jobShards: shards,
        maxInFlight: MAX_IN_FLIGHT,
        maxPerEndpoint: MAX_PER_ENDPOINT,
        nextDelayMs: (k, retryAfter) => nextDelayMs(k, realRandom.unit(), retryAfter, retryScale),
        doorbell: false,
        hotHandOff: true,
        observer: {
          fanned() {},
          recorded: () => void recorded++,
          disabled() {},
          failed: (what, error) => void backlog.failures.push({ what, error }),
        },
      });
      await system.start();
      return system;
    },
    async dues() {
      const dues: number[] = [];
      for await (const { key } of store.list({ prefix: keys.jobs() })) dues.push(dueOf(key));
      return dues;
    },
    async [Symbol.asyncDispose]() {
      const stopped = system?.stop(1_000);
      under.endAll();
      await stopped;
      store.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
  return backlog;
}

/** Waits that a test's end cuts short. */
function waits() {
  const ends = new Set<() => void>();
  return {
    wait: (ms: number) =>
      new Promise<void>((resolve) => {
        const end = () => (ends.delete(end), realTimers.cancel(timer), resolve());
        const timer = realTimers.after(ms, end);
        ends.add(end);
      }),
    endAll: () => ends.forEach((end) => end()),
  };
}

const tenantRow: TenantRow = {
  id: TENANT,
  partner_id: null,
  slug: "storm",
  name: "Storm",
  policy: { webhook_text_bytes: 16_384, retention: { events_days: 30 } },
  created_at: 0,
  updated_at: 0,
};

const endpointRow = (id: EndpointId): EndpointRow => ({
  id,
  tenant_id: TENANT,
  partner_id: null,
  url: `https://hooks.example.com/${id}`,
  events: ["*"],
  identity_ids: null,
  description: null,
  enabled: true,
  disabled_reason: null,
  secret_enc: "x",
  prev_secret_enc: null,
  prev_secret_expires_at: null,
  created_at: 0,
  updated_at: 0,
  deleted_at: null,
});

function eventOf(key: EventKey): StoredEvent {
  const id = `evt_${key}` as EventId, type = "order.paid", at = realNow();
  const body = buildEnvelope({
    id,
    type,
    occurredAt: at,
    tenant: TENANT,
    identity: null,
    sequence: 1,
    data: { n: "1" },
  });
  const scope = { tenant: TENANT, partner: null, identity: null, about: null };
  return { key, id, type, ...scope, kind: "custom", owner: "o", seq: 1, at, body };
}

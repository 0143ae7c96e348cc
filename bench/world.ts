/**
 * The system as `main.ts` wires it, on a KV file, without its HTTP side: real clock, real sockets, the defaults of the
 * configuration. One tenant, and endpoints at the bench's receiver.
 */
import { makeSystem, type System } from "../actors/system.ts";
import { secretAad } from "../actors/secrets.ts";
import { makeDialer } from "../lib/edge/dialer.ts";
import { makeGuardedHttp, permits } from "../lib/edge/http.ts";
import { openKv } from "../lib/edge/open_kv.ts";
import { realClock, realIds, realNow, realRandom, realTimers } from "../lib/edge/ports.ts";
import { makeSealer } from "../lib/edge/seal.ts";
import type { EndpointId, TenantId } from "../lib/ids.ts";
import { type EndpointRow, keys, type TenantRow } from "../lib/keys.ts";
import { nextDelayMs } from "../lib/schedule.ts";
import { EVENT_TYPE, invoice, SECRET } from "./payload.ts";

export const TENANT = "ten_01BENCH0000000000000000000" as TenantId;
export const MASTER_KEY = new Uint8Array(32).fill(7);
export const HASH_KEY = new Uint8Array(32).fill(9);
const OWNERS = 1_000;
/** The defaults of lib/edge/config.ts. */
const DEFAULTS = { maxInFlight: 512, maxPerEndpoint: 32, jobShards: 8 };

export interface WorldOptions {
  /** KV file. */
  file: string;
  /** Where the receiver listens: `http://127.0.0.1:port`. */
  origin: string;
  /** Paths there, an endpoint each. */
  paths: string[];
  /** False: appends leave due jobs, as on a platform that stops idle instances. Default true. */
  hotHandOff?: boolean;
  /** Added to the clock. */
  shiftMs?: number;
}

export interface World {
  system: System;
  kv: Deno.Kv;
  /** Attempts recorded so far, by status. */
  recorded(): number;
  /** Appends event `i` to one of the thousand owners; resolves when it is durable. */
  append(i: number): Promise<unknown>;
  /** Resolves when `count` more attempts have been recorded than at the time of the call. */
  until(count: number): Promise<void>;
  close(): Promise<void>;
}

export const endpointId = (i: number): EndpointId =>
  `whk_01BENCH${String(i).padStart(19, "0")}` as EndpointId;

export async function openWorld(options: WorldOptions): Promise<World> {
  const { kv, maxInFlight: commitsInFlight } = await openKv(options.file);
  const now = options.shiftMs === undefined ? realNow : () => realNow() + options.shiftMs!;
  const host = new URL(options.origin).host;
  const rules = { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set([host]) };
  const dialer = makeDialer({
    timers: realTimers,
    clock: () => performance.now(),
    permits: permits(rules),
  });
  const resolver = { resolve: () => Promise.reject(new Error("no name is looked up here")) };
  const http = makeGuardedHttp({ rules, resolver, dialer, timers: realTimers, now });
  const sealer = makeSealer(MASTER_KEY, null, realRandom);
  await seedEndpoints(kv, options, sealer.seal);

  let recorded = 0, waiting: { at: number; wake(): void }[] = [];
  const system = makeSystem({
    ...DEFAULTS,
    kv,
    ports: { now, clock: realClock, timers: realTimers, random: realRandom, ids: realIds() },
    http,
    openSecret: sealer.open,
    hashKey: HASH_KEY,
    userAgent: "PylotaMail/bench",
    commitsInFlight,
    nextDelayMs: (k, retryAfterMs) => nextDelayMs(k, realRandom.unit(), retryAfterMs),
    doorbell: options.shiftMs === undefined,
    hotHandOff: options.hotHandOff ?? true,
    observer: {
      fanned() {},
      recorded() {
        recorded++;
        if (waiting.length > 0 && recorded >= waiting[0]!.at) waiting.shift()!.wake();
      },
      disabled: (endpoint, reason) => console.error("disabled", endpoint, reason),
      failed: (what, error) => console.error("failed", what, error),
    },
  });
  const listening = kv.listenQueue(() => system.doorbell());
  return {
    system,
    kv,
    recorded: () => recorded,
    append: (i) =>
      system.owners.run(
        { kind: "custom", tenant: TENANT, id: `account-${i % OWNERS}` },
        (tx) => tx.append({ type: EVENT_TYPE, data: invoice(i) }),
      ),
    until: (count) =>
      new Promise((wake) => {
        waiting.push({ at: recorded + count, wake });
        waiting = waiting.sort((a, b) => a.at - b.at);
      }),
    async close() {
      await system.stop(1_000);
      await dialer.close();
      kv.close();
      await listening.catch(() => {});
    },
  };
}

async function seedEndpoints(
  kv: Deno.Kv,
  { origin, paths }: WorldOptions,
  seal: (bytes: Uint8Array<ArrayBuffer>, aad: string) => Promise<string>,
): Promise<void> {
  const tenant: TenantRow = {
    id: TENANT,
    partner_id: null,
    slug: "bench",
    name: "Bench",
    policy: { webhook_text_bytes: 16_384, retention: { events_days: 30 } },
    created_at: 0,
    updated_at: 0,
  };
  const commit = kv.atomic().set(keys.tenant(TENANT), tenant).set(
    keys.endpointsRevision(),
    crypto.randomUUID(),
  );
  for (const [i, path] of paths.entries()) {
    const id = endpointId(i);
    const row: EndpointRow = {
      id,
      tenant_id: TENANT,
      partner_id: null,
      url: origin + path,
      events: ["*"],
      identity_ids: null,
      description: null,
      enabled: true,
      disabled_reason: null,
      secret_enc: await seal(SECRET, secretAad("secret_enc", id)),
      prev_secret_enc: null,
      prev_secret_expires_at: null,
      created_at: 0,
      updated_at: 0,
      deleted_at: null,
    };
    commit.set(keys.endpoint(id), row);
    commit.set(keys.endpointOfScope({ level: "tenant", tenant: TENANT }, id), true);
  }
  await commit.commit();
}

/** One isolate of a world: the system with its own ids, committer, caches and timers over the shared store. */
import type { EndpointDeps } from "../../actors/endpoints.ts";
import { makeSystem, type System } from "../../actors/system.ts";
import type { TenancyDeps } from "../../actors/tenancy.ts";
import { makeGuardedHttp } from "../../lib/edge/http.ts";
import type { Random } from "../../lib/edge/ports.ts";
import { makeSealer } from "../../lib/edge/seal.ts";
import { type Ids, makeIds } from "../../lib/ids.ts";
import { nextDelayMs } from "../../lib/schedule.ts";
import type { UrlRules } from "../../lib/ssrf/url.ts";
import { watch, type WatchedKv } from "./watched_kv.ts";
import type { World } from "./world.ts";

export interface IsolateOptions {
  maxInFlight?: number;
  maxPerEndpoint?: number;
  jobShards?: number;
  doorbell?: boolean;
  hotHandOff?: boolean;
  commitsInFlight?: number;
  notifications?: boolean;
}

/** One isolate: the system with its own ids, committer, caches and timers. */
export interface Isolate {
  name: string;
  system: System;
  ids: Ids;
  /** This isolate's own view of the shared store. */
  kv: WatchedKv;
  /** What its observer was told, newest last. */
  failures: { what: string; error: unknown }[];
  recorded: { kind: string; dead: boolean }[];
  disabled: { endpoint: string; reason: string }[];
  /** Ids of events that did not reach the Notifier. */
  notHandedOff: string[];
  tenancy: TenancyDeps;
  endpoints: EndpointDeps;
  crashed: boolean;
  /** kill -9: its timers are gone and its store answers no more. */
  crash(): void;
}

const HASH_KEY = new Uint8Array(32).fill(7);
const RULES: UrlRules = {
  apiHost: "api.pylota.example.com",
  consoleHost: null,
  platformDomain: null,
  allowedTargets: new Set(),
};

export function makeIsolate(w: World, name: string, options: IsolateOptions): Isolate {
  const { timers, drop } = w.time.group();
  const kv = watch(w.store);
  const ids = makeIds(w.now, w.unit);
  const random: Random = {
    bytes: (length) => Uint8Array.from({ length }, () => Math.floor(w.unit() * 256)),
    unit: w.unit,
  };
  const sealer = makeSealer(new Uint8Array(32).fill(1), null, random);
  const http = makeGuardedHttp({
    rules: RULES,
    resolver: w.net.resolver,
    dialer: w.net.dialer(name, timers),
    timers,
    now: w.now,
  });
  const failures: Isolate["failures"] = [];
  const recorded: Isolate["recorded"] = [];
  const disabled: Isolate["disabled"] = [];
  const notHandedOff: string[] = [];
  const settings = {
    commitsInFlight: 1,
    jobShards: 4,
    maxInFlight: 512,
    maxPerEndpoint: 32,
    doorbell: false,
    hotHandOff: true,
    ...options,
  };
  const system = makeSystem({
    kv,
    ports: { now: w.now, clock: () => w.time.now, timers, random, ids },
    http,
    openSecret: (sealed, aad) => during(kv, sealer.open(sealed, aad)),
    hashKey: HASH_KEY,
    userAgent: "PylotaMail/1.0 (+https://github.com/PILOTAAI/pylota-mail)",
    nextDelayMs: (k, retryAfter) => nextDelayMs(k, w.unit(), retryAfter),
    observer: {
      fanned: () => {},
      recorded: ({ kind }, dead) => void recorded.push({ kind, dead }),
      disabled: (endpoint, reason) => void disabled.push({ endpoint, reason }),
      handOffFailed: ({ id }) => void notHandedOff.push(id),
      failed: (what, error) => void failures.push({ what, error }),
    },
    ...settings,
  });
  const shared = { kv, committer: system.committer, now: w.now, ids };
  const isolate: Isolate = {
    name,
    system,
    ids,
    kv,
    failures,
    recorded,
    disabled,
    notHandedOff,
    tenancy: { ...shared, jobs: system.jobs },
    endpoints: { ...shared, random, sealer, guard: http },
    crashed: false,
    crash() {
      isolate.crashed = true;
      drop();
      const dead = () => new Promise<never>(() => {});
      kv.beforeCommit = dead;
      kv.beforeRead = dead;
    },
  };
  return isolate;
}

async function during<T>(kv: WatchedKv, promise: Promise<T>): Promise<T> {
  const counter = kv as { busy: number };
  counter.busy++;
  try {
    return await promise;
  } finally {
    counter.busy--;
  }
}

/**
 * What handlers get besides the request: the store, the actors behind it and the ports. `main.ts` builds one for the
 * process; a test builds its own. Everything here is an interface, so routes know no implementation but the actors they call.
 */
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Random, Timers } from "../lib/edge/ports.ts";
import type { EndpointId, EventId, EventKey, Id, Ids, PartnerId } from "../lib/ids.ts";
import type { AttemptRow, AttemptStatus, DeadLetter } from "../lib/keys.ts";
import type { Owners } from "../actors/owner.ts";

/** What the routes read of the configuration. */
export interface RouteConfig {
  /** `PM_HASH_KEY`: MACs of cursors, deterministic ids, fingerprints of idempotent requests. */
  hashKey: Uint8Array<ArrayBuffer>;
  /** `PM_KEY_PEPPER`: the HMAC key of stored API keys. */
  keyPepper: Uint8Array<ArrayBuffer>;
  /** Which prefix new keys carry: `pmk_live_` in production, else `pmk_test_`. */
  keyMode: "live" | "test";
  /** `PM_METRICS=open`: `/metrics` answers without a key. */
  metricsOpen: boolean;
  /** Milliseconds a client may take to send a body. */
  bodyDeadlineMs: number;
  /** The release, shown by `/health` and the OpenAPI document. */
  version: string;
  /** How deliveries leave: `socket` (pinned address) or `fetch` (the fall-back). Shown by `/health`. */
  transport: "socket" | "fetch";
}

/** JSON lines with typed fields only: ids, codes, counts, durations (reference §9). */
export interface Log {
  info(event: string, fields?: Record<string, LogValue>): void;
  warn(event: string, fields?: Record<string, LogValue>): void;
  error(event: string, fields?: Record<string, LogValue>): void;
}
export type LogValue = string | number | boolean | null | undefined;

/** Counters, histograms and their Prometheus text (reference §8). */
export interface Metrics {
  /** Adds to a counter. */
  count(name: string, labels?: Record<string, string>, by?: number): void;
  /** Adds to a histogram. */
  observe(name: string, value: number, labels?: Record<string, string>): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels?: Record<string, string>): void;
  /** The Prometheus text exposition. */
  render(): string;
}

/** Seals and opens signing secrets (reference §7). `aad` is the whole associated data. */
export interface Sealer {
  seal(plain: Uint8Array<ArrayBuffer>, aad: string): Promise<string>;
  /** Rejects when the value does not open under any key with this associated data. */
  open(sealed: string, aad: string): Promise<Uint8Array<ArrayBuffer>>;
}

/** The SSRF guard at create and update: URL rules and resolved answers (reference §6). `null`: the URL passes. */
export type CheckUrl = (url: string) => Promise<{ rule: string } | null>;

/** By ids, or by a window of `occurred_at` (half-open, Unix ms) with an optional state of the pair. */
export type ReplayRequest =
  | { event_ids: EventId[] }
  | { since: number; until: number; status?: AttemptStatus };

/** The delivery side, as routes see it. */
export interface Deliveries {
  /** One synchronous attempt of a `webhook.test` event; the row it recorded. */
  test(endpoint: EndpointId): Promise<AttemptRow>;
  /** Queues a replay. Over 1,000 events: `invalid_request`. */
  replay(endpoint: EndpointId, request: ReplayRequest): Promise<{ queued: number }>;
  /** Queues one event again for one endpoint, as a replay of it. */
  redeliver(endpoint: EndpointId, event: EventKey): Promise<{ queued: number }>;
  /** Puts a dead letter's job back and removes the item; null when it is not there. */
  redrive(id: Id<"deadLetter">): Promise<DeadLetter | null>;
  /** Moves what is parked under a partner back to the job rows, after its reactivation. */
  unpark(partner: PartnerId): Promise<void>;
}

/** One check of `GET /ready`. */
export interface ReadyCheck {
  name: string;
  ok: boolean;
}

export interface Services {
  kv: Kv;
  committer: Committer;
  owners: Owners;
  now(): number;
  timers: Timers;
  ids: Ids;
  random: Random;
  config: RouteConfig;
  log: Log;
  metrics: Metrics;
  sealer: Sealer;
  checkUrl: CheckUrl;
  deliveries: Deliveries;
  ready(): Promise<ReadyCheck[]>;
}

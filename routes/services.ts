/**
 * What handlers get besides the request: the store, the actors behind it and the ports. `main.ts` builds one for the
 * process; a test builds its own. Everything here is an interface, so routes know no implementation but the actors they call.
 */
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { Log } from "../lib/edge/log.ts";
import type { Metrics } from "../lib/edge/metrics.ts";
import type { Random, Timers } from "../lib/edge/ports.ts";
import type { EndpointId, EventKey, Id, Ids, PartnerId } from "../lib/ids.ts";
import type { AttemptRow, DeadLetter, EndpointRow } from "../lib/keys.ts";
import type { GuardedHttp } from "../lib/edge/http.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Sealer } from "../lib/edge/seal.ts";
import type { Owners } from "../actors/owner.ts";
import type { StoredEvent } from "../actors/event_store.ts";
import type { EventTypes } from "../actors/event_types.ts";
import type { Selection } from "../actors/replay.ts";
import type { EndpointTrace } from "../actors/trace.ts";
import type { KeyCache } from "./auth.ts";

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
  /** `PM_CONSOLE_HOST`: the host of the console's own links; without it the one a request named. */
  consoleHost?: string | null;
  /** How deliveries leave: `socket` (pinned address) or `fetch` (the fall-back). Shown by `/health`. */
  transport: "socket" | "fetch";
  /** What an operator should know of how it is set up, in words. Shown by `/health`. */
  notes?: readonly string[];
}

/** The delivery side, as routes see it. */
export interface Deliveries {
  /** One synchronous attempt of a `webhook.test` event; the row it recorded. `extra` rows (audit) ride with its commit. */
  test(endpoint: EndpointId, extra: Write[]): Promise<AttemptRow>;
  /** Queues a replay. Over 1,000 events: `invalid_request`. `extra` as above. */
  replay(endpoint: EndpointId, selection: Selection, extra: Write[]): Promise<{ queued: number }>;
  /** What a replay would queue now, with the number of each first attempt; changes nothing. */
  previewReplay(
    endpoint: EndpointId,
    selection: Selection,
  ): Promise<{ key: EventKey; first: number }[]>;
  /** Puts a dead letter's job back and removes the item in one commit; null when it is not there. `extra` as above. */
  redrive(id: Id<"deadLetter">, extra: Write[]): Promise<DeadLetter | null>;
  /** What became of an event at the endpoints the caller may know of, and what comes next. */
  trace(event: StoredEvent, shown: (endpoint: EndpointRow) => boolean): Promise<EndpointTrace[]>;
  /** Moves what is parked under a partner back to the job rows, after its reactivation. */
  unpark(partner: PartnerId): Promise<void>;
}

/** One check of `GET /ready`. */
export interface ReadyCheck {
  name: string;
  ok: boolean;
  /** In words: what is wrong, or what is well. */
  message?: string;
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
  sealer: Pick<Sealer, "seal" | "open">;
  /** Judges a URL at create and update (reference §6). */
  guard: Pick<GuardedHttp, "check">;
  deliveries: Deliveries;
  /** The tenants' own event types, with their compiled schemas cached. */
  eventTypes: EventTypes;
  /** Writes the Fanout row of a platform event; `poke` wakes the pump once it is committed. */
  jobs: Pick<Jobs, "write" | "shards">;
  poke(): void;
  keyCache: KeyCache;
  ready(): Promise<ReadyCheck[]>;
}

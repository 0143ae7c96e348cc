/**
 * Keep-alive connections, pooled by origin AND judged address: a socket of a lane leads to that address and nowhere else
 * (D3), while the name stays in SNI, in `Host` and in the certificate check. Least recently used lanes make room.
 *
 * A lane hands out whole undici `Client`s, one request each, instead of using undici's `Pool`: a `Pool` without a cap opens
 * a second connection while the first is a tick away from being free, and one with a cap queues an attempt behind others
 * while its deadline runs. How many connections are open is bounded by the attempts in flight.
 */
import type { LookupFunction } from "node:net";
import { buildConnector, Client } from "undici";
import { literalOf } from "../ssrf/url.ts";
import { CONNECT_TIMEOUT_MS, KEEP_ALIVE_MS, MAX_POOLS, POOL_IDLE_MS } from "../limits.ts";

export interface PoolOptions {
  /** Monotonic ms. */
  clock: () => number;
  /** The guard's word on (URL, address): asked again when a lane is made, whoever calls. */
  permits: (url: URL, address: string) => boolean;
  /** PEM of a private certificate authority to trust instead of the platform's. */
  ca?: string;
  maxPools?: number;
}

/** The connections to one judged address of one origin. */
export class Lane {
  usedAt = 0;
  readonly #connector: buildConnector.connector;
  readonly #idle: Client[] = [];
  readonly #busy = new Set<Client>();
  #retired = false;

  constructor(readonly url: URL, address: string, ca: string | undefined) {
    this.#connector = buildConnector({
      lookup: pinnedLookup(url.hostname, address),
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: true, // said aloud: NODE_TLS_REJECT_UNAUTHORIZED must not turn it off
      autoSelectFamily: false,
      ...(ca === undefined ? {} : { ca }),
    });
  }

  /** The client used last, whose connection is the most likely to be alive, or a new one. */
  take(): Client {
    const client = this.#idle.pop() ?? this.#make();
    this.#busy.add(client);
    return client;
  }

  /** Takes a client back. After anything but a complete answer (`clean`) its connection is not used again. */
  release(client: Client, clean: boolean): void {
    this.#busy.delete(client);
    if (clean && !this.#retired) this.#idle.push(client);
    else queueMicrotask(() => drop(client)); // undici is still at work on it when it reports an error
  }

  /** Closes idle connections now and busy ones when they are done. */
  retire(): void {
    this.#retired = true;
    for (const client of this.#idle.splice(0)) drop(client);
  }

  async destroy(): Promise<void> {
    this.#retired = true;
    await Promise.all([...this.#idle.splice(0), ...this.#busy].map((client) => client.destroy()));
  }

  get isBusy(): boolean {
    return this.#busy.size > 0;
  }

  #make(): Client {
    return new Client(partsOf(this.url).origin, {
      connect: this.#connector,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      headersTimeout: 0, // the attempt's own deadline covers both
      bodyTimeout: 0,
      maxHeaderSize: 16_384,
    });
  }
}

const parts = new WeakMap<URL, { origin: string; path: string }>();

/** What a request needs of a URL. A `URL` cuts its text anew each time it is asked, and the same few are asked all the time. */
export function partsOf(url: URL): { origin: string; path: string } {
  let known = parts.get(url);
  if (known === undefined) {
    known = { origin: url.origin, path: url.pathname + url.search };
    parts.set(url, known);
  }
  return known;
}

export class Pools {
  readonly #lanes = new Map<string, Lane>(); // in order of use
  readonly #retired = new Set<Lane>();
  #sweptAt: number;

  constructor(readonly options: PoolOptions) {
    this.#sweptAt = options.clock();
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** The lane to this address for this URL's origin, or null when the guard does not permit it. `now` on `clock`. */
  get(url: URL, address: string, now: number): Lane | null {
    const key = `${partsOf(url).origin} ${address}`;
    let lane = this.#lanes.get(key);
    if (lane) this.#lanes.delete(key);
    else {
      if (!this.#permitted(url, address)) return null;
      lane = new Lane(url, address, this.options.ca);
    }
    lane.usedAt = now;
    this.#lanes.set(key, lane);
    if (this.#lanes.size > (this.options.maxPools ?? MAX_POOLS)) this.#retireOldest();
    if (now - this.#sweptAt > POOL_IDLE_MS) this.#sweep(now);
    return lane;
  }

  /** Ends every socket now. */
  async destroy(): Promise<void> {
    const lanes = [...this.#retired, ...this.#lanes.values()];
    this.#lanes.clear();
    this.#retired.clear();
    await Promise.all(lanes.map((lane) => lane.destroy()));
  }

  /** For an IP literal the look-up hook never runs, so the literal itself must be the judged address. */
  #permitted(url: URL, address: string): boolean {
    const literal = literalOf(url.hostname);
    return (literal === null || literal === address) && this.options.permits(url, address);
  }

  #retireOldest(): void {
    for (const key of this.#lanes.keys()) return this.#retire(key);
  }

  #sweep(now: number): void {
    this.#sweptAt = now;
    for (const lane of this.#retired) if (!lane.isBusy) this.#retired.delete(lane);
    for (const [key, lane] of this.#lanes) {
      if (now - lane.usedAt <= POOL_IDLE_MS) break;
      this.#retire(key);
    }
  }

  #retire(key: string): void {
    const lane = this.#lanes.get(key)!;
    this.#lanes.delete(key);
    lane.retire();
    if (lane.isBusy) this.#retired.add(lane); // so that `destroy` finds its sockets
  }
}

/** Answers with the judged address; calls back later and never throws, as node:net expects of a look-up. */
export function pinnedLookup(judgedHost: string, address: string): LookupFunction {
  const family = address.includes(":") ? 6 : 4;
  return (host, options, done) =>
    queueMicrotask(() => {
      if (host !== judgedHost) {
        done(Object.assign(new Error("not the judged host"), { code: "ssrf_blocked" }), "");
      } else if (options.all) done(null, [{ address, family }]);
      else done(null, address, family);
    });
}

/** A client that fails to be destroyed holds no socket any more. */
const drop = (client: Client): void => void client.destroy().catch(() => {});

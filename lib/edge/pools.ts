/**
 * Keep-alive pools, one per origin AND judged address: a socket of a pool leads to that address and nowhere else (D3),
 * while the name stays in SNI, in `Host` and in the certificate check. Least recently used pools make room; idle ones close.
 */
import type { LookupFunction } from "node:net";
import { Pool } from "undici";
import { literalOf } from "../ssrf/url.ts";
import { CONNECT_TIMEOUT_MS, KEEP_ALIVE_MS, MAX_POOLS, POOL_IDLE_MS } from "../limits.ts";

export interface PoolOptions {
  /** Monotonic ms. */
  clock: () => number;
  /** The guard's word on (URL, address): asked again when a pool is made, whoever calls. */
  permits: (url: URL, address: string) => boolean;
  /** PEM of a private certificate authority to trust instead of the platform's. */
  ca?: string;
  maxPools?: number;
}

interface Entry {
  pool: Pool;
  usedAt: number;
}

export class Pools {
  readonly #entries = new Map<string, Entry>(); // in order of use
  readonly #closing = new Set<Pool>();
  #sweptAt: number;

  constructor(readonly options: PoolOptions) {
    this.#sweptAt = options.clock();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The pool to this address for this URL's origin, or null when the guard does not permit it. */
  get(url: URL, address: string): Pool | null {
    const key = `${url.origin} ${address}`;
    const now = this.options.clock();
    let entry = this.#entries.get(key);
    if (entry) this.#entries.delete(key);
    else {
      if (!this.#permitted(url, address)) return null;
      entry = { pool: makePool(url, address, this.options.ca), usedAt: now };
    }
    entry.usedAt = now;
    this.#entries.set(key, entry);
    if (this.#entries.size > (this.options.maxPools ?? MAX_POOLS)) this.#retireOldest();
    if (now - this.#sweptAt > POOL_IDLE_MS) this.#sweep(now);
    return entry.pool;
  }

  /** Ends every socket now. */
  async destroy(): Promise<void> {
    const pools = [...this.#closing, ...[...this.#entries.values()].map((entry) => entry.pool)];
    this.#entries.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  /** For an IP literal the look-up hook never runs, so the literal itself must be the judged address. */
  #permitted(url: URL, address: string): boolean {
    const literal = literalOf(url.hostname);
    return (literal === null || literal === address) && this.options.permits(url, address);
  }

  #retireOldest(): void {
    for (const key of this.#entries.keys()) return this.#retire(key);
  }

  #sweep(now: number): void {
    this.#sweptAt = now;
    for (const [key, entry] of this.#entries) {
      if (now - entry.usedAt <= POOL_IDLE_MS) break;
      this.#retire(key);
    }
  }

  /** Requests in flight finish first. */
  #retire(key: string): void {
    const pool = this.#entries.get(key)!.pool;
    this.#entries.delete(key);
    this.#closing.add(pool);
    pool.close().catch(() => {}).finally(() => this.#closing.delete(pool)); // a failed close has nothing left to close
  }
}

function makePool(url: URL, address: string, ca: string | undefined): Pool {
  const family = address.includes(":") ? 6 : 4;
  /** Answers with the judged address; calls back later and never throws, as node:net expects of a look-up. */
  const lookup: LookupFunction = (host, options, done) => {
    queueMicrotask(() => {
      if (host !== url.hostname) {
        return done(Object.assign(new Error("not the judged host"), { code: "ssrf_blocked" }), "");
      }
      return options.all ? done(null, [{ address, family }]) : done(null, address, family);
    });
  };
  return new Pool(url.origin, {
    // One request a connection at a time. How many are open at once is bounded by the attempts in flight.
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: 0, // the attempt's own deadline covers both
    bodyTimeout: 0,
    maxHeaderSize: 16_384,
    connect: {
      lookup,
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: true, // said aloud: NODE_TLS_REJECT_UNAUTHORIZED must not turn it off
      autoSelectFamily: false,
      ...(ca === undefined ? {} : { ca }),
    },
  });
}

/**
 * A handle on the simulated store: the `Kv` port with virtual latency and faults. One an isolate. When its isolate dies
 * nothing that is pending ever settles; what was on its way may still land.
 */
import type { Kv, KvKey } from "../lib/edge/kv.ts";
import type { Timers } from "../lib/edge/ports.ts";
import { SimAtomic } from "./atomic.ts";
import { checkKey, copy, encodeKey } from "./codec.ts";
import type { Bells } from "./bells.ts";
import type { Rng } from "./rng.ts";
import { type CommitCheck, type Mutation, refuse, type Row, type SimStore } from "./store.ts";
import type { StoreFault } from "./weather.ts";

export interface SimKvDeps {
  store: SimStore;
  timers: Timers;
  rng: Rng;
  bells: Bells;
  /** What goes wrong with the next operation; null: nothing. */
  fault(op: "read" | "commit", hasChecks: boolean): StoreFault | null;
  /** Longest latency of a smooth operation, ms. */
  latencyMs: number;
  /** Rows that cannot be read for now, by encoded key. */
  poisoned?: ReadonlySet<string>;
  /** The isolate dies of a fault. */
  died(): void;
  /** Told how long each read took. */
  readTook?(ms: number): void;
}

/** A fault of the store, as a caller sees it. */
export class StoreError extends Error {
  override name = "StoreError";
}

const SLOW_MS = 400;
const MAX_RANGES = 10;

export class SimKv {
  #closed = false;
  #dead = false;

  constructor(readonly d: SimKvDeps) {}

  /** Its isolate is gone. */
  die(): void {
    this.#dead = true;
    this.d.bells.leave(this);
  }

  close(): void {
    this.#closed = true;
    this.d.bells.leave(this);
  }

  get port(): Kv {
    return this as unknown as Kv;
  }

  get(key: KvKey): Promise<unknown> {
    const encoded = encodeKey(key);
    return this.#read(() => (checkKey(encoded, "read"), this.#entry(key, encoded)));
  }

  getMany(keys: readonly KvKey[]): Promise<unknown[]> {
    if (keys.length > MAX_RANGES) {
      return Promise.reject(new TypeError(`Too many ranges (max ${MAX_RANGES})`));
    }
    const encoded = keys.map(encodeKey);
    return this.#read(() => {
      for (const key of encoded) checkKey(key, "read");
      return keys.map((key, i) => this.#entry(key, encoded[i]!));
    });
  }

  /** Pages of `batchSize`, each a read of its own: the rows may change between two. */
  list(selector: Selector, options: ListOptions = {}): AsyncIterableIterator<unknown> {
    const { start, end } = bounds(selector);
    let left = options.limit ?? Infinity;
    if (left < 1) throw new Error(`Limit must be a positive integer: received ${options.limit}`);
    const size = Math.min(options.batchSize ?? Math.min(left, 100), 500);
    const reverse = options.reverse ?? false;
    const read = (low: string, high: string, count: number) =>
      this.#read(() =>
        this.d.store.range(low, high, count, reverse).map((row) => this.#entry(row.key, row.encoded))
      );
    return (async function* () {
      let low = start, high = end;
      while (left > 0) {
        const wanted = Math.min(size, left);
        const page = await read(low, high, wanted);
        yield* page;
        left -= page.length;
        if (page.length < wanted) return;
        const last = encodeKey(page.at(-1)!.key);
        if (reverse) high = last;
        else low = last + "\x00";
      }
    })();
  }

  atomic(): SimAtomic {
    return new SimAtomic((checks, mutations) => this.#commit(checks, mutations));
  }

  async enqueue(value: unknown, options?: { delay?: number }): Promise<unknown> {
    return await this.atomic().enqueue(value, options).commit();
  }

  /** Never resolves while it listens, as the real one does not. */
  listenQueue(handler: (message: unknown) => unknown): Promise<void> {
    return new Promise((ended) => this.d.bells.listen(this, handler, ended));
  }

  /** Lets the state apply early and the answer come late, or the other way round. */
  #read<T>(look: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new Deno.errors.BadResource("Bad resource ID"));
    const fault = this.d.fault("read", false);
    const took = this.#latency(fault);
    this.d.readTook?.(took);
    const early = this.d.rng.chance(0.5);
    return new Promise((resolve, reject) => {
      let seen: T | undefined;
      const at = (): boolean => {
        try {
          seen = look();
          return true;
        } catch (error) {
          reject(error);
          return false;
        }
      };
      if (early && !at()) return;
      this.d.timers.after(took, () => {
        if (this.#dead) return;
        if (fault === "read_throws") reject(new StoreError("a read failed"));
        else if (early || at()) resolve(seen!);
      });
    });
  }

  #entry(key: KvKey, encoded: string) {
    if (this.d.poisoned?.has(encoded)) throw new StoreError("a row cannot be read");
    return entryOf(key, this.d.store.get(encoded));
  }

  #commit(checks: CommitCheck[], mutations: Mutation[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(new Deno.errors.BadResource("Bad resource ID"));
    if (this.#dead) return new Promise(() => {});
    const { store, timers, rng } = this.d;
    try {
      refuse(checks, mutations);
    } catch (error) {
      return Promise.reject(error);
    }
    const fault = this.d.fault("commit", checks.length > 0);
    const took = this.#latency(fault);
    return new Promise((resolve, reject) => {
      const land = (underWay: number) => {
        const versionstamp = store.commit(checks, mutations, underWay);
        return versionstamp === null ? { ok: false } : { ok: true, versionstamp };
      };
      const strike = () => {
        switch (fault) {
          case "conflict":
            return resolve({ ok: false });
          case "throw_before":
            return reject(new StoreError("a commit failed"));
          case "throw_after":
            store.commit(checks, mutations);
            return reject(new StoreError("a commit's answer was lost"));
          case "throw_late":
            timers.after(rng.between(1, 3_000), () => store.commit(checks, mutations));
            return reject(new StoreError("a commit came late"));
          case "crash_before":
            return this.d.died();
          case "crash_after":
            store.commit(checks, mutations);
            return this.d.died();
          default:
            return resolve(land(took));
        }
      };
      const early = rng.chance(0.5) && (fault === null || fault === "slow");
      if (!early) {
        timers.after(took, () => {
          if (!this.#dead) strike();
          else if (rng.chance(0.5)) store.commit(checks, mutations); // it was on the wire when the isolate died
        });
        return;
      }
      const answer = land(0);
      timers.after(took, () => this.#dead || resolve(answer));
    });
  }

  #latency(fault: StoreFault | null): number {
    const most = fault === "slow" ? SLOW_MS : this.d.latencyMs;
    return most === 0 ? 0 : this.d.rng.int(most + 1);
  }
}

const entryOf = (key: KvKey, row: Row | undefined) =>
  row === undefined
    ? { key, value: null, versionstamp: null }
    : { key: row.key, value: copy(row.value), versionstamp: row.versionstamp };

interface Selector {
  prefix?: KvKey;
  start?: KvKey;
  end?: KvKey;
}
interface ListOptions {
  limit?: number;
  batchSize?: number;
  reverse?: boolean;
}

function bounds({ prefix, start, end }: Selector): { start: string; end: string } {
  if (prefix !== undefined && start !== undefined && end !== undefined) {
    throw new TypeError("Selector can not specify both 'start' and 'end' key when specifying 'prefix'");
  }
  const under = prefix === undefined ? null : encodeKey(prefix);
  const low = start === undefined ? under! + "\x00" : encodeKey(start);
  const high = end === undefined ? under! + "\xff" : encodeKey(end);
  if (under !== null) {
    const inside = (bound: string) => bound.startsWith(under) && bound.length > under.length;
    if (start !== undefined && !inside(low)) {
      throw new TypeError("Start key is not in the keyspace defined by prefix");
    }
    if (end !== undefined && !inside(high)) {
      throw new TypeError("End key is not in the keyspace defined by prefix");
    }
  }
  if (low > high) throw new TypeError("Start key is greater than end key");
  return { start: low, end: high };
}

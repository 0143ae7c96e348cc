/**
 * The one store of a simulated world: committed rows in key order, versionstamps, the queue. Instant and without faults;
 * those are the handles' (kv.ts). Every commit is told to `watch` as it lands: the model's only source of truth.
 */
import type { KvKey } from "../lib/edge/kv.ts";
import { checkKey, copy, encodeKey, valueBytes } from "./codec.ts";

export interface Row {
  encoded: string;
  key: KvKey;
  value: unknown;
  versionstamp: string;
}

export type Mutation =
  | { op: "set"; key: KvKey; encoded: string; value: unknown; expireIn?: number }
  | { op: "delete"; key: KvKey; encoded: string }
  | { op: "enqueue"; value: unknown; delay: number };

export interface CommitCheck {
  key: KvKey;
  versionstamp: string | null;
}

/** What one commit did: each row with its value before and after, null for "not there". */
export interface Landed {
  versionstamp: string;
  /** How long ago it was asked for, ms. */
  underWay: number;
  changes: { key: KvKey; before: unknown; after: unknown }[];
  messages: { value: unknown; delay: number }[];
}

const MAX_CHECKS = 100;
const MAX_MUTATIONS = 1_000;
const MAX_BYTES = 819_200;
const MAX_KEY_BYTES = 81_920;

export class SimStore {
  #rows = new Map<string, Row>();
  /** Encoded keys in order. */
  #order: string[] = [];
  #version = 0;
  /** Told of every commit. */
  watch: (landed: Landed) => void = () => {};
  /** Told of every row that is to go some time: `expireIn`, ms. */
  expiring: (key: KvKey, expireIn: number, versionstamp: string) => void = () => {};

  get(encoded: string): Row | undefined {
    return this.#rows.get(encoded);
  }

  /** Rows with start ≤ key < end, at most `limit`. */
  range(start: string, end: string, limit: number, reverse: boolean): Row[] {
    const from = this.#index(start), to = this.#index(end);
    const rows: Row[] = [];
    for (let i = 0; i < to - from && rows.length < limit; i++) {
      rows.push(this.#rows.get(this.#order[reverse ? to - 1 - i : from + i]!)!);
    }
    return rows;
  }

  /** All or nothing. Null: a check failed. Throws `TypeError` for what the platform refuses. */
  commit(checks: readonly CommitCheck[], mutations: readonly Mutation[], underWay = 0): string | null {
    refuse(checks, mutations);
    for (const { key, versionstamp } of checks) {
      if ((this.#rows.get(encodeKey(key))?.versionstamp ?? null) !== versionstamp) return null;
    }
    const versionstamp = (++this.#version).toString(16).padStart(16, "0") + "0000";
    const landed: Landed = { versionstamp, underWay, changes: [], messages: [] };
    for (const mutation of mutations) {
      if (mutation.op === "enqueue") {
        landed.messages.push({ value: mutation.value, delay: mutation.delay });
        continue;
      }
      const before = this.#rows.get(mutation.encoded)?.value ?? null;
      if (mutation.op === "set") {
        this.#put({ encoded: mutation.encoded, key: mutation.key, value: mutation.value, versionstamp });
        if (mutation.expireIn !== undefined) this.expiring(mutation.key, mutation.expireIn, versionstamp);
      } else this.#remove(mutation.encoded);
      const after = mutation.op === "set" ? mutation.value : null;
      landed.changes.push({ key: mutation.key, before, after });
    }
    this.watch(landed);
    return versionstamp;
  }

  /** For the set-up of a world: rows without a handle. */
  seed(rows: readonly { key: KvKey; value: unknown }[]): void {
    this.commit([], rows.map(({ key, value }) => ({ op: "set", key, encoded: encodeKey(key), value })));
  }

  /** `expireIn` has run out for the row, unless it was written again since. */
  expire(key: KvKey, versionstamp: string): void {
    const encoded = encodeKey(key);
    if (this.#rows.get(encoded)?.versionstamp === versionstamp) {
      this.commit([], [{ op: "delete", key, encoded }]);
    }
  }

  value<T>(key: KvKey): T | null {
    return (this.#rows.get(encodeKey(key))?.value ?? null) as T | null;
  }

  *list<T>(prefix: KvKey): Generator<{ key: KvKey; value: T; versionstamp: string }> {
    const start = encodeKey(prefix);
    for (const row of this.range(start + "\x00", start + "\xff", Infinity, false)) {
      yield { key: row.key, value: row.value as T, versionstamp: row.versionstamp };
    }
  }

  #put(row: Row): void {
    if (!this.#rows.has(row.encoded)) this.#order.splice(this.#index(row.encoded), 0, row.encoded);
    this.#rows.set(row.encoded, row);
  }

  #remove(encoded: string): void {
    if (this.#rows.delete(encoded)) this.#order.splice(this.#index(encoded), 1);
  }

  /** How many keys lie before `encoded`. */
  #index(encoded: string): number {
    let low = 0, high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#order[middle]! < encoded) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The platform's limits on one operation. */
export function refuse(checks: readonly CommitCheck[], mutations: readonly Mutation[]): void {
  if (checks.length > MAX_CHECKS) throw new TypeError(`Too many checks (max ${MAX_CHECKS})`);
  if (mutations.length > MAX_MUTATIONS) throw new TypeError(`Too many mutations (max ${MAX_MUTATIONS})`);
  for (const { versionstamp } of checks) {
    if (versionstamp !== null && !/^[0-9a-f]{20}$/.test(versionstamp)) throw new TypeError("Invalid check");
  }
  let bytes = 0, keyBytes = 0;
  for (const { key } of checks) {
    const encoded = encodeKey(key);
    checkKey(encoded, "read");
    bytes += encoded.length;
  }
  for (const mutation of mutations) {
    if (mutation.op === "enqueue") {
      bytes += valueBytes(mutation.value, "enqueue payload too large");
      continue;
    }
    checkKey(mutation.encoded, "write");
    bytes += mutation.encoded.length;
    keyBytes += mutation.encoded.length;
    if (mutation.op === "set") bytes += valueBytes(mutation.value);
  }
  if (bytes > MAX_BYTES) throw new TypeError(`Total mutation size too large (max ${MAX_BYTES} bytes)`);
  if (keyBytes > MAX_KEY_BYTES) {
    throw new TypeError(`Total key size too large (max ${MAX_KEY_BYTES} bytes)`);
  }
}

export { copy, encodeKey };

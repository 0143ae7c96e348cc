/** `kv.atomic()` of the simulated store. */
import type { KvKey } from "../lib/edge/kv.ts";
import { copy, encodeKey, valueBytes } from "./codec.ts";
import type { CommitCheck, Mutation } from "./store.ts";

const MAX_DELAY_MS = 30 * 24 * 60 * 60 * 1_000;

/** An operation being put together. Values are copied as they are given, as the platform serialises them then. */
export class SimAtomic {
  #checks: CommitCheck[] = [];
  #mutations: Mutation[] = [];

  constructor(readonly run: (checks: CommitCheck[], mutations: Mutation[]) => Promise<unknown>) {}

  check(...checks: CommitCheck[]): this {
    this.#checks.push(...checks);
    return this;
  }

  set(key: KvKey, value: unknown, options?: { expireIn?: number }): this {
    const expireIn = options?.expireIn;
    if (expireIn !== undefined && !(expireIn >= 0)) {
      throw new TypeError(`expireIn must be a non-negative integer: received ${expireIn}`);
    }
    const mutation: Mutation = { op: "set", key, encoded: encodeKey(key), value: copy(value) };
    if (expireIn !== undefined) mutation.expireIn = expireIn;
    this.#mutations.push(mutation);
    return this;
  }

  delete(key: KvKey): this {
    this.#mutations.push({ op: "delete", key, encoded: encodeKey(key) });
    return this;
  }

  enqueue(value: unknown, options?: { delay?: number }): this {
    const delay = options?.delay ?? 0;
    if (!(delay >= 0)) throw new TypeError(`Delay must be >= 0: received ${delay}`);
    if (delay > MAX_DELAY_MS) {
      throw new TypeError(`Delay cannot be greater than 30 days: received ${delay}`);
    }
    valueBytes(value, "enqueue payload too large");
    this.#mutations.push({ op: "enqueue", value: copy(value), delay });
    return this;
  }

  commit(): Promise<unknown> {
    return this.run(this.#checks, this.#mutations);
  }
}

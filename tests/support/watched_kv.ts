/** A real KV that knows what is under way in it, counts its commits, and fails where a test says so. */
import type { Kv } from "../../lib/edge/kv.ts";

export interface WatchedKv extends Kv {
  /** Operations under way. */
  readonly busy: number;
  readonly commits: number;
  readonly reads: number;
  /** Enqueued values: the doorbells. Nothing listens, so they are kept here and never reach the queue. */
  readonly enqueued: { value: unknown; delay: number }[];
  /** Asked before each commit; may wait, or throw: the commit is then not made. */
  beforeCommit: ((keys: Deno.KvKey[]) => Promise<void> | void) | null;
  /** Asked after each commit; when it throws, the commit was made and the caller does not learn of it. */
  afterCommit: ((ok: boolean, keys: Deno.KvKey[]) => Promise<void> | void) | null;
  /** Asked before each read; may throw. */
  beforeRead: ((key: Deno.KvKey) => Promise<void> | void) | null;
}

export function watch(kv: Deno.Kv): WatchedKv {
  const state = {
    busy: 0,
    commits: 0,
    reads: 0,
    enqueued: [] as { value: unknown; delay: number }[],
    beforeCommit: null as WatchedKv["beforeCommit"],
    afterCommit: null as WatchedKv["afterCommit"],
    beforeRead: null as WatchedKv["beforeRead"],
  };
  const during = async <T>(run: () => Promise<T>): Promise<T> => {
    state.busy++;
    try {
      return await run();
    } finally {
      state.busy--;
    }
  };

  function atomic(): Deno.AtomicOperation {
    const operation = kv.atomic();
    const keys: Deno.KvKey[] = [];
    const bells: { value: unknown; delay: number }[] = [];
    const set = operation.set.bind(operation), del = operation.delete.bind(operation);
    const commit = operation.commit.bind(operation);
    operation.set = (key, value, options) => (keys.push(key), set(key, value, options), operation);
    operation.delete = (key) => (keys.push(key), del(key), operation);
    operation.enqueue = (value, options) => (bells.push({ value, delay: options?.delay ?? 0 }), operation);
    operation.commit = () =>
      during(async () => {
        state.commits++;
        await state.beforeCommit?.(keys);
        const result = await commit();
        if (result.ok) state.enqueued.push(...bells);
        await state.afterCommit?.(result.ok, keys);
        return result;
      });
    return operation;
  }

  function list<T>(selector: Deno.KvListSelector, options?: Deno.KvListOptions): Deno.KvListIterator<T> {
    const inner = kv.list<T>(selector, options);
    const first = "prefix" in selector ? selector.prefix : (selector as { start: Deno.KvKey }).start;
    let asked = false;
    const next = inner.next.bind(inner);
    inner.next = () =>
      during(async () => {
        if (!asked) {
          asked = true;
          state.reads++;
          await state.beforeRead?.(first);
        }
        return await next();
      });
    return inner;
  }

  const read = <T>(key: Deno.KvKey, run: () => Promise<T>) =>
    during(async () => {
      state.reads++;
      await state.beforeRead?.(key);
      return await run();
    });

  return Object.assign(state, {
    atomic,
    list,
    get: (key: Deno.KvKey, options?: { consistency?: Deno.KvConsistencyLevel }) =>
      read(key, () => kv.get(key, options)),
    getMany: (keys: Deno.KvKey[]) => read(keys[0] ?? [], () => kv.getMany(keys)),
    enqueue: () => Promise.reject(new Error("only within a commit")),
    listenQueue: () => Promise.resolve(),
    close: () => kv.close(),
  }) as unknown as WatchedKv;
}

/**
 * What a running service puts anywhere: rows, queue messages, log lines, console output. Watches the store at its outermost edge, the
 * classes of Deno KV itself, so that nothing written passes it by, however short its life.
 */
import { serialize } from "node:v8";

export interface Witness extends Disposable {
  /** Every row ever set, and every message queued, as text in which any string of theirs can be found. */
  readonly rows: { family: string; text: string }[];
  readonly queued: string[];
  readonly printed: string[];
}

/** Strings of a value, in each encoding V8 stores them in, and its bytes as they are. */
function textOf(value: unknown): string {
  const parts = [serialize(value).toString("latin1")];
  const walk = (inner: unknown): void => {
    if (typeof inner === "string") parts.push(inner);
    else if (inner instanceof Uint8Array) parts.push(new TextDecoder().decode(inner), inner.toBase64());
    else if (typeof inner === "object" && inner !== null) {
      for (const [name, member] of Object.entries(inner)) parts.push(name), walk(member);
    }
  };
  walk(value);
  return parts.join("\n");
}

export function witness(): Witness {
  const rows: Witness["rows"] = [], queued: string[] = [], printed: string[] = [];
  const atomic = Deno.AtomicOperation.prototype, kv = Deno.Kv.prototype;
  const { set, enqueue } = atomic, kvSet = kv.set, kvEnqueue = kv.enqueue;
  const note = (key: Deno.KvKey, value: unknown) =>
    void rows.push({ family: String(key[0]), text: `${key.map(String).join(" ")}\n${textOf(value)}` });
  atomic.set = function (key, value, options) {
    note(key, value);
    return set.call(this, key, value, options);
  };
  atomic.enqueue = function (value, options) {
    queued.push(textOf(value));
    return enqueue.call(this, value, options);
  };
  kv.set = function (key, value, options) {
    note(key, value);
    return kvSet.call(this, key, value, options);
  };
  kv.enqueue = function (value, options) {
    queued.push(textOf(value));
    return kvEnqueue.call(this, value, options);
  };
  const outputs = ["log", "info", "warn", "error", "debug"] as const;
  const before = outputs.map((name) => console[name]);
  for (const name of outputs) {
    console[name] = (...args: unknown[]) => void printed.push(args.map(String).join(" "));
  }
  return {
    rows,
    queued,
    printed,
    [Symbol.dispose]() {
      Object.assign(atomic, { set, enqueue });
      Object.assign(kv, { set: kvSet, enqueue: kvEnqueue });
      outputs.forEach((name, i) => console[name] = before[i]!);
    },
  };
}

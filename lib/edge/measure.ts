/**
 * How large a unit of a commit is, estimated before Deno KV is asked: cheap, and never below the truth for the values the
 * system stores, so that a merged commit stays inside the platform's limits (lib/limits.ts).
 */
import type { Check, KvKey, Write } from "./kv.ts";

/** Sizes of what goes into one `atomic()`. `bytes` holds keys and values, `keyBytes` keys alone. */
export interface Size {
  mutations: number;
  checks: number;
  bytes: number;
  keyBytes: number;
}

/** A write or a check with what the committer needs to know of its key. */
export interface Measured extends Size {
  /** Canonical text of each checked key, in the order of `checks`. */
  checkNames: string[];
  /** Canonical text of each written key that others may name, too; enqueues have none. */
  writeNames: string[];
  /** The largest single key and the largest single value, bytes. */
  maxKey: number;
  maxValue: number;
}

/** Framing of a value or an array in V8's format, rounded up. */
const FRAME_BYTES = 8;
const NUMBER_BYTES = 10;
/** Below this, twice the length is taken for granted instead of looking at the characters. */
const SHORT_TEXT = 128;
// deno-lint-ignore no-control-regex -- the range is what V8 stores in one byte a character
const WIDE = /[^\x00-\xff]/;
// deno-lint-ignore no-control-regex -- ASCII other than NUL is one byte a character in a key
const NOT_PLAIN = /[^\x01-\x7f]/;

/** Sizes and key names of a unit. O(size of the writes); throws only for a value that refers to itself. */
export function measure(checks: readonly Check[], writes: readonly Write[]): Measured {
  const m: Measured = {
    mutations: writes.length,
    checks: checks.length,
    bytes: 0,
    keyBytes: 0,
    checkNames: [],
    writeNames: [],
    maxKey: 0,
    maxValue: 0,
  };
  for (const check of checks) {
    countKey(m, check.key);
    m.checkNames.push(keyName(check.key));
  }
  for (const write of writes) {
    if (write.op !== "enqueue") {
      countKey(m, write.key);
      if (write.op === "delete" || write.fresh === undefined) m.writeNames.push(keyName(write.key));
    }
    if (write.op === "delete") continue;
    const bytes = storedBytes(write.value);
    m.bytes += bytes;
    if (bytes > m.maxValue) m.maxValue = bytes;
  }
  return m;
}

function countKey(m: Measured, key: KvKey): void {
  const bytes = keyBytes(key);
  m.keyBytes += bytes;
  m.bytes += bytes;
  if (bytes > m.maxKey) m.maxKey = bytes;
}

/** Canonical text of a key: equal texts if and only if equal keys. */
export function keyName(key: KvKey): string {
  let name = "";
  for (const part of key) {
    if (typeof part === "string") name += part.length + ":" + part;
    else if (typeof part === "number") name += "n" + part + ";";
    else if (part instanceof Uint8Array) name += "u" + part.join() + ";";
    else name += typeof part + String(part) + ";";
  }
  return name;
}

/** Upper bound of a key's encoded length in bytes. */
export function keyBytes(key: KvKey): number {
  let bytes = 0;
  for (const part of key) {
    if (typeof part === "string") bytes += 2 + (NOT_PLAIN.test(part) ? part.length * 3 : part.length);
    else if (part instanceof Uint8Array) bytes += 2 + 2 * part.length;
    else bytes += NUMBER_BYTES;
  }
  return bytes;
}

/** Upper bound of a value as Deno KV stores it: a bare `Uint8Array` as it is, the rest in V8's format. */
export function storedBytes(value: unknown): number {
  return value instanceof Uint8Array ? value.byteLength : FRAME_BYTES + valueBytes(value);
}

function valueBytes(value: unknown): number {
  switch (typeof value) {
    case "string":
      return textBytes(value);
    case "number":
      return NUMBER_BYTES;
    case "bigint":
      return NUMBER_BYTES + value.toString(16).length;
    case "object":
      return value === null ? 1 : objectBytes(value);
    default:
      return 1;
  }
}

function textBytes(text: string): number {
  const wide = text.length < SHORT_TEXT || WIDE.test(text);
  return FRAME_BYTES + (wide ? 2 * text.length : text.length);
}

function objectBytes(value: object): number {
  // V8 stores the whole buffer behind a view, not the part the view shows.
  if (ArrayBuffer.isView(value)) return 2 * FRAME_BYTES + value.buffer.byteLength;
  let bytes = FRAME_BYTES;
  if (Array.isArray(value)) { for (const item of value) bytes += valueBytes(item); }
  else if (value instanceof Map) { for (const [k, v] of value) bytes += valueBytes(k) + valueBytes(v); }
  else if (value instanceof Set) { for (const item of value) bytes += valueBytes(item); }
  else {for (const name in value) {
      bytes += textBytes(name) + valueBytes((value as Record<string, unknown>)[name]);
    }}
  return bytes;
}

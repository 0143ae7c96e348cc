/**
 * Keys and values as Deno KV keeps them: the order of keys, its limits and its words for what it refuses. Held to the real
 * store by tests/sim/conformance_test.ts.
 */
import { Buffer } from "node:buffer";
import { serialize } from "node:v8";
import type { KvKey } from "../lib/edge/kv.ts";

const MAX_KEY_BYTES = 2_048;
const MAX_VALUE_BYTES = 65_536;
/** Below this an estimate is enough to know that a value is within the limit. */
const SURELY_SMALL_BYTES = 60_000;

/** A key as text whose order by code unit is the store's: bytes < strings < bigints < numbers < booleans. */
export function encodeKey(key: KvKey): string {
  let text = "";
  for (const part of key) {
    if (typeof part === "string") text += "\x02" + escaped(utf8(part));
    else if (typeof part === "number") text += "\x21" + double(part);
    else if (part instanceof Uint8Array) text += "\x01" + escaped(Buffer.from(part).toString("latin1"));
    else if (typeof part === "bigint") text += bigint(part);
    else if (typeof part === "boolean") text += part ? "\x27" : "\x26";
    else throw new TypeError("expected string, number, bigint, ArrayBufferView, boolean");
  }
  return text;
}

// deno-lint-ignore no-control-regex -- NUL ends a part, so it is escaped inside one
const NUL = /\x00/g;
// deno-lint-ignore no-control-regex -- ASCII is its own UTF-8
const ASCII = /^[\x00-\x7f]*$/;
const escaped = (bytes: string) => bytes.replace(NUL, "\x00\xff") + "\x00";
const utf8 = (text: string) => ASCII.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");

const view = new DataView(new ArrayBuffer(8));

function double(value: number): string {
  view.setFloat64(0, value);
  const high = view.getUint32(0), low = view.getUint32(4);
  // Negative numbers have all bits flipped, the others the sign: then the bytes are in the order of the numbers.
  const negative = high >>> 31 === 1;
  view.setUint32(0, negative ? ~high : high ^ 0x80000000);
  view.setUint32(4, negative ? ~low : low);
  let text = "";
  for (let i = 0; i < 8; i++) text += String.fromCharCode(view.getUint8(i));
  return text;
}

function bigint(value: bigint): string {
  if (value === 0n) return "\x14";
  const size = (value < 0n ? -value : value).toString(16);
  const hex = size.padStart(size.length + size.length % 2, "0");
  const length = hex.length / 2;
  const bytes = [...Buffer.from(hex, "hex")].map((byte) => value < 0n ? byte ^ 0xff : byte);
  const digits = String.fromCharCode(...bytes);
  if (length <= 8) return String.fromCharCode(value < 0n ? 0x14 - length : 0x14 + length) + digits;
  return value < 0n
    ? "\x0b" + String.fromCharCode(length ^ 0xff) + digits
    : "\x1d" + String.fromCharCode(length) + digits;
}

export function checkKey(encoded: string, access: "read" | "write"): void {
  if (access === "write" && encoded === "") throw new TypeError("key cannot be empty");
  const max = access === "write" ? MAX_KEY_BYTES : MAX_KEY_BYTES + 1;
  if (encoded.length > max) throw new TypeError(`Key too large for ${access} (max ${max} bytes)`);
}

/** Bytes of a value in the store, at least. Throws `TypeError` over the limit. */
export function valueBytes(value: unknown, what = "Value too large"): number {
  let bytes = value instanceof Uint8Array ? value.byteLength : estimate(value);
  if (bytes > SURELY_SMALL_BYTES && !(value instanceof Uint8Array)) bytes = serialize(value).length;
  if (bytes > MAX_VALUE_BYTES) throw new TypeError(`${what} (max ${MAX_VALUE_BYTES} bytes)`);
  return bytes;
}

function estimate(value: unknown): number {
  if (typeof value === "string") return value.length * 2 + 8;
  if (typeof value !== "object" || value === null) return 12;
  if (ArrayBuffer.isView(value)) return value.byteLength + 16;
  let bytes = 8;
  if (Array.isArray(value)) {
    for (const item of value) bytes += estimate(item);
    return bytes;
  }
  if (!isPlain(value)) return SURELY_SMALL_BYTES + 1;
  for (const name in value) bytes += name.length * 2 + 8 + estimate((value as Record<string, unknown>)[name]);
  return bytes;
}

const isPlain = (value: object) => Object.getPrototypeOf(value) === Object.prototype;

/** A copy, as the store makes one on the way in and on the way out. Plain data is copied by hand: it is most of it. */
export function copy<T>(value: T): T {
  if (typeof value !== "object" || value === null) {
    if (typeof value === "function" || typeof value === "symbol") structuredClone(value);
    return value;
  }
  if (Array.isArray(value)) return value.map((item) => copy(item)) as T;
  if (!isPlain(value)) return structuredClone(value);
  const made: Record<string, unknown> = {};
  for (const name in value) made[name] = copy(value[name]);
  return made as T;
}

/**
 * API key strings (reference §2): `pmk_live_` or `pmk_test_`, a look-up part, a secret part of 256 bits. Only
 * HMAC-SHA256 of the whole string under `PM_KEY_PEPPER` is kept; the look-up part finds the row.
 */
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Random } from "./ports.ts";

export type KeyMode = "live" | "test";

export interface ParsedKey {
  mode: KeyMode;
  /** Not a secret: names the row. */
  lookup: string;
  /** The whole string. */
  text: string;
}

/** Letters and digits only, so that a double click takes the whole key; none that look alike. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const LOOKUP_BYTES = 10;
const SECRET_BYTES = 32;
const KEY = /^pmk_(live|test)_([0-9a-hjkmnp-tv-z]{16})_([0-9a-hjkmnp-tv-z]{52})$/;

/** A new key. `text` is shown once; keep `hashKey(text)` under `lookup`. */
export function mintKey(mode: KeyMode, random: Pick<Random, "bytes">): ParsedKey {
  const lookup = base32(random.bytes(LOOKUP_BYTES));
  return { mode, lookup, text: `pmk_${mode}_${lookup}_${base32(random.bytes(SECRET_BYTES))}` };
}

/** The parts of a key string, or null if it is none. */
export function parseKey(text: string): ParsedKey | null {
  const [, mode, lookup] = KEY.exec(text) ?? [];
  return mode && lookup ? { mode: mode as KeyMode, lookup, text } : null;
}

/** HMAC-SHA256 of the whole key under the pepper, lower-case hex: what a key row keeps. */
export function hashKey(text: string, pepper: Uint8Array): string {
  return createHmac("sha256", pepper).update(text).digest("hex");
}

/**
 * Whether a presented key is the one whose hash is kept. Takes the same time whatever is wrong, also for a key nobody
 * knows (`kept` null): both sides are hashed once more, so their lengths are equal and no prefix can be guessed.
 */
export function keyMatches(text: string, kept: string | null, pepper: Uint8Array): boolean {
  const presented = hashKey(text, pepper);
  const left = createHmac("sha256", pepper).update(presented).digest();
  const right = createHmac("sha256", pepper).update(kept ?? "").digest();
  return timingSafeEqual(left, right) && kept !== null;
}

/** Crockford base32, most significant bits first, the last character padded with zero bits. */
function base32(bytes: Uint8Array): string {
  let bits = BigInt("0x" + Buffer.from(bytes).toString("hex"));
  const length = Math.ceil(bytes.length * 8 / 5);
  bits <<= BigInt(length * 5 - bytes.length * 8);
  let text = "";
  for (let i = 0; i < length; i++, bits >>= 5n) text = ALPHABET[Number(bits & 31n)] + text;
  return text;
}

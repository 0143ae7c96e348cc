/**
 * Prefixed, branded ids (reference §1): prefix, underscore, 26-character ULID in upper-case Crockford base32,
 * monotonic within a millisecond in one isolate. Parsed once, at the door.
 */
import { createHash } from "node:crypto";
import { monotonicFactory } from "ulid";

export const PREFIX = {
  tenant: "ten",
  partner: "ptn",
  identity: "idn",
  domain: "dom",
  job: "job",
  event: "evt",
  endpoint: "whk",
  delivery: "dlv",
  message: "msg",
  thread: "thr",
  attachment: "att",
  address: "adr",
  erasure: "era",
  export: "exp",
  key: "key",
  audit: "aud",
  request: "req",
  user: "usr",
  deadLetter: "dlq",
  notification: "ntf",
  portalLink: "plk",
} as const;

export type IdKind = keyof typeof PREFIX;

/** A kind in a sentence: `an event`, `a dead letter`. */
export function aKind(kind: IdKind): string {
  const words = kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}

declare const brand: unique symbol;
/** `Id<"endpoint">` and `Id<"event">` do not mix. */
export type Id<K extends IdKind> = string & { readonly [brand]: K };

export type TenantId = Id<"tenant">;
export type PartnerId = Id<"partner">;
export type IdentityId = Id<"identity">;
export type EventId = Id<"event">;
export type EndpointId = Id<"endpoint">;
export type DeliveryId = Id<"delivery">;

/** The bare ULID of an event's own commit: the order of the event store and its time index at once. */
export type EventKey = string & { readonly [brand]: "eventKey" };
/** A bare ULID naming a job row. */
export type JobId = string & { readonly [brand]: "job row" };

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** The id if `text` is one of this kind, else null. */
export function parseId<K extends IdKind>(kind: K, text: unknown): Id<K> | null {
  if (typeof text !== "string") return null;
  const prefix = PREFIX[kind];
  return text.startsWith(prefix + "_") && ULID.test(text.slice(prefix.length + 1)) ? text as Id<K> : null;
}

/** Makes ids. One instance an isolate, from the clock and randomness ports. */
export interface Ids {
  next<K extends IdKind>(kind: K): Id<K>;
  /** A bare monotonic ULID. */
  ulid(): string;
}

export function makeIds(now: () => number, unit: () => number): Ids {
  const monotonic = monotonicFactory(unit);
  let last = 0;
  // ULIDs never step back with the clock: order within the isolate outlives a clock jump.
  const ulid = () => monotonic(last = Math.max(last, now()));
  return { ulid, next: <K extends IdKind>(kind: K) => `${PREFIX[kind]}_${ulid()}` as Id<K> };
}

/**
 * An id whose order is that of another moment than now: a delivery's is when its attempt began, though it is made when the attempt is
 * recorded, so that lists by id are lists by `created_at`.
 */
export function idAt<K extends IdKind>(ids: Pick<Ids, "ulid">, kind: K, timeMs: number): Id<K> {
  return `${PREFIX[kind]}_${timePart(Math.floor(timeMs))}${ids.ulid().slice(10)}` as Id<K>;
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** What each letter counts, by its code. */
const VALUES = new Uint8Array(128);
for (let value = 0; value < 32; value++) VALUES[CROCKFORD.charCodeAt(value)] = value;

/** Masks by endpoint: 80 bits of its SHA-256, a number for each letter. */
const masks = new Map<EndpointId, Uint8Array>();
const MAX_MASKS = 10_000;

/**
 * The id of an endpoint's first attempt for an event, which both of them name: its row is found without a row that leads to it, and
 * to write it again changes nothing. It has the event's time, and the event's randomness under a mask of the endpoint, so two events
 * never share one at an endpoint, and two endpoints are as unlikely to as with random ids.
 */
export function firstDelivery(endpoint: EndpointId, event: EventKey): DeliveryId {
  const mask = masks.get(endpoint) ?? maskOf(endpoint);
  let id = `${PREFIX.delivery}_${event.slice(0, 10)}`;
  for (let i = 0; i < 16; i++) id += CROCKFORD[VALUES[event.charCodeAt(10 + i)]! ^ mask[i]!];
  return id as DeliveryId;
}

function maskOf(endpoint: EndpointId): Uint8Array {
  const hash = createHash("sha256").update(endpoint).digest();
  const letters = ulidFrom(0, hash).slice(10);
  const mask = Uint8Array.from(letters, (letter) => VALUES[letter.charCodeAt(0)]!);
  if (masks.size >= MAX_MASKS) masks.clear();
  masks.set(endpoint, mask);
  return mask;
}

/** A ULID from a time in ms and 10 bytes of randomness: the deterministic ids of the document. */
export function ulidFrom(timeMs: number, random10: Uint8Array): string {
  let bits = 0n;
  for (const byte of random10.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let tail = "";
  for (let i = 0; i < 16; i++, bits >>= 5n) tail = CROCKFORD[Number(bits & 31n)] + tail;
  return timePart(timeMs) + tail;
}

function timePart(timeMs: number): string {
  let time = "";
  for (let i = 0, t = timeMs; i < 10; i++, t = Math.floor(t / 32)) time = CROCKFORD[t % 32] + time;
  return time;
}

/** The time part of a ULID (with or without its prefix), in ms. */
export function ulidTime(id: string): number {
  const at = id.lastIndexOf("_") + 1;
  let ms = 0;
  for (let i = at; i < at + 10; i++) ms = ms * 32 + (VALUES[id.charCodeAt(i)] ?? 0);
  return ms;
}

/** The lowest ULID of a millisecond: the bound for ranges over time-ordered keys. */
export const ulidFloor = (timeMs: number): string => ulidFrom(Math.max(0, timeMs), new Uint8Array(10));

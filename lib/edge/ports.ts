/**
 * The ports: clock, timers, randomness, ids, DNS and dialling, with the real ones. The only file beside `main.ts` and
 * tests that touches the clock, randomness, timers or the network.
 */
import { type Ids, makeIds } from "../ids.ts";

export type TimerId = ReturnType<typeof setTimeout>;

export interface Timers {
  after(ms: number, run: () => void): TimerId;
  cancel(id: TimerId): void;
}

export interface Random {
  bytes(length: number): Uint8Array<ArrayBuffer>;
  /** Uniform in [0, 1). */
  unit(): number;
}

/** Answers of one look-up. Empty lists: the name exists without such records or does not exist at all. */
export interface Addresses {
  a: string[];
  aaaa: string[];
}

export interface Resolver {
  /** Rejects on a resolver failure (SERVFAIL, no resolver, timeout); a name that does not exist is two empty lists. */
  resolve(host: string): Promise<Addresses>;
}

/** One POST to one judged address. */
export interface DialRequest {
  url: URL;
  /** The judged address the socket must go to (D3). */
  address: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Milliseconds left of the attempt's deadline. */
  timeoutMs: number;
}

export type DialResult =
  | { kind: "response"; status: number; retryAfter: string | null; body: Uint8Array }
  | { kind: "failed"; error: "timeout" | "tls" | "connect" | "ssrf_blocked"; detail: string };

/** Never rejects: every failure of the far side is a result. */
export interface Dialer {
  dial(request: DialRequest): Promise<DialResult>;
  close(): Promise<void>;
}

export interface Ports {
  /** The wall clock, Unix ms. It may jump. */
  now(): number;
  /** Monotonic ms, for what must not last longer when the wall clock jumps. */
  clock(): number;
  timers: Timers;
  random: Random;
  ids: Ids;
  resolver: Resolver;
  dialer: Dialer;
}

export const realTimers: Timers = {
  after: (ms, run) => setTimeout(run, ms),
  cancel: (id) => clearTimeout(id),
};

export const realRandom: Random = {
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  unit: () => Math.random(),
};

export const realNow = (): number => Date.now();
export const realClock = (): number => performance.now();

export const realIds = (): Ids => makeIds(realNow, secureUnit);

/** Drawn in pages: a ULID takes sixteen, and a call of the platform for each would show on the hot path. */
const page = new Uint32Array(256);
let left = 0;

function secureUnit(): number {
  if (left === 0) left = crypto.getRandomValues(page).length;
  return page[--left]! / 2 ** 32;
}

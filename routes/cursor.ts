/**
 * Lists: newest first by ULID keys, with an opaque cursor that is MACed under `PM_HASH_KEY`, bound to the operation, its
 * filters and the calling key, and good for 24 hours (reference §1). A cursor names the last row shown, so rows that
 * come or go between pages never shift the others.
 */
import { Buffer } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import { ApiError, invalidRequest } from "../lib/errors.ts";
import type { Kv, KvKey } from "../lib/edge/kv.ts";
import { CURSOR_TTL_MS } from "../lib/limits.ts";

/** Rows a request may look at while its filters refuse them; a page may then be short and still have a next one. */
const MAX_SCANNED = 2_000;
const MIN_BATCH = 50;
const MAC_BYTES = 16;

/** What a cursor is made under. */
export interface CursorScope {
  hashKey: Uint8Array;
  /** Method, path and filters. */
  operation: string;
  keyId: string;
}

/** `c_` + base64url of expiry and position + "." + base64url of the MAC. */
export function makeCursor(after: string, now: number, scope: CursorScope): string {
  const payload = Buffer.from(JSON.stringify([now + CURSOR_TTL_MS, after])).toString("base64url");
  return `c_${payload}.${macOf(payload, scope).toString("base64url")}`;
}

/** The position a cursor stands for. Throws `cursor_expired` (410) or `invalid_request` (400, path `cursor`). */
export function openCursor(cursor: string, now: number, scope: CursorScope): string {
  const [, payload, mac] = /^c_([\w-]+)\.([\w-]+)$/.exec(cursor) ?? [];
  if (payload === undefined || mac === undefined) throw badCursor();
  const given = Buffer.from(mac, "base64url"), wanted = macOf(payload, scope);
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw badCursor();
  if (mac !== wanted.toString("base64url")) throw badCursor(); // base64url has spare bits: one spelling only
  const [expires, after] = JSON.parse(Buffer.from(payload, "base64url").toString()) as [number, string];
  if (expires <= now) {
    throw new ApiError(
      "cursor_expired",
      "Cannot go on with this list: its cursor is over 24 hours old.",
      "Start from the first page.",
    );
  }
  return after;
}

function macOf(payload: string, scope: CursorScope): Buffer {
  const bound = JSON.stringify(["cursor", scope.keyId, scope.operation, payload]);
  return createHmac("sha256", scope.hashKey).update(bound).digest().subarray(0, MAC_BYTES);
}

const badCursor = () =>
  invalidRequest([{ path: "cursor", message: "is not a cursor of this list, its filters and this key" }]);

/** What `page` needs of a handler's context. */
export interface PageContext {
  query: { limit: number; cursor?: string | undefined };
  operation: string;
  key: { id: string };
  services: { kv: Kv; now(): number; config: { hashKey: Uint8Array } };
}

interface Listed<T> {
  id: string;
  value: T;
}

export type PageSource<T> = Bounds & (RowSource | ScanSource<T>) & {
  /** Turns a row into what is shown, in order; null leaves it out. Called with one batch of rows at a time. */
  show: (rows: Listed<T>[]) => Promise<(unknown | null)[]> | (unknown | null)[];
};

/** Each row of a family is one of the list. */
interface RowSource {
  prefix: KvKey;
  /** The key of a position: the last part of a row's key. */
  at: (position: string) => KvKey;
}

/** The list is read out of something else. */
interface ScanSource<T> {
  /** What is listed, newest first, as far as it is asked for. */
  scan: (bounds: Bounds) => AsyncGenerator<Listed<T>>;
}

/** Of the positions: `from` inclusive, `to` exclusive. */
interface Bounds {
  from?: string | undefined;
  to?: string | undefined;
}

/** One page, newest first. */
export async function page<T>(
  ctx: PageContext,
  source: PageSource<T>,
): Promise<{ data: unknown[]; next_cursor: string | null }> {
  const { kv, now, config } = ctx.services;
  const scope = { hashKey: config.hashKey, operation: ctx.operation, keyId: ctx.key.id };
  const limit = ctx.query.limit;
  let before = ctx.query.cursor === undefined ? source.to : openCursor(ctx.query.cursor, now(), scope);
  const data: unknown[] = [];
  let shownLast = before;
  const read = "scan" in source ? scanner(source, before) : rower<T>(kv, source);
  for (let scanned = 0;;) {
    // One more than is wanted: a cursor is only given when there is something behind it.
    const { rows, more } = await read(before, Math.max(limit + 1 - data.length, MIN_BATCH));
    const shown = await source.show(rows);
    for (let i = 0; i < rows.length; i++) {
      before = rows[i]!.id;
      if (shown[i] !== null) {
        if (data.length === limit) return { data, next_cursor: makeCursor(shownLast!, now(), scope) };
        data.push(shown[i]);
        shownLast = before;
      }
      const last = i === rows.length - 1 && !more;
      if (++scanned === MAX_SCANNED && !last) return { data, next_cursor: makeCursor(before, now(), scope) };
    }
    if (!more) return { data, next_cursor: null };
  }
}

/** Up to `wanted` rows older than `before`, and whether there is another. */
type Read<T> = (before: string | undefined, wanted: number) => Promise<{ rows: Listed<T>[]; more: boolean }>;

function rower<T>(kv: Kv, { prefix, at, from }: RowSource & Bounds): Read<T> {
  return async (before, wanted) => {
    if (from !== undefined && before !== undefined && from >= before) return { rows: [], more: false };
    const start = from === undefined ? null : at(from), end = before === undefined ? null : at(before);
    const selector: Deno.KvListSelector = start !== null && end !== null
      ? { start, end }
      : start !== null
      ? { prefix, start }
      : end !== null
      ? { prefix, end }
      : { prefix };
    const rows: Listed<T>[] = [];
    const options = { reverse: true, limit: wanted + 1, batchSize: wanted + 1 };
    for await (const entry of kv.list<T>(selector, options)) {
      rows.push({ id: String(entry.key.at(-1)), value: entry.value });
    }
    return { rows: rows.slice(0, wanted), more: rows.length > wanted };
  };
}

/** One scan for the whole page: each read goes on where the one before it ended. */
function scanner<T>({ scan, from }: ScanSource<T> & Bounds, to: string | undefined): Read<T> {
  const rest = scan({ from, to });
  let ahead: Listed<T>[] = [];
  return async (_, wanted) => {
    const rows = ahead;
    while (rows.length <= wanted) {
      const { done, value } = await rest.next();
      if (done) break;
      rows.push(value);
    }
    ahead = rows.splice(wanted);
    return { rows, more: ahead.length > 0 };
  };
}

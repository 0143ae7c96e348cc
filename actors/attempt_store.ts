/**
 * Where an endpoint's attempts are ("Delivering an attempt", step 5). An attempt is a row under its id, but for most of them: first
 * attempts of the hot path that succeeded and that one commit records share a row, a block (blocks.ts), because their ids follow from
 * their events (`firstDelivery`). Beside a block its commit writes the mark of its bucket, so that who found no attempt of an event there
 * can have checked that none came since.
 */
import { notFound } from "../lib/errors.ts";
import {
  type DeliveryId,
  type EndpointId,
  type EventId,
  type EventKey,
  firstDelivery,
  PREFIX,
  ulidTime,
} from "../lib/ids.ts";
import { type AttemptBlock, type AttemptRow, keys, type StoredAttempt, within } from "../lib/keys.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import {
  type Blocks,
  BUCKET_CHARS,
  column,
  entriesIn,
  inBlocks,
  inColumn,
  type Range,
  rowsIn,
  TAIL_CHARS,
} from "./blocks.ts";
import { getAll } from "./event_store.ts";

/** A block and its mark are two rows: not more than those of so many attempts, and smaller. */
const WORTH_A_BLOCK = 2;
/** `dlv_` */
const PREFIX_CHARS = PREFIX.delivery.length + 1;

// --- Writing -----------------------------------------------------------------------------------------

/** The rows of first attempts of one endpoint that succeeded, under the ids that their events give them. */
export function firstWrites(endpoint: EndpointId, rows: readonly AttemptRow[]): Write[] {
  const writes: Write[] = [];
  for (const [bucket, group] of Map.groupBy(rows, (row) => bucketOf(row.id))) {
    if (group.length < WORTH_A_BLOCK) writes.push(...group.map((row) => attemptWrite(endpoint, row)));
    else {
      writes.push({ op: "set", key: keys.attemptMark(endpoint, bucket), value: true });
      for (const { first, text } of inBlocks(group.sort((a, b) => a.id < b.id ? -1 : 1), textOf)) {
        writes.push({ op: "set", key: keys.attemptBlock(endpoint, first.id), value: text });
      }
    }
  }
  return writes;
}

export const attemptWrite = (endpoint: EndpointId, row: AttemptRow): Write => ({
  op: "set",
  key: keys.attempt(endpoint, row.id),
  value: row,
});

function textOf(rows: readonly AttemptRow[]): string {
  let tails = "";
  for (const { event } of rows) tails += event.slice(BUCKET_CHARS);
  const block: AttemptBlock = {
    events: tails,
    ids: column(rows, ({ event, event_id }) => event_id === idOf(event) ? null : event_id),
    types: column(rows, (row) => row.event_type),
    tenants: column(rows, (row) => row.tenant_id),
    http: column(rows, (row) => row.http_status),
    took: column(rows, (row) => row.duration_ms),
    lags: column(rows, (row) => row.created_at - ulidTime(row.event)),
  };
  return JSON.stringify(block);
}

/** The id of an event that is named by its key. */
const idOf = (event: EventKey) => `${PREFIX.event}_${event}` as EventId;

// --- Reading -----------------------------------------------------------------------------------------

/** The attempts that a row of an endpoint tells of, in the order of their ids. @param position the last part of its key. */
export function attemptsOfRow(endpoint: EndpointId, position: string, value: StoredAttempt): AttemptRow[] {
  if (value === true) return [];
  if (typeof value !== "string") return [value];
  const { events, ids, types, tenants, http, took, lags } = JSON.parse(value) as AttemptBlock;
  const bucket = position.slice(PREFIX_CHARS, PREFIX_CHARS + BUCKET_CHARS);
  return Array.from({ length: events.length / TAIL_CHARS }, (_, i) => {
    const event = bucket + events.slice(i * TAIL_CHARS, (i + 1) * TAIL_CHARS) as EventKey;
    return {
      id: firstDelivery(endpoint, event),
      event,
      event_id: inColumn(ids, i) ?? idOf(event),
      event_type: inColumn(types, i),
      tenant_id: inColumn(tenants, i),
      attempt: 1,
      first_attempt: 1,
      status: "succeeded",
      http_status: inColumn(http, i),
      error: null,
      duration_ms: inColumn(took, i),
      next_attempt_at: null,
      created_at: ulidTime(event) + inColumn(lags, i),
    };
  });
}

/** An endpoint's attempts in the order of their ids, read as far as they are asked for. */
export function attemptsIn(kv: Kv, endpoint: EndpointId, range: Range = {}): AsyncGenerator<AttemptRow> {
  const blocks: Blocks<StoredAttempt, AttemptRow> = {
    family: keys.attemptsOf(endpoint),
    prefix: PREFIX_CHARS,
    entries: (position, value) => attemptsOfRow(endpoint, position, value),
    at: (row) => row.id,
  };
  return entriesIn(kv, blocks, range);
}

/** The source of a list of them, newest first (`routes/cursor.ts`). */
export async function* newestAttempts(kv: Kv, endpoint: EndpointId, bounds: Range = {}) {
  for await (const value of attemptsIn(kv, endpoint, { ...bounds, reverse: true })) {
    yield { id: value.id, value };
  }
}

/** Attempts by id, in order; null for one that is not there. */
export async function readAttempts(
  kv: Kv,
  endpoint: EndpointId,
  ids: readonly DeliveryId[],
): Promise<(AttemptRow | null)[]> {
  const found = await getAll<AttemptRow>(kv, ids.map((id) => keys.attempt(endpoint, id)));
  return await Promise.all(ids.map(async (id, i) => {
    const { value } = found[i]!;
    if (value !== null) return value;
    for await (const row of attemptsIn(kv, endpoint, { from: id, to: id + "0" })) return row;
    return null;
  }));
}

/** Throws `not_found` (404). */
export async function attemptOf(kv: Kv, endpoint: EndpointId, id: DeliveryId): Promise<AttemptRow> {
  const [row] = await readAttempts(kv, endpoint, [id]);
  if (row === null || row === undefined) throw notFound("delivery");
  return row;
}

/** What is on record of first attempts of the hot path. */
export interface Firsts {
  rows: Map<EventKey, AttemptRow>;
  /** Versions of the marks there are, by bucket. */
  marks: Map<string, string>;
}

/** Rows read at once for some events that lie side by side, over two for each. */
const SIDE_BY_SIDE = 100;
/** What Deno KV reads at once. */
const MAX_BATCH = 500;
const SCANS_AT_ONCE = 32;

/** What became of first attempts of these events on the hot path. Events of one job lie side by side: one read, nearly always of nothing. */
export async function readFirsts(
  kv: Kv,
  endpoint: EndpointId,
  events: readonly EventKey[],
): Promise<Firsts> {
  const firsts: Firsts = { rows: new Map(), marks: new Map() };
  if (events.length === 0) return firsts;
  const wanted = new Set(events);
  const note = (position: string, value: StoredAttempt, versionstamp: string) => {
    if (value === true) firsts.marks.set(position, versionstamp);
    for (const row of attemptsOfRow(endpoint, position, value)) {
      if (wanted.has(row.event) && row.id === firstDelivery(endpoint, row.event)) {
        firsts.rows.set(row.event, row);
      }
    }
  };
  const family = keys.attemptsOf(endpoint);
  const buckets = [...new Set(events.map(markOf))].sort();
  const limit = SIDE_BY_SIDE + 2 * events.length, options = { limit, batchSize: Math.min(limit, MAX_BATCH) };
  const selector = { start: within(family, buckets[0]!), end: within(family, behindBucket(buckets.at(-1)!)) };
  const together = await Array.fromAsync(kv.list<StoredAttempt>(selector, options));
  if (together.length < limit) {
    for (const { key, value, versionstamp } of together) note(key.at(-1) as string, value, versionstamp);
    return firsts;
  }
  const scan = async (bucket: string) => { // strangers lie between, and maybe more of them
    for await (const row of rowsIn<StoredAttempt>(kv, family, { from: bucket, to: behindBucket(bucket) })) {
      note(row.position, row.value, row.versionstamp);
    }
  };
  for (let i = 0; i < buckets.length; i += SCANS_AT_ONCE) {
    await Promise.all(buckets.slice(i, i + SCANS_AT_ONCE).map(scan));
  }
  return firsts;
}

/** The mark that is written with whatever block has the event's first attempt. */
export const markOf = (event: EventKey): string => `${PREFIX.delivery}_${event.slice(0, BUCKET_CHARS)}`;

/** The beginning of an attempt's id that names its bucket. */
const bucketOf = (id: DeliveryId): string => id.slice(0, PREFIX_CHARS + BUCKET_CHARS);

/** The position behind all of a bucket: letters of ULIDs sort before it. */
const behindBucket = (bucket: string): string => bucket + "~";

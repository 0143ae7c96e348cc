/**
 * Where an endpoint's attempts are ("Delivering an attempt", step 5). An attempt is a row under its id, and its pair has a row that names
 * it; but most are first attempts that succeed at once, and those that one commit records share rows (blocks.ts, attempt_blocks.ts):
 *
 *   a block     the attempts of one bucket of time. On the hot path their ids follow from their events (`firstDelivery`), so nothing
 *               else has to lead to them.
 *   pointers    in the bucket of the events, where each of their attempts is, when the ids do not follow: the event is older.
 *   the mark    in front of a bucket, written anew with each block or pointers in it, so that who found an event untried there can
 *               have checked that nothing came since.
 */
import { notFound } from "../lib/errors.ts";
import type { DeliveryId, EndpointId, EventKey } from "../lib/ids.ts";
import { type AttemptRow, keys, type PairRow, type StoredAttempt, within } from "../lib/keys.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import {
  attemptsOfRow,
  behindBucket,
  blockAt,
  lateText,
  leadsOfRow,
  markOf,
  namedText,
  pointersAt,
  pointersText,
  PREFIX_CHARS,
} from "./attempt_blocks.ts";
import { type Blocks, BUCKET_CHARS, entriesIn, inBlocks, type Range, rowsIn } from "./blocks.ts";
import { getAll } from "./event_store.ts";

/** So many share a row: fewer would need as many rows. */
const WORTH_A_BLOCK = 2;

// --- Writing -----------------------------------------------------------------------------------------

/** First attempts of one endpoint that succeeded: `named` by their events (`firstDelivery`), or `late`. */
export interface FirstAttempts {
  named: AttemptRow[];
  late: AttemptRow[];
}

/** The rows of first attempts that succeeded, and of what leads to them. */
export function firstWrites(endpoint: EndpointId, { named, late }: FirstAttempts): Write[] {
  const writes: Write[] = [], marks = new Set<string>();
  const share = (position: string, value: string | true) =>
    writes.push({ op: "set", key: keys.attemptsAt(endpoint, position), value });
  const ulidOf = (row: AttemptRow) => row.id.slice(PREFIX_CHARS);
  for (const group of byBucket(named, ulidOf)) {
    if (group.length < WORTH_A_BLOCK) writes.push(...group.map((row) => attemptWrite(endpoint, row)));
    else {
      for (const { first, text } of inBlocks(group, namedText)) share(blockAt(first.id), text);
      marks.add(markOf(group[0]!.event));
    }
  }
  for (const group of byBucket(late, ulidOf)) {
    if (group.length < WORTH_A_BLOCK) writes.push(...group.map((row) => attemptWrite(endpoint, row)));
    else for (const { first, text } of inBlocks(group, lateText)) share(blockAt(first.id), text);
  }
  for (const group of byBucket(late, (row) => row.event)) {
    if (group.length < WORTH_A_BLOCK) {
      writes.push(...group.map((row) => pairWrite(endpoint, row.event, null, row)));
    } else {
      for (const { first, text } of inBlocks(group, pointersText)) share(pointersAt(first.event), text);
      marks.add(markOf(group[0]!.event));
    }
  }
  for (const mark of marks) share(mark, true);
  return writes;
}

/** Rows by the bucket of a ULID, in the order of that. */
const byBucket = (rows: readonly AttemptRow[], of: (row: AttemptRow) => string): Iterable<AttemptRow[]> =>
  Map.groupBy(rows.toSorted((a, b) => of(a) < of(b) ? -1 : 1), (row) => of(row).slice(0, BUCKET_CHARS))
    .values();

export const attemptWrite = (endpoint: EndpointId, row: AttemptRow): Write => ({
  op: "set",
  key: keys.attempt(endpoint, row.id),
  value: row,
});

/** The pair's row once the attempt is on record. @param before the state until then. */
export const pairWrite = (
  endpoint: EndpointId,
  event: EventKey,
  before: PairRow | null,
  attempt: First,
): Write => ({ op: "set", key: keys.pair(endpoint, event), value: pairAfter(before, attempt) });

export const pairAfter = (
  before: PairRow | null,
  { id, status, attempt, first_attempt }: First,
): PairRow => ({
  status,
  attempt,
  first: first_attempt,
  succeeded: status === "succeeded" || (before?.succeeded ?? false),
  dead: status === "dead" || (before?.dead ?? false),
  ids: [...before?.ids ?? [], id],
});

// --- Reading -----------------------------------------------------------------------------------------

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
  const range = { ...bounds, reverse: true };
  for await (const value of attemptsIn(kv, endpoint, range)) yield { id: value.id, value };
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

/** An attempt, as far as it tells of its pair. */
export type First = Pick<AttemptRow, "id" | "status" | "attempt" | "first_attempt">;

/** What is on record of first attempts without a pair row. */
export interface Firsts {
  /** Those that succeeded, by event. */
  ids: Map<EventKey, DeliveryId>;
  /** Versions of the marks there are, by position. */
  marks: Map<string, string>;
}

/** Rows read at once for some events that lie side by side, over two for each. */
const SIDE_BY_SIDE = 100;
/** What Deno KV reads at once. */
const MAX_BATCH = 500;
const SCANS_AT_ONCE = 32;

/** First attempts of these events, by other rows than their pairs'. Events of one job lie side by side: one read, nearly always of nothing. */
export async function readFirsts(
  kv: Kv,
  endpoint: EndpointId,
  events: readonly EventKey[],
): Promise<Firsts> {
  const firsts: Firsts = { ids: new Map(), marks: new Map() };
  if (events.length === 0) return firsts;
  const wanted = new Set(events), family = keys.attemptsOf(endpoint);
  const note = (position: string, value: StoredAttempt, versionstamp: string) => {
    if (value === true) firsts.marks.set(position, versionstamp);
    for (const { event, id } of leadsOfRow(endpoint, position, value, wanted)) firsts.ids.set(event, id);
  };
  const marks = [...new Set(events.map(markOf))].sort();
  const limit = SIDE_BY_SIDE + 2 * events.length, options = { limit, batchSize: Math.min(limit, MAX_BATCH) };
  const selector = { start: within(family, marks[0]!), end: within(family, behindBucket(marks.at(-1)!)) };
  const together = await Array.fromAsync(kv.list<StoredAttempt>(selector, options));
  if (together.length < limit) {
    for (const { key, value, versionstamp } of together) note(key.at(-1) as string, value, versionstamp);
    return firsts;
  }
  const scan = async (mark: string) => { // strangers lie between, and maybe more of them
    for await (const row of rowsIn<StoredAttempt>(kv, family, { from: mark, to: behindBucket(mark) })) {
      note(row.position, row.value, row.versionstamp);
    }
  };
  for (let i = 0; i < marks.length; i += SCANS_AT_ONCE) {
    await Promise.all(marks.slice(i, i + SCANS_AT_ONCE).map(scan));
  }
  return firsts;
}

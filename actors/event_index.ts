/**
 * The index of events by tenant and by partner. A scattered insert costs as much as the event's own row, so the index is written
 * by the commit and not by the event: a row is a block, which names the events of one tenant under one partner that one commit wrote
 * within one bucket of time (32 ms), and its key ends in the first of theirs. Blocks of several commits and isolates may overlap
 * inside a bucket, never across two, so a reader merges bucket by bucket.
 *
 * A tenant's block and its partner's are the same value under the same last part of the key: who finds one can name the other
 * (retention). Rows of releases before blocks name one event each and are read beside them.
 */
import type { EventKey, TenantId } from "../lib/ids.ts";
import {
  after,
  type EventBlock,
  type EventIndex,
  type EventIndexRow,
  keys,
  type Scope,
  within,
} from "../lib/keys.ts";
import { MAX_INDEX_BLOCK_BYTES } from "../lib/limits.ts";
import type { Room } from "../lib/edge/commit_batch.ts";
import type { Kv, KvKey, Write } from "../lib/edge/kv.ts";
import type { StoredEvent } from "./event_store.ts";

/** Characters of a ULID that name its bucket: all of its time but the last five bits. */
const BUCKET_CHARS = 9;
const TAIL_CHARS = 26 - BUCKET_CHARS;

/** Bytes a character of a text may take. */
const WIDE_BYTES = 2;

// --- Writing -----------------------------------------------------------------------------------------

/** The index rows of events that one commit writes. */
export function indexWrites(events: readonly StoredEvent[]): Write[] {
  const groups = new Map<string, StoredEvent[]>();
  let group: StoredEvent[] = [];
  for (const event of events) {
    if (event.tenant === null && event.partner === null) continue;
    if (!sharesBlock(event, group[0])) {
      const name = event.tenant === null ? event.key : bucketOf(event.key) + event.tenant + event.partner;
      group = groups.get(name) ?? [];
      if (group.length === 0) groups.set(name, group);
    }
    group.push(event);
  }
  const writes: Write[] = [];
  for (const group of groups.values()) pushBlock(writes, group.sort((a, b) => a.key < b.key ? -1 : 1));
  return writes;
}

/** An event without a tenant is pruned by a row of its own, and takes its partner's with it: it shares no block. */
const sharesBlock = (event: StoredEvent, other: StoredEvent | undefined): boolean =>
  other !== undefined && event.tenant !== null && event.tenant === other.tenant &&
  event.partner === other.partner && bucketOf(event.key) === bucketOf(other.key);

function pushBlock(writes: Write[], events: readonly StoredEvent[]): void {
  const { key, tenant, partner } = events[0]!;
  let tails = "";
  for (const event of events) tails += event.key.slice(BUCKET_CHARS);
  const block: EventBlock = {
    keys: tails,
    types: column(events, (event) => event.type),
    identities: column(events, (event) => event.identity),
    owners: column(events, (event) => event.owner),
  };
  const value: EventIndex = JSON.stringify(block);
  if (value.length * WIDE_BYTES > MAX_INDEX_BLOCK_BYTES) {
    const middle = events.length >> 1;
    pushBlock(writes, events.slice(0, middle));
    return pushBlock(writes, events.slice(middle));
  }
  if (tenant !== null) writes.push({ op: "set", key: keys.eventOfTenant(tenant, key), value });
  if (partner !== null) writes.push({ op: "set", key: keys.eventOfPartner(partner, key), value });
}

/** What all entries say is said once. */
function column<T>(events: readonly StoredEvent[], of: (event: StoredEvent) => T): T[] {
  const first = of(events[0]!);
  return events.every((event) => of(event) === first) ? [first] : events.map(of);
}

/** What `measure` counts for a block without entries, and for its key, at most. */
const BLOCK_BYTES = 160, KEY_BYTES = 80;
/** Quotes and comma of a text in a column. */
const MARKS = 3;

/** The most an event may add to its commit by being in the index: rows of its own, when no other is of its tenant and bucket. */
export function indexRoom({ tenant, partner, type, owner, identity }: StoredEvent): Room {
  const rows = (tenant === null ? 0 : 1) + (partner === null ? 0 : 1);
  // Only an owner's key may need escapes.
  const texts = type.length + JSON.stringify(owner).length + (identity ?? "null").length + 3 * MARKS;
  const bytes = KEY_BYTES + BLOCK_BYTES + WIDE_BYTES * (TAIL_CHARS + texts);
  return { mutations: rows, bytes: rows * bytes, keyBytes: rows * KEY_BYTES };
}

// --- Reading -----------------------------------------------------------------------------------------

/** One event as the index tells of it: what lists filter by. */
export interface IndexEntry extends EventIndexRow {
  key: EventKey;
}

/** Rows of the first read and of the largest: a short page reads little, a long scan few times. */
const FIRST_READ = 16, LARGEST_READ = 256;

/** Positions in a family, which are event keys or their beginnings: `from` inclusive, `to` exclusive. */
export interface Range {
  from?: string | undefined;
  to?: string | undefined;
  /** The last first. */
  reverse?: boolean;
}

/** The events of an index family in the order of their keys, read as far as they are asked for. */
export async function* eventsIn(kv: Kv, family: KvKey, range: Range = {}): AsyncGenerator<IndexEntry> {
  const { from = "", to, reverse = false } = range;
  let bucket = "", entries: IndexEntry[] = [];
  // A block that begins before `from` may reach beyond it, but not out of its bucket.
  for await (const { position, value } of rowsIn(kv, family, { from: bucketOf(from), to, reverse })) {
    if (bucketOf(position) !== bucket) {
      yield* inOrder(entries, reverse);
      bucket = bucketOf(position);
      entries = [];
    }
    for (const entry of entriesOf(position, value)) {
      if (entry.key >= from && (to === undefined || entry.key < to)) entries.push(entry);
    }
  }
  yield* inOrder(entries, reverse);
}

/** The keys of a scope's events in order: the platform's are all there are. Positions are as for `eventsIn`. */
export async function* keysOfScope(kv: Kv, scope: Scope, range: Range): AsyncGenerator<EventKey> {
  if (scope.level === "platform") {
    for await (const { position } of rowsIn(kv, keys.events(), range)) yield position;
    return;
  }
  const family = scope.level === "tenant"
    ? keys.eventsOfTenant(scope.tenant)
    : keys.eventsOfPartner(scope.partner);
  for await (const { key } of eventsIn(kv, family, range)) yield key;
}

/** The source of a list of a tenant's events, newest first (`routes/cursor.ts`). */
export async function* newestOf(kv: Kv, tenant: TenantId, bounds: Range) {
  const range = { ...bounds, reverse: true };
  for await (const value of eventsIn(kv, keys.eventsOfTenant(tenant), range)) yield { id: value.key, value };
}

/** The position right behind a key's: where a scan goes on that has seen the key. */
export const behind = (key: string): string => key + "0";

/** The events that an index row names, in the order of their keys. @param position the last part of its key. */
export function entriesOf(position: EventKey, value: EventIndex): IndexEntry[] {
  if (typeof value !== "string") return [{ key: position, ...value }];
  const { keys: tails, types, identities, owners } = JSON.parse(value) as EventBlock;
  const bucket = bucketOf(position);
  return Array.from({ length: tails.length / TAIL_CHARS }, (_, i) => ({
    key: bucket + tails.slice(i * TAIL_CHARS, (i + 1) * TAIL_CHARS) as EventKey,
    type: at(types, i),
    identity: at(identities, i),
    owner: at(owners, i),
  }));
}

const at = <T>(column: readonly T[], i: number): T => column[column.length === 1 ? 0 : i]!;

const bucketOf = (position: string): string => position.slice(0, BUCKET_CHARS);

const inOrder = (entries: IndexEntry[], reverse: boolean): IndexEntry[] =>
  entries.sort((a, b) => (a.key < b.key) === reverse ? 1 : -1);

/** Rows of a family, whose last key parts are positions, in reads that grow. */
async function* rowsIn(kv: Kv, family: KvKey, { from = "", to, reverse = false }: Range) {
  if (to !== undefined && from >= to) return;
  let start = within(family, from), end = within(family, to ?? 0); // positions are texts: a number sorts behind them
  for (let size = FIRST_READ;; size = Math.min(2 * size, LARGEST_READ)) {
    let read = 0, last: KvKey = start;
    const options = { reverse, limit: size, batchSize: size };
    for await (const { key, value } of kv.list<EventIndex>({ start, end }, options)) {
      read++;
      last = key;
      yield { position: key.at(-1) as EventKey, value };
    }
    if (read < size) return;
    if (reverse) end = last;
    else start = after(last);
  }
}

/**
 * The index of events by tenant and by partner. A scattered insert costs as much as the event's own row, so the index is written
 * by the commit and not by the event: a row is a block, which names the events of one tenant under one partner that one commit wrote
 * within one bucket of time (32 ms), and its key ends in the first of theirs. Blocks of several commits and isolates may overlap
 * inside a bucket, never across two, so a reader merges bucket by bucket.
 *
 * A tenant's block and its partner's are the same value under the same last part of the key: who finds one can name the other
 * (retention). Rows of releases before blocks name one event each and are read beside them.
 */
import type { EventKey, IdentityId, TenantId } from "../lib/ids.ts";
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

// --- Writing -----------------------------------------------------------------------------------------

/** What `measure` counts for a text beside its characters, and for a block beside its entries; the longest key of a block. */
const TEXT_BYTES = 8, BLOCK_BYTES = 160, KEY_BYTES = 80;

/** Upper bound of what an event adds to a block, as `measure` counts. */
const entryBytes = ({ type, owner, identity }: StoredEvent): number =>
  2 * (TAIL_CHARS + type.length + owner.length + (identity?.length ?? 0)) + 3 * TEXT_BYTES;

/** The index rows of events that one commit writes. */
export function indexWrites(events: readonly StoredEvent[]): Write[] {
  const groups = new Map<string, StoredEvent[]>();
  for (const event of events) {
    if (event.tenant === null && event.partner === null) continue;
    // An event without a tenant is pruned by a row of its own, and takes its partner's with it: it shares no block.
    const name = event.tenant === null ? event.key : `${bucketOf(event.key)}${event.tenant}${event.partner}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [event]);
    else group.push(event);
  }
  const writes: Write[] = [];
  for (const group of groups.values()) {
    group.sort((a, b) => a.key < b.key ? -1 : 1);
    let from = 0, bytes = BLOCK_BYTES;
    for (let i = 0; i < group.length; i++) {
      const more = entryBytes(group[i]!);
      if (bytes + more > MAX_INDEX_BLOCK_BYTES) {
        pushBlock(writes, group.slice(from, i));
        from = i;
        bytes = BLOCK_BYTES;
      }
      bytes += more;
    }
    pushBlock(writes, from === 0 ? group : group.slice(from));
  }
  return writes;
}

function pushBlock(writes: Write[], events: readonly StoredEvent[]): void {
  const { key, tenant, partner } = events[0]!;
  let tails = "";
  for (const event of events) tails += event.key.slice(BUCKET_CHARS);
  const value: EventBlock = {
    keys: tails,
    types: column(events, (event) => event.type),
    identities: column(events, (event) => event.identity),
    owners: column(events, (event) => event.owner),
  };
  if (tenant !== null) writes.push({ op: "set", key: keys.eventOfTenant(tenant, key), value });
  if (partner !== null) writes.push({ op: "set", key: keys.eventOfPartner(partner, key), value });
}

/** What all entries say is said once. */
function column<T>(events: readonly StoredEvent[], of: (event: StoredEvent) => T): T[] {
  const first = of(events[0]!);
  return events.every((event) => of(event) === first) ? [first] : events.map(of);
}

/** The most an event may add to its commit by being in the index: rows of its own, when no other is of its tenant and bucket. */
export function indexRoom(event: StoredEvent): Room {
  const rows = (event.tenant === null ? 0 : 1) + (event.partner === null ? 0 : 1);
  const bytes = KEY_BYTES + BLOCK_BYTES + entryBytes(event);
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
  if ("type" in value) return [{ key: position, ...value }];
  const { keys: tails, types, identities, owners } = value, bucket = bucketOf(position);
  return Array.from({ length: tails.length / TAIL_CHARS }, (_, i) => ({
    key: bucket + tails.slice(i * TAIL_CHARS, (i + 1) * TAIL_CHARS) as EventKey,
    type: at(types, i),
    identity: at<IdentityId | null>(identities, i),
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

/**
 * The index of events by tenant and by partner, in blocks (blocks.ts): a row names the events of one tenant under one partner that one
 * commit wrote within one bucket. A tenant's block and its partner's are the same value under the same last part of the key: who finds
 * one can name the other (retention). Rows of releases before blocks name one event each and are read beside them.
 */
import type { EventKey, TenantId } from "../lib/ids.ts";
import { type EventBlock, type EventIndex, type EventIndexRow, keys, type Scope } from "../lib/keys.ts";
import type { Room } from "../lib/edge/commit_batch.ts";
import type { Kv, KvKey, Write } from "../lib/edge/kv.ts";
import {
  type Blocks,
  BUCKET_CHARS,
  column,
  entriesIn,
  inBlocks,
  inColumn,
  joined,
  parts,
  type Range,
  rowsIn,
  TAIL_CHARS,
  WIDE_BYTES,
} from "./blocks.ts";
import type { StoredEvent } from "./event_store.ts";

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
  for (const group of groups.values()) pushBlocks(writes, group.sort((a, b) => a.key < b.key ? -1 : 1));
  return writes;
}

/** An event without a tenant is pruned by a row of its own, and takes its partner's with it: it shares no block. */
const sharesBlock = (event: StoredEvent, other: StoredEvent | undefined): boolean =>
  other !== undefined && event.tenant !== null && event.tenant === other.tenant &&
  event.partner === other.partner && bucketOf(event.key) === bucketOf(other.key);

function pushBlocks(writes: Write[], events: readonly StoredEvent[]): void {
  for (const { first: { key, tenant, partner }, text } of inBlocks(events, textOf)) {
    if (tenant !== null) writes.push({ op: "set", key: keys.eventOfTenant(tenant, key), value: text });
    if (partner !== null) writes.push({ op: "set", key: keys.eventOfPartner(partner, key), value: text });
  }
}

function textOf(events: readonly StoredEvent[]): string {
  const block: EventBlock = {
    keys: joined(events, (event) => event.key.slice(BUCKET_CHARS)),
    types: column(events, (event) => event.type),
    identities: column(events, (event) => event.identity),
    owners: column(events, (event) => event.owner),
  };
  return JSON.stringify(block);
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

/** The events of an index family in the order of their keys, read as far as they are asked for. */
export function eventsIn(kv: Kv, family: KvKey, range: Range = {}): AsyncGenerator<IndexEntry> {
  const blocks: Blocks<EventIndex, IndexEntry> = {
    family,
    prefix: 0,
    entries: (position, value) => entriesOf(position as EventKey, value),
    at: (entry) => entry.key,
  };
  return entriesIn(kv, blocks, range);
}

/** The keys of a scope's events in order: the platform's are all there are. Positions are as for `eventsIn`. */
export async function* keysOfScope(kv: Kv, scope: Scope, range: Range): AsyncGenerator<EventKey> {
  if (scope.level === "platform") {
    for await (const { position } of rowsIn(kv, keys.events(), range)) yield position as EventKey;
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
  return parts(tails, TAIL_CHARS).map((tail, i) => ({
    key: bucket + tail as EventKey,
    type: inColumn(types, i),
    identity: inColumn(identities, i),
    owner: inColumn(owners, i),
  }));
}

const bucketOf = (position: string): string => position.slice(0, BUCKET_CHARS);

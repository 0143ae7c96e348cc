/**
 * The event store: one row an event under a time-ordered key, which is outbox, payload and time index at once. Keeps O1 (rows go
 * into the state's own commit) and O3 (bytes are made once). The index by tenant and partner is the commit's (`event_index.ts`).
 */
import { invariant } from "../lib/errors.ts";
import { encodeEventRow, eventRowOf, type StoredRow } from "../lib/event_row.ts";
import type { EndpointId, EventId, EventKey } from "../lib/ids.ts";
import { after, type EventIndexRow, type EventRow, keys, type OwnerRef } from "../lib/keys.ts";
import { MAX_CHUNK_BYTES, MAX_GET_MANY_KEYS } from "../lib/limits.ts";
import type { Kv, KvKey, Write } from "../lib/edge/kv.ts";
import type { MatchEvent } from "../lib/match.ts";

/** An event as the pipeline carries it. `body` is the envelope bytes, null when the payload was erased. */
export interface StoredEvent extends MatchEvent {
  key: EventKey;
  id: EventId;
  kind: EventRow["kind"];
  owner: string;
  seq: number | null;
  /** `occurred_at`, Unix ms. */
  at: number;
  body: Uint8Array<ArrayBuffer> | null;
}

/**
 * The rows of a new event, but those of the index, which `indexWrites` makes for all events of a commit. A deterministic id also
 * writes its alias, whose absence the caller checks.
 */
export function eventWrites(event: StoredEvent, message?: string): Write[] {
  const { key, body } = event;
  invariant(body !== null, "O3");
  const chunks = body.length > MAX_CHUNK_BYTES ? Math.ceil(body.length / MAX_CHUNK_BYTES) : 0;
  const row: EventRow = {
    type: event.type,
    tenant: event.tenant,
    identity: event.identity,
    partner: event.partner,
    kind: event.kind,
    owner: event.owner,
    seq: event.seq,
    at: event.at,
    body: chunks === 0 ? body : chunks,
  };
  if (event.id.slice(4) !== key) row.id = event.id;
  const writes: Write[] = [{
    op: "set",
    key: keys.event(key),
    value: encodeEventRow(key, row),
    fresh: true,
  }];
  for (let i = 0; i < chunks; i++) {
    const part = body.slice(i * MAX_CHUNK_BYTES, (i + 1) * MAX_CHUNK_BYTES);
    writes.push({ op: "set", key: keys.eventChunk(key, i), value: part, fresh: true });
  }
  if (event.tenant === null) {
    const index: EventIndexRow = { type: event.type, identity: event.identity, owner: event.owner };
    writes.push({ op: "set", key: keys.platformEvent(key), value: index });
  }
  if (message !== undefined) writes.push({ op: "set", key: keys.eventOfMessage(message, key), value: true });
  if (row.id !== undefined && event.tenant !== null && event.kind !== "platform") {
    const owner: OwnerRef = { kind: event.kind, tenant: event.tenant, id: event.owner };
    writes.push({ op: "set", key: keys.eventAlias(row.id, owner), value: { key } });
  }
  return writes;
}

/**
 * The events that are still stored, by key. Missing ones (retention) are absent.
 * @param keep which rows the caller may see: no chunk of another is read, so that how long it takes tells nothing of it.
 */
export async function loadEvents(
  kv: Kv,
  wanted: readonly EventKey[],
  keep: (row: StoredRow) => boolean = () => true,
): Promise<Map<EventKey, StoredEvent>> {
  const found = new Map<EventKey, StoredEvent>();
  const missing = new Set(wanted);
  if (wanted.length > MAX_GET_MANY_KEYS) {
    // Events of one commit lie side by side: one range read, given up when strangers lie between.
    const sorted = [...missing].sort();
    const start = keys.event(sorted[0]!), end = after(keys.event(sorted.at(-1)!));
    for await (const entry of kv.list({ start, end }, { limit: missing.size * 2, batchSize: 500 })) {
      const key = entry.key[1] as EventKey;
      if (missing.delete(key)) await take(key, entry.value);
    }
  }
  for (const { key, value } of await getAll(kv, [...missing].map(keys.event))) {
    await take(key[1] as EventKey, value);
  }
  return found;

  async function take(key: EventKey, value: unknown): Promise<void> {
    const row = eventRowOf(key, value);
    if (row !== null && keep(row)) found.set(key, await unpack(kv, key, row));
  }
}

export async function loadEvent(kv: Kv, key: EventKey): Promise<StoredEvent | null> {
  return (await loadEvents(kv, [key])).get(key) ?? null;
}

/** `getMany` without its limit of ten keys; in order. */
export async function getAll<T>(kv: Kv, wanted: readonly KvKey[]): Promise<Deno.KvEntryMaybe<T>[]> {
  const batches: Promise<Deno.KvEntryMaybe<T>[]>[] = [];
  for (let i = 0; i < wanted.length; i += MAX_GET_MANY_KEYS) {
    batches.push(kv.getMany<T[]>(wanted.slice(i, i + MAX_GET_MANY_KEYS)));
  }
  return (await Promise.all(batches)).flat();
}

async function unpack(kv: Kv, key: EventKey, row: StoredRow): Promise<StoredEvent> {
  const body = typeof row.body === "number" ? await joinChunks(kv, key, row.body) : row.body;
  return {
    key,
    id: row.id ?? (`evt_${key}` as EventId),
    type: row.type,
    tenant: row.tenant,
    partner: row.partner,
    identity: row.identity,
    kind: row.kind,
    owner: row.owner,
    seq: row.seq,
    at: row.at,
    about: row.type === "webhook.disabled" && body !== null ? aboutOf(body) : null,
    body,
  };
}

async function joinChunks(kv: Kv, key: EventKey, count: number): Promise<Uint8Array<ArrayBuffer> | null> {
  const wanted = Array.from({ length: count }, (_, i) => keys.eventChunk(key, i));
  const parts = (await getAll<Uint8Array>(kv, wanted)).map((entry) => entry.value);
  if (parts.some((part) => part === null)) return null; // erased between the two reads
  const body = new Uint8Array(parts.reduce((sum, part) => sum + part!.length, 0));
  let at = 0;
  for (const part of parts) body.set(part!, at), at += part!.length;
  return body;
}

function aboutOf(body: Uint8Array): EndpointId {
  return JSON.parse(new TextDecoder().decode(body)).data.webhook_id;
}

/** What is in the store, read for assertions. */
import { attemptsOfRow } from "../../actors/attempt_blocks.ts";
import { attemptsIn } from "../../actors/attempt_store.ts";
import { readState, readStates } from "../../actors/pair_state.ts";
import { encodeEventRow, eventRowOf, type StoredRow } from "../../lib/event_row.ts";
import type { EndpointId, EventKey } from "../../lib/ids.ts";
import {
  type AttemptRow,
  type DeadLetter,
  type DeliverJob,
  type EndpointRow,
  type EventRow,
  type HealthRow,
  type Job,
  keys,
  type PairRow,
  type StoredAttempt,
} from "../../lib/keys.ts";
import type { World } from "./world.ts";

async function all<T = unknown>(kv: Deno.Kv, prefix: Deno.KvKey): Promise<Deno.KvEntry<T>[]> {
  const rows: Deno.KvEntry<T>[] = [];
  for await (const row of kv.list<T>({ prefix })) rows.push(row);
  return rows;
}

/** In the order they were made: ids tell it to the millisecond, and a first attempt's tell when its event was. */
export const attempts = async (w: World, endpoint: EndpointId): Promise<AttemptRow[]> =>
  (await Array.fromAsync(attemptsIn(w.store, endpoint)))
    .sort((a, b) => a.created_at - b.created_at || a.attempt - b.attempt);

/** The rows of all events, by key. */
export async function events(kv: Deno.Kv): Promise<{ key: EventKey; row: StoredRow }[]> {
  const rows = await all(kv, keys.events());
  return rows.map(({ key: [, key], value }) => ({
    key: key as EventKey,
    row: eventRowOf(key as EventKey, value)!,
  }));
}

/** Writes an event's row with other fields. @returns what writes it back. */
export async function changeEvent(
  kv: Deno.Kv,
  event: EventKey,
  change: Partial<EventRow>,
): Promise<() => Promise<unknown>> {
  const key = keys.event(event), { value } = await kv.get(key), row = eventRowOf(event, value)!;
  await kv.set(key, encodeEventRow(event, { ...row, body: row.body, ...change }));
  return () => kv.set(key, value);
}

export const pair = async (w: World, endpoint: EndpointId, event: EventKey): Promise<PairRow | null> =>
  (await readState(w.store, endpoint, event)).row;

export const health = async (w: World, endpoint: EndpointId): Promise<HealthRow | null> =>
  (await w.store.get<HealthRow>(keys.health(endpoint))).value;

export const endpointRow = async (w: World, endpoint: EndpointId): Promise<EndpointRow> =>
  (await w.store.get<EndpointRow>(keys.endpoint(endpoint))).value!;

export interface JobEntry {
  key: Deno.KvKey;
  due: number;
  job: Job;
}

/** Job rows by due time. */
export const jobs = async (w: World): Promise<JobEntry[]> =>
  (await all<Job>(w.store, keys.jobs())).map(({ key, value }) => ({ key, due: key[2] as number, job: value }))
    .sort((a, b) => a.due - b.due);

export const parked = async (w: World): Promise<DeliverJob[]> =>
  (await all<DeliverJob>(w.store, keys.parkedAll())).map((row) => row.value);

export const deadLetters = async (w: World): Promise<DeadLetter[]> =>
  (await all<DeadLetter>(w.store, keys.deadLetters())).map((row) => row.value);

/** The pair rows there are: a first attempt of the hot path that succeeded has none. */
export const pairs = (w: World): Promise<Deno.KvEntry<PairRow>[]> => all(w.store, ["pair"]);
/** What became of each pair that was tried, or is to be again, by `endpoint event`. */
export async function states(w: World): Promise<Map<string, PairRow>> {
  const found = new Map<string, PairRow>();
  const names = (await pairs(w)).map(({ key }) => [key[1], key[2]] as [EndpointId, EventKey]);
  for (const { endpoint, value } of await allAttempts(w)) names.push([endpoint, value.event]);
  for (const [endpoint, group] of Map.groupBy(names, ([endpoint]) => endpoint)) {
    const events = [...new Set(group.map(([, event]) => event))];
    const read = await readStates(w.store, endpoint, events);
    for (const [i, { row }] of read.entries()) if (row !== null) found.set(`${endpoint} ${events[i]!}`, row);
  }
  return found;
}
/** The attempts of all endpoints, in the order of their ids. */
export const allAttempts = async (w: World): Promise<{ endpoint: EndpointId; value: AttemptRow }[]> =>
  (await allAttemptsOf(w.store)).sort((a, b) => a.value.id < b.value.id ? -1 : 1);

/** The same as they come. */
export const allAttemptsOf = async (kv: Deno.Kv): Promise<{ endpoint: EndpointId; value: AttemptRow }[]> =>
  (await all<StoredAttempt>(kv, ["attempt"])).flatMap(({ key, value }) => {
    const endpoint = key[1] as EndpointId;
    return attemptsOfRow(endpoint, key[2] as string, value).map((value) => ({ endpoint, value }));
  });
export const endpoints = (w: World): Promise<Deno.KvEntry<EndpointRow>[]> => all(w.store, keys.endpoints());
export const heartbeats = (w: World): Promise<Deno.KvEntry<{ at: number }>[]> =>
  all(w.store, keys.heartbeats());
export const pendingPlatform = (w: World): Promise<Deno.KvEntry<number>[]> =>
  all(w.store, keys.platformPendings());

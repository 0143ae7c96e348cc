/**
 * State of (endpoint, event), the "already done?" of a delivery (D1): the pair row, or, where that tells of no attempt, a first attempt
 * that succeeded at once. Nearly all do, and write no pair row; where to look for them follows from the pair (attempt_store.ts).
 * Everybody who asks what became of an event at an endpoint asks here.
 */
import { type EndpointId, type EventKey, firstDelivery } from "../lib/ids.ts";
import { after, keys, type PairRow } from "../lib/keys.ts";
import { MAX_GET_MANY_KEYS } from "../lib/limits.ts";
import type { Check, Kv, KvKey } from "../lib/edge/kv.ts";
import { markOf } from "./attempt_blocks.ts";
import { pairAfter, readFirsts } from "./attempt_store.ts";
import { getAll } from "./event_store.ts";
import type { Work, WorkPair } from "./work.ts";

/**
 * `row`: null before the first attempt. For whoever writes the pair: `versionstamp` of its row and `mark` of its bucket's mark, null
 * when there is none; the mark counts while the row tells of no attempt.
 */
export type PairState = Pick<WorkPair, "row" | "versionstamp" | "mark">;

/** The state of a pair that nobody can have written. */
export const ABSENT: PairState = { row: null, versionstamp: null, mark: null };

/** What became of the events at one endpoint, in order. */
export async function readStates(
  kv: Kv,
  endpoint: EndpointId,
  events: readonly EventKey[],
): Promise<PairState[]> {
  const pairs = await rowsOf<PairRow>(kv, events.map((event) => keys.pair(endpoint, event)));
  const untried = events.filter((_, i) => isUntried(pairs[i]!.value));
  const { ids, marks } = await readFirsts(kv, endpoint, untried);
  return events.map((event, i) => {
    const { value, versionstamp } = pairs[i]!, id = isUntried(value) ? ids.get(event) : undefined;
    const row = id === undefined
      ? value
      : pairAfter(null, { id, status: "succeeded", attempt: 1, first_attempt: 1 });
    return { row, versionstamp, mark: marks.get(markOf(event)) ?? null };
  });
}

export async function readState(kv: Kv, endpoint: EndpointId, event: EventKey): Promise<PairState> {
  return (await readStates(kv, endpoint, [event]))[0]!;
}

/** Fills in the state of works that may have been tried before, each to be recorded under a check of its own. */
export async function readPairs(kv: Kv, works: readonly Work[]): Promise<void> {
  const groups = Map.groupBy(works, (work) => work.target.row.id);
  await Promise.all([...groups].map(async ([endpoint, group]) => {
    const states = await readStates(kv, endpoint, group.map((work) => work.item.event));
    group.forEach((work, i) => work.pair = states[i]!);
  }));
}

/**
 * The same for the works of a Fanout job that nobody claimed before. Until it is closed or its claim is lost, a replay alone can be in
 * their way, and that writes the endpoint's `replays` row: one check of it stands for those of all pairs without a row, and where there
 * is none, no pair has one. Platform events may be in two such jobs.
 */
export async function readPairsOfUntouched(kv: Kv, works: readonly Work[]): Promise<void> {
  const endpoints = [...new Set(works.map((work) => work.target.row.id))];
  const found = await getAll(kv, endpoints.map(keys.replays)); // before the pairs
  const replays = new Map(endpoints.map((endpoint, i) => [endpoint, found[i]!.versionstamp]));
  const guarded = (work: Work) => !work.held.platform.includes(work.item.event);
  const replaysOf = (work: Work) => replays.get(work.target.row.id)!;
  await readPairs(kv, works.filter((work) => !guarded(work) || replaysOf(work) !== null));
  for (const work of works) {
    if (guarded(work) && (work.pair?.row ?? null) === null) {
      work.pair = { ...work.pair ?? ABSENT, replays: replaysOf(work) };
    }
  }
}

/** Whether it was found without a pair row under a check of the endpoint's `replays`, and nobody else may have written one. */
export const isUntouched = ({ pair }: Work): boolean => pair?.replays !== undefined && pair.row === null;

/** Whether the pair row tells of no attempt; it may be there all the same, opened by a replay. */
export const isUntried = (pair: PairRow | null): boolean => pair === null || pair.attempt === 0;

/** What `stateChecks` comes to at the most. */
export const MAX_STATE_CHECKS = 3;

/**
 * What must be as it was read for whoever opens or tries a pair beside the hot path. A first attempt of that which succeeds meanwhile
 * leaves the pair row alone, so while the pair is untried, both places where that would be are checked, too.
 */
export function stateChecks(
  endpoint: EndpointId,
  event: EventKey,
  { row, versionstamp, mark }: PairState,
): Check[] {
  const checks: Check[] = [{ key: keys.pair(endpoint, event), versionstamp }];
  if (isUntried(row)) {
    checks.push({ key: keys.attempt(endpoint, firstDelivery(endpoint, event)), versionstamp: null });
    checks.push({ key: keys.attemptsAt(endpoint, markOf(event)), versionstamp: mark });
  }
  return checks;
}

/** D1: what must be as it was read, so that an attempt is on record once; nothing for one of the hot path. */
export function recordChecks({ item, target, pair }: Work): Check[] {
  if (pair === null) return [];
  const endpoint = target.row.id;
  if (pair.replays !== undefined) return [{ key: keys.replays(endpoint), versionstamp: pair.replays }];
  if (item.replay) return stateChecks(endpoint, item.event, pair);
  return [{ key: keys.pair(endpoint, item.event), versionstamp: pair.versionstamp }];
}

type Found<T> = Pick<Deno.KvEntryMaybe<T>, "value" | "versionstamp">;

/** Rows of one family, in order. The events of one job lie side by side, and so do these: one range read, nearly always of nothing. */
async function rowsOf<T>(kv: Kv, wanted: readonly KvKey[]): Promise<Found<T>[]> {
  if (wanted.length <= MAX_GET_MANY_KEYS) return await getAll<T>(kv, wanted);
  const sorted = wanted.toSorted((a, b) => String(a[2]) < String(b[2]) ? -1 : 1), limit = 2 * wanted.length;
  const start = sorted[0]!, end = after(sorted.at(-1)!);
  const rows = new Map<string, Found<T>>();
  for await (const row of kv.list<T>({ start, end }, { limit, batchSize: Math.min(limit, 500) })) {
    rows.set(row.key[2] as string, row);
  }
  if (rows.size === limit) return await getAll<T>(kv, wanted); // strangers lie between, and maybe more of them
  return wanted.map((key) => rows.get(key[2] as string) ?? { value: null, versionstamp: null });
}

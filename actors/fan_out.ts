/**
 * Stage 1, fan-out: the events of one Fanout job → a work for every endpoint that receives them ("Endpoint resolution and
 * filters"). Invariants: J1 (the job row answers for all of it), S1 (one match function), O3 (the stored bytes go on).
 */
import type { EventKey } from "../lib/ids.ts";
import { after, type FanoutJob, keys, type PairRow } from "../lib/keys.ts";
import { MAX_GET_MANY_KEYS } from "../lib/limits.ts";
import { mismatch } from "../lib/match.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Directory } from "./directory.ts";
import { getAll, loadEvents, type StoredEvent } from "./event_store.ts";
import type { Held, Work } from "./work.ts";

export interface FanOutDeps {
  kv: Kv;
  directory: Directory;
  /** Told of every event that was fanned out, by which time every matching work is made. */
  fanned(event: StoredEvent): void;
  /** Told of an event whose fan-out threw. */
  failed(event: EventKey, error: unknown): void;
}

/**
 * Makes the works of a Fanout job. On the hot path the events come in memory and nothing can have been tried yet; else they
 * are read, and the pair state says what is done. An event that throws goes on alone, so it holds up no neighbour.
 */
export async function fanOut(
  held: Held<FanoutJob>,
  hot: readonly StoredEvent[] | null,
  d: FanOutDeps,
): Promise<Work[]> {
  await d.directory.refresh();
  const events = hot ?? [...(await loadEvents(d.kv, held.job.events)).values()];
  const works: Work[] = [];
  for (const event of events) {
    try {
      const mine: Work[] = [];
      for (const target of await d.directory.candidates(event)) {
        // An endpoint made after the event occurred gets it through replay only.
        if (mismatch(event, target.row) !== null || target.row.created_at > event.at) continue;
        const item = {
          event: event.key,
          id: event.id,
          type: event.type,
          attempt: 1,
          first: 1,
          replay: false,
        };
        mine.push({
          held,
          target,
          item,
          event: event.body === null ? null : event,
          pair: null,
          started: false,
        });
      }
      if (event.kind === "platform") held.platform.push(event.key);
      works.push(...mine);
      d.fanned(event);
    } catch (error) {
      held.again.push({ v: 1, kind: "fanout", events: [event.key], throws: (held.job.throws ?? 0) + 1 });
      d.failed(event.key, error);
    }
  }
  if (hot === null) await readPairs(d.kv, works);
  return works;
}

/** Fills in the "already done?" state of works that may have been tried before. */
export async function readPairs(kv: Kv, works: readonly Work[]): Promise<void> {
  const groups = Map.groupBy(works, (work) => work.target.row.id);
  await Promise.all([...groups.values()].map((group) => readPairsOf(kv, group)));
}

/** Pairs of one endpoint. Events of one job lie side by side, and so do their pairs: one range read, nearly always of nothing. */
async function readPairsOf(kv: Kv, works: readonly Work[]): Promise<void> {
  const endpoint = works[0]!.target.row.id;
  if (works.length > MAX_GET_MANY_KEYS) {
    const events = works.map((work) => work.item.event).sort(), limit = 2 * works.length;
    const start = keys.pair(endpoint, events[0]!), end = after(keys.pair(endpoint, events.at(-1)!));
    const rows = new Map<EventKey, Deno.KvEntry<PairRow>>();
    for await (const row of kv.list<PairRow>({ start, end }, { limit, batchSize: Math.min(limit, 500) })) {
      rows.set(row.key[2] as EventKey, row);
    }
    if (rows.size < limit) {
      for (const work of works) {
        const row = rows.get(work.item.event);
        work.pair = { row: row?.value ?? null, versionstamp: row?.versionstamp ?? null };
      }
      return;
    }
  }
  const pairs = await getAll<PairRow>(kv, works.map((work) => keys.pair(endpoint, work.item.event)));
  works.forEach((work, i) => work.pair = { row: pairs[i]!.value, versionstamp: pairs[i]!.versionstamp });
}

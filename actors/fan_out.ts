/**
 * Stage 1, fan-out: the events of one Fanout job → a work for every endpoint that receives them ("Endpoint resolution and
 * filters"). Invariants: J1 (the job row answers for all of it), S1 (one match function), O3 (the stored bytes go on).
 */
import type { EventKey } from "../lib/ids.ts";
import type { FanoutJob } from "../lib/keys.ts";
import { mismatch } from "../lib/match.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Directory } from "./directory.ts";
import { loadEvents, type StoredEvent } from "./event_store.ts";
import { readPairs, readPairsOfUntouched } from "./pair_state.ts";
import type { Held, Work } from "./work.ts";

export interface FanOutDeps {
  kv: Kv;
  directory: Directory;
  /** Told of every event that was fanned out, by which time every matching work is made. */
  fanned(event: StoredEvent): void;
  /** Told of an event whose fan-out threw. */
  failed(event: EventKey, error: unknown): void;
}

/** The events of a commit of this isolate, and the directory's refresh that began with it, so that nothing is read behind it. */
export interface Hot {
  events: readonly StoredEvent[];
  refreshed: Promise<void>;
}

/**
 * Makes the works of a Fanout job. On the hot path the events come in memory and nothing can have been tried yet; else they
 * are read, and the pair state says what is done. An event that throws goes on alone, so it holds up no neighbour.
 */
export async function fanOut(
  held: Held<FanoutJob>,
  hot: Hot | null,
  d: FanOutDeps,
): Promise<Work[]> {
  await (hot?.refreshed ?? d.directory.refresh());
  const events = hot?.events ?? [...(await loadEvents(d.kv, held.job.events)).values()];
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
  if (hot === null) await (held.untouched ? readPairsOfUntouched : readPairs)(d.kv, works);
  return works;
}

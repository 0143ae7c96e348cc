/** What is under way in this isolate: job rows it holds, and the deliveries each of them answers for. */
import type { AttemptError, DeliverItem, Job, PairRow } from "../lib/keys.ts";
import type { EventKey } from "../lib/ids.ts";
import type { Claim } from "../lib/edge/jobs.ts";
import type { Target } from "./directory.ts";
import type { StoredEvent } from "./event_store.ts";

/** A claimed job row and what is still open of it (J1, J2). */
export interface Held<J extends Job = Job> extends Claim<J> {
  open: Set<Work>;
  /** Settled, not yet recorded. */
  settled: Settlement[];
  /** When it was taken on, Unix ms: a Fanout job gives its open attempts away after 2 s. */
  takenAt: number;
  /** Set while its works are still being made, so that it is not closed before they are all there. */
  opening: boolean;
  /** Platform events it fans out, marked as done when it closes. */
  platform: EventKey[];
  /** What threw and goes on alone, each as a job of its own. */
  again: Job[];
}

/** One attempt to be made for one endpoint and event. */
export interface Work {
  held: Held;
  target: Target;
  item: DeliverItem;
  /** Null when the payload is gone. */
  event: StoredEvent | null;
  /** State of (endpoint, event) as it was read; null on the hot path, where there can be none. */
  pair: WorkPair | null;
  started: boolean;
}

export interface WorkPair {
  row: PairRow | null;
  /** Of the pair's own row. */
  versionstamp: string | null;
  /** Version of the mark beside which its first attempt would be (attempt_store.ts). */
  mark: string | null;
  /** Version of the endpoint's `replays` row, read before it. Absent: the pair's own version has to be checked. */
  replays?: string | null;
}

/** How a work ended, before it is recorded. */
export type Settlement =
  | { kind: "succeeded"; work: Work; httpStatus: number; durationMs: number; at: number }
  | {
    kind: "failed";
    work: Work;
    error: AttemptError;
    httpStatus: number | null;
    durationMs: number;
    at: number;
    retryAfterMs?: number;
  }
  /** No attempt can be made any more: recorded dead without a request. */
  | { kind: "dead"; work: Work; error: AttemptError; at: number }
  /** The endpoint's partner is suspended: parked, nothing recorded. */
  | { kind: "parked"; work: Work }
  /** The same attempt again at `due`: a fault of ours, or no room (D4). */
  | { kind: "later"; work: Work; due: number }
  /** Its processing threw: it goes on alone, to the dead-letter list after 13 throws. */
  | { kind: "threw"; work: Work }
  /** Done before, superseded by a replay, or its endpoint is deleted. */
  | { kind: "nothing"; work: Work };

export function hold<J extends Job>(claim: Claim<J>, now: number): Held<J> {
  return { ...claim, open: new Set(), settled: [], takenAt: now, opening: true, platform: [], again: [] };
}

/**
 * What becomes of an event, endpoint by endpoint: who receives it and which rule says no to the others, every attempt so far,
 * and what comes next and when. Reads only. The rules are those of fan-out (S1), so a trace never tells of more than a
 * delivery would; which endpoints it may name at all is the caller's to say.
 */
import type { EndpointId, EventKey } from "../lib/ids.ts";
import {
  type AttemptError,
  type AttemptRow,
  type DeadLetter,
  type EndpointRow,
  type Job,
  keys,
  type PairRow,
  within,
} from "../lib/keys.ts";
import { DAY_MS, SECOND_MS } from "../lib/limits.ts";
import { filtered, type Mismatch, mismatch } from "../lib/match.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Directory, Target } from "./directory.ts";
import { readAttempts } from "./attempt_store.ts";
import type { StoredEvent } from "./event_store.ts";
import { readState } from "./pair_state.ts";

export interface TraceDeps {
  kv: Kv;
  now(): number;
  directory: Directory;
  jobs: Pick<Jobs, "shards">;
  windowOf(event: StoredEvent): Promise<number>;
}

/**
 * Where the delivery of an event to an endpoint stands.
 * - `not_matched`: the rule says why.
 * - `waiting_for_fan_out`, `queued`, `in_flight`: its first attempt, or that of a replay, is still to be recorded.
 * - `held`: its partner is suspended.
 * - `dead_lettered`: our processing of it failed again and again; an operator redrives it.
 * - `forgotten`: retention took its rows.
 * - `unknown`: too many jobs are waiting to look through.
 */
export type TraceState =
  | "not_matched"
  | "waiting_for_fan_out"
  | "queued"
  | "in_flight"
  | "retrying"
  | "held"
  | "succeeded"
  | "dead"
  | "dead_lettered"
  | "forgotten"
  | "unknown";

/** `changed_since`: it matches now, and did not when the event was fanned out. */
export type TraceRule = Mismatch | "created_after_event" | "changed_since";

/** The attempt to come. `error`: as things stand it ends dead with this, without a request. */
export interface NextAttempt {
  attempt: number;
  /** Unix ms; null when nobody knows: it goes on with the partner's reactivation. */
  at: number | null;
  error: AttemptError | null;
}

export interface EndpointTrace {
  endpoint: EndpointRow;
  state: TraceState;
  rule: TraceRule | null;
  attempts: AttemptRow[];
  next: NextAttempt | null;
  /** Until when it may be replayed to this endpoint, Unix ms; null when it may not. */
  replayableUntil: number | null;
}

/** Job rows looked through for one trace. */
const MAX_JOBS = 5_000;
const MAX_DEAD_LETTERS = 1_000;
/** Newest attempts shown of an event that was replayed over and over. */
const MAX_ATTEMPTS_SHOWN = 200;

/** @param shown which endpoints the caller may know of. */
export async function trace(
  event: StoredEvent,
  shown: (endpoint: EndpointRow) => boolean,
  d: TraceDeps,
): Promise<EndpointTrace[]> {
  await d.directory.refresh();
  const targets = (await d.directory.candidates(event)).filter(({ row }) => shown(row));
  const states = await Promise.all(targets.map(({ row }) => readState(d.kv, row.id, event.key)));
  const open = states.some((state) => isOpen(state.row));
  const found = open ? await lookThroughJobs(event, d) : nothingFound;
  const until = event.at + await d.windowOf(event);
  return await Promise.all(targets.map(async (target, i): Promise<EndpointTrace> => {
    const pair = states[i]!.row, { row } = target;
    const attempts = await attemptsOf(d.kv, row.id, pair);
    const place = pair === null
      ? beforeFirst(event, target, found, until, d.now())
      : afterSome(event, target, pair, attempts.at(-1) ?? null, found, until);
    const replayable = event.body !== null && until > d.now() && filtered(event, row) === null;
    return {
      endpoint: row,
      rule: null,
      next: null,
      ...place,
      attempts,
      replayableUntil: replayable ? until : null,
    };
  }));
}

type Place = Pick<EndpointTrace, "state"> & Partial<Pick<EndpointTrace, "rule" | "next">>;

/** Whether a job row may answer for it that its pair does not date. */
const isOpen = (pair: PairRow | null): boolean => pair === null || pair.attempt < pair.first;

async function attemptsOf(kv: Kv, endpoint: EndpointId, pair: PairRow | null): Promise<AttemptRow[]> {
  const ids = (pair?.ids ?? []).slice(-MAX_ATTEMPTS_SHOWN);
  return (await readAttempts(kv, endpoint, ids)).filter((row) => row !== null);
}

/** Nothing was recorded yet: was it for this endpoint at all, and who answers for it (J1)? */
function beforeFirst(event: StoredEvent, target: Target, found: Found, until: number, now: number): Place {
  const { row } = target;
  const rule = mismatch(event, row);
  const job = found.deliver.get(row.id);
  if (job === undefined) {
    if (rule !== null) return { state: "not_matched", rule };
    if (row.created_at > event.at) return { state: "not_matched", rule: "created_after_event" };
    if (now > until + DAY_MS) return { state: "forgotten" };
    if (found.fanout === null && !target.held) {
      if (found.dead) return { state: "dead_lettered" };
      if (!found.all) return { state: "unknown" };
      // Nobody answers for it and nothing was tried: fan-out passed it by under an older version of the endpoint.
      return row.updated_at > event.at
        ? { state: "not_matched", rule: "changed_since" }
        : { state: "in_flight", next: { attempt: 1, at: null, error: null } };
    }
  }
  const next = upcoming(event, target, 1, (job ?? found.fanout)?.at ?? null, until);
  if (target.held && next.error === null) return { state: "held", next: { ...next, at: null } };
  if (job !== undefined) return { state: job.claimed ? "in_flight" : "queued", next };
  return { state: found.fanout!.claimed ? "in_flight" : "waiting_for_fan_out", next };
}

function afterSome(
  event: StoredEvent,
  target: Target,
  pair: PairRow,
  last: AttemptRow | null,
  found: Found,
  until: number,
): Place {
  const replayed = pair.attempt < pair.first;
  if (!replayed && pair.status === "succeeded") return { state: "succeeded" };
  if (!replayed && pair.status === "dead") return { state: "dead" };
  if (!replayed && last !== null && last.next_attempt_at === null) return { state: "dead" }; // a test: tried once
  const job = found.deliver.get(target.row.id);
  const at = replayed ? job?.at ?? null : last?.next_attempt_at ?? null;
  const next = upcoming(event, target, replayed ? pair.first : pair.attempt + 1, at, until);
  if (target.held && next.error === null) return { state: "held", next: { ...next, at: null } };
  if (!replayed) return { state: "retrying", next };
  return { state: job?.claimed ? "in_flight" : "queued", next };
}

/** What an attempt at `at` comes to without a request, as things stand (deliver.ts, `settleWithoutRequest`). */
function upcoming(
  event: StoredEvent,
  { row, held }: Target,
  attempt: number,
  at: number | null,
  until: number,
): NextAttempt {
  if (!row.enabled) return { attempt, at, error: "endpoint_disabled" };
  const gone = event.body === null || held && at !== null && at > until;
  return { attempt, at, error: gone ? "event_unavailable" : null };
}

interface Found {
  /** The Fanout job that still holds the event. A claimed one is being worked on. */
  fanout: { at: number; claimed: boolean } | null;
  deliver: Map<EndpointId, { at: number; claimed: boolean }>;
  /** It is among the dead letters. */
  dead: boolean;
  /** No job was left out. */
  all: boolean;
}

const nothingFound: Found = { fanout: null, deliver: new Map(), dead: false, all: true };

/** Job rows that answer for the event. None is due before it occurred, so older backlog is not looked at. */
async function lookThroughJobs(event: StoredEvent, d: TraceDeps): Promise<Found> {
  const found: Found = { fanout: null, deliver: new Map(), dead: false, all: true };
  const note = (job: Job, at: number) => {
    const mine = { at, claimed: job.by !== undefined && at > d.now() };
    if (job.kind === "fanout") { if (job.events.includes(event.key)) found.fanout = mine; }
    else if (holds(job, event.key)) found.deliver.set(job.endpoint, mine);
  };
  for (let shard = 0, left = MAX_JOBS; shard < d.jobs.shards; shard++) {
    const family = keys.jobsOfShard(shard);
    const start = within(family, event.at - SECOND_MS), end = keys.jobsOfShard(shard + 1);
    for await (const { key, value } of d.kv.list<Job>({ start, end }, { limit: left, batchSize: 500 })) {
      note(value, key[2] as number);
      left--;
    }
    if (left <= 0) {
      found.all = false;
      break;
    }
  }
  const letters = d.kv.list<DeadLetter>({ prefix: keys.deadLetters() }, { limit: MAX_DEAD_LETTERS });
  for await (const { value: { job } } of letters) if (holds(job, event.key)) found.dead = true;
  return found;
}

const holds = (job: Job, event: EventKey): boolean =>
  job.kind === "fanout" ? job.events.includes(event) : job.items.some((item) => item.event === event);

/**
 * Replay and redelivery ("Replay"): past events again, to one endpoint, with a fresh retry schedule. Invariants: S1 (the match
 * function of fan-out), R1 (the window runs from `occurred_at`), D1 (attempt numbers go on; an older run is superseded).
 */
import { ApiError, invalidRequest, notFound } from "../lib/errors.ts";
import type { StoredRow } from "../lib/event_row.ts";
import { type EndpointId, type EventId, type EventKey, ulidFloor } from "../lib/ids.ts";
import { type AttemptStatus, type DeliverItem, type DeliverJob, keys, type PairRow } from "../lib/keys.ts";
import {
  COMMIT_SLACK_MS,
  HANDOVER_AFTER_MS,
  MAX_CHECKS_PER_COMMIT,
  MAX_ITEMS_PER_JOB,
  MAX_REPLAY_EVENTS,
  REPLAY_WINDOW_MS,
  SECOND_MS,
} from "../lib/limits.ts";
import { filtered, inScope } from "../lib/match.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Check, Kv, KvKey, Write } from "../lib/edge/kv.ts";
import type { Directory, Target } from "./directory.ts";
import { scopeOfEndpoint } from "./endpoints.ts";
import { keysOfScope } from "./event_index.ts";
import { loadEvents, type StoredEvent } from "./event_store.ts";
import { isUntried, MAX_STATE_CHECKS, type PairState, readStates, stateChecks } from "./pair_state.ts";
import { underWay } from "./under_way.ts";

export interface ReplayDeps {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  now(): number;
  directory: Directory;
  windowOf(event: StoredEvent): Promise<number>;
  /** Rows due now were written. */
  poke(): void;
}

/**
 * By ids, or by a window of `occurred_at` (half-open, Unix ms) with an optional state. `key`: the one event of that id meant, as an id
 * that a producer gave may name one of each of its owners.
 */
export type Selection =
  | { event_ids: EventId[]; key?: EventKey }
  | { since: number; until: number; status?: AttemptStatus };

/** Events looked at for one request before it is asked to be narrower. */
const MAX_SCANNED = 50_000;
/** Pairs a unit changes. */
const PAIRS_PER_UNIT = Math.floor(MAX_CHECKS_PER_COMMIT / MAX_STATE_CHECKS);
/**
 * The first attempt of the hot path is recorded without a look at its pair for so long after the event (record_batch.ts), so a
 * replay of a pair that has no row yet starts after that, and then finds what the first attempt came to (D1).
 */
const KEEP_OFF_MS = HANDOVER_AFTER_MS + SECOND_MS + COMMIT_SLACK_MS;
/** A pair's row lists its attempts and is one value: past so many the pair is not replayed any more. */
const MAX_ATTEMPTS_OF_PAIR = 500;
/** Parked rows moved at once. */
const MOVES_AT_ONCE = 200;

/** Queues what the selection holds and the endpoint would receive. `extra` rows (audit) ride with the first commit. */
export async function replay(
  endpoint: EndpointId,
  selection: Selection,
  d: ReplayDeps,
  extra: Write[] = [],
): Promise<{ queued: number }> {
  const { target, queued } = await select(endpoint, selection, d);
  for (let i = 0; i === 0 || i < queued.length; i += PAIRS_PER_UNIT) {
    await queue(target, queued.slice(i, i + PAIRS_PER_UNIT), d, i === 0 ? extra : []);
  }
  d.poke();
  return { queued: queued.length };
}

/**
 * What a replay of the selection would queue now, in order, each with the number of its first attempt. Changes nothing.
 * @throws as `replay` does.
 */
export async function previewReplay(
  endpoint: EndpointId,
  selection: Selection,
  d: ReplayDeps,
): Promise<{ key: EventKey; first: number }[]> {
  const { queued } = await select(endpoint, selection, d);
  return queued.map(({ event, pair }) => ({ key: event.key, first: (pair?.attempt ?? 0) + 1 }));
}

async function select(
  endpoint: EndpointId,
  selection: Selection,
  d: ReplayDeps,
): Promise<{ target: Target; queued: Queued[] }> {
  await d.directory.refresh();
  const target = await d.directory.endpoint(endpoint);
  if (target === null || target.row.deleted_at !== null) throw notFound("webhook");
  const wanted = "event_ids" in selection
    ? selection.key === undefined ? await keysOfIds(d.kv, selection.event_ids) : [selection.key]
    : await keysInWindow(target, selection, d);
  const events = await receivable(target, wanted, d);
  const queued = await withStatus(target, events, "status" in selection ? selection.status : undefined, d);
  if (queued.length > MAX_REPLAY_EVENTS) throw tooMany();
  return { target, queued };
}

/** Where events with these ids are: an id of ours is its own key, a producer's has an alias for every owner that used it. */
export async function keysOfIds(kv: Kv, ids: readonly EventId[]): Promise<EventKey[]> {
  const found = new Set<EventKey>();
  for (const id of ids) {
    found.add(id.slice(4) as EventKey);
    for await (const alias of kv.list<{ key: EventKey }>({ prefix: keys.eventAliases(id) })) {
      found.add(alias.value.key);
    }
  }
  return [...found];
}

async function keysInWindow(
  target: Target,
  window: { since: number; until: number },
  d: ReplayDeps,
): Promise<EventKey[]> {
  const since = Math.max(window.since, d.now() - REPLAY_WINDOW_MS);
  const range = { from: ulidFloor(since), to: ulidFloor(Math.max(since, window.until)) };
  const found: EventKey[] = [];
  for await (const key of keysOfScope(d.kv, scopeOfEndpoint(target.row), range)) {
    found.push(key);
    if (found.length > MAX_SCANNED) throw tooMany();
  }
  return found;
}

/** Those the endpoint would receive, with their payload still there and inside the window (R1). */
async function receivable(target: Target, wanted: EventKey[], d: ReplayDeps): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let i = 0; i < wanted.length; i += 500) {
    const seen = (row: StoredRow) => inScope({ ...row, about: null }, target.row);
    for (const event of (await loadEvents(d.kv, wanted.slice(i, i + 500), seen)).values()) {
      if (event.body === null || filtered(event, target.row) !== null) continue;
      if (event.at >= d.now() - await d.windowOf(event)) events.push({ ...event, body: null });
    }
  }
  return events.sort((a, b) => a.key < b.key ? -1 : 1);
}

interface Queued {
  event: StoredEvent;
  pair: PairRow | null;
  state: PairState;
}

async function withStatus(
  target: Target,
  events: StoredEvent[],
  status: AttemptStatus | undefined,
  d: ReplayDeps,
): Promise<Queued[]> {
  const all = await withState(target, events, d);
  return all.filter(({ pair }) =>
    (pair === null || pair.attempt < MAX_ATTEMPTS_OF_PAIR) &&
    (status === undefined || (pair !== null && isIn(pair, status)))
  );
}

async function withState(
  target: Target,
  events: readonly StoredEvent[],
  d: Pick<ReplayDeps, "kv">,
): Promise<Queued[]> {
  const states = await readStates(d.kv, target.row.id, events.map((event) => event.key));
  return events.map((event, i) => ({ event, pair: states[i]!.row, state: states[i]! }));
}

/** `dead`: died and never succeeded; `failed`: the latest attempt failed; `succeeded`: some attempt did. */
function isIn(pair: PairRow, status: AttemptStatus): boolean {
  if (status === "succeeded") return pair.succeeded;
  return status === "dead" ? pair.dead && !pair.succeeded : pair.status === "failed";
}

/** Opens a new run for each pair, and the Deliver jobs for them, in one commit; again when a pair changed meanwhile. */
async function queue(target: Target, batch: Queued[], d: ReplayDeps, extra: Write[]): Promise<void> {
  const endpoint = target.row.id;
  for (let tries = 0; tries < 12; tries++) {
    const now = d.now();
    const checks: Check[] = [];
    const writes: Write[] = [...extra];
    if (batch.length > 0) writes.push({ op: "set", key: keys.replays(endpoint), value: true });
    const items: DeliverItem[] = [], kept: DeliverItem[] = [];
    let keptUntil = now;
    const open = await underWay(
      d,
      batch.filter((one) => mayBeUnderWay(one, target, now)).map(({ event }) => event),
    );
    for (const { event, pair, state } of batch) {
      const first = (pair?.attempt ?? 0) + 1;
      const key = keys.pair(endpoint, event.key);
      const opened: PairRow = pair === null
        ? { status: null, attempt: 0, first, succeeded: false, dead: false, ids: [] }
        : { ...pair, first };
      checks.push(...stateChecks(endpoint, event.key, state));
      writes.push({ op: "set", key, value: opened });
      const item = { event: event.key, id: event.id, type: event.type, attempt: first, first, replay: true };
      const keepOff = open.has(event.key);
      const since = event.kind === "platform" ? now : event.at;
      if (keepOff) keptUntil = Math.max(keptUntil, since + KEEP_OFF_MS);
      (keepOff ? kept : items).push(item);
    }
    writes.push(...jobWrites(endpoint, items, now, d), ...jobWrites(endpoint, kept, keptUntil, d));
    if (writes.length === 0 || (await d.committer.commit({ checks, writes })).ok) return;
    batch = await withState(target, batch.map(({ event }) => event), d);
  }
  throw new ApiError(
    "unavailable",
    "Cannot queue the replay now: its deliveries keep changing.",
    "Send again in a moment.",
  );
}

/** Whether the first attempt of the hot path may still be to come; another replay may have opened the pair meanwhile. */
function mayBeUnderWay({ event, pair }: Queued, { row }: Target, now: number): boolean {
  const recent = event.kind === "platform" || event.at > now - KEEP_OFF_MS;
  return isUntried(pair) && row.created_at <= event.at && recent;
}

function jobWrites(endpoint: EndpointId, items: DeliverItem[], due: number, d: ReplayDeps): Write[] {
  const writes: Write[] = [];
  for (let i = 0; i < items.length; i += MAX_ITEMS_PER_JOB) {
    const job = { v: 1, kind: "deliver", endpoint, items: items.slice(i, i + MAX_ITEMS_PER_JOB) } as const;
    writes.push(...d.jobs.write(job, due).writes);
  }
  return writes;
}

const tooMany = () =>
  invalidRequest(
    [{ path: "until", message: `the window holds more than ${MAX_REPLAY_EVENTS} events` }],
    "Ask for a narrower window, or name the events.",
  );

/** Moves what is parked under a partner back to the job rows; nothing polls for it (deviation 3). */
export async function unpark(
  prefix: KvKey,
  d: Pick<ReplayDeps, "kv" | "committer" | "jobs" | "now" | "poke">,
  wanted: (job: DeliverJob) => Promise<boolean> = () => Promise.resolve(true),
): Promise<number> {
  let rows: Deno.KvEntry<DeliverJob>[] = [], moved = 0;
  const move = async () => {
    await Promise.all(rows.map((row) => {
      const checks = [{ key: row.key, versionstamp: row.versionstamp }];
      const { writes } = d.jobs.write(row.value, d.now());
      return d.committer.commit({ checks, writes: [{ op: "delete", key: row.key }, ...writes] });
    }));
    moved += rows.length;
    rows = [];
    d.poke();
  };
  for await (const row of d.kv.list<DeliverJob>({ prefix })) {
    if (!await wanted(row.value)) continue;
    rows.push(row); // no commit is under way while a read is awaited: its failure would be a rejection nobody holds
    if (rows.length === MOVES_AT_ONCE) await move();
  }
  if (rows.length > 0) await move();
  return moved;
}

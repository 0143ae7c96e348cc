/**
 * The pipeline, in order. Read this first.
 *
 *   owner command ─▶ owner.ts ─▶ ONE COMMIT { state + event + index + Fanout job }   (`combine` adds index and job)
 *        │ hot hand-off, in memory; or later: pump over due job rows, poked by timer, doorbell, sweep
 *        ▼
 *   fan_out.ts  which endpoints ─▶ a work for each
 *   deliver.ts  guard ─▶ sign ─▶ POST, in the endpoint's lane (lanes.ts)
 *   record.ts   ─▶ ONE COMMIT { attempts + pair state + health + job rows done + what goes on, or dead }
 *
 * A job row leaves only with its results (J2); until then whoever finds it due does its work again (J1).
 */
import type { EventKey, Ids } from "../lib/ids.ts";
import type { DeliverJob, FanoutJob, Job } from "../lib/keys.ts";
import { MAX_COMMIT_BYTES, MAX_ENVELOPE_BYTES, SECOND_MS } from "../lib/limits.ts";
import type { Room } from "../lib/edge/commit_batch.ts";
import type { Combined, Committer } from "../lib/edge/committer.ts";
import type { Claim, Jobs } from "../lib/edge/jobs.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { TimerId, Timers } from "../lib/edge/ports.ts";
import { type Admission, Pump } from "../lib/edge/pump.ts";
import { attempt, type DeliverDeps, openDeliver, settleWithoutRequest } from "./deliver.ts";
import type { Directory } from "./directory.ts";
import { indexRoom, indexWrites } from "./event_index.ts";
import type { StoredEvent } from "./event_store.ts";
import { fanOut, type Hot } from "./fan_out.ts";
import { Lanes } from "./lanes.ts";
import { Recorder } from "./record.ts";
import { giveBack } from "./give_back.ts";
import { type Held, hold, type Settlement, type Work } from "./work.ts";

export interface FlowDeps extends Omit<DeliverDeps, "directory"> {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  timers: Timers;
  ids: Ids;
  directory: Directory;
  hashKey: Uint8Array;
  nextDelayMs(k: number, retryAfterMs?: number): number | null;
  maxInFlight: number;
  maxPerEndpoint: number;
  /** False: commits write their Fanout job due now and the pump takes it, as on a platform that stops idle instances. */
  hotHandOff: boolean;
  observer: FlowObserver;
}

/** What the outside may see of the pipeline: counters and codes, never content (P1). */
export interface FlowObserver {
  /** A commit with these events is durable. Absent where nobody listens: the hot path then does nothing for it. */
  appended?(events: readonly StoredEvent[]): void;
  /** @param since when its fan-out began, Unix ms. */
  fanned(event: StoredEvent, since: number): void;
  recorded(settlement: Settlement, dead: boolean): void;
  disabled(endpoint: string, reason: "gone" | "failing"): void;
  /** A new mail did not reach the Notifier; its deliveries are as they would be. */
  handOffFailed?(event: StoredEvent, error: unknown): void;
  /** A fault of ours, by the name of the stage. */
  failed(what: string, error: unknown): void;
}

/** Works kept in memory for each one that may be in flight. */
const IN_MEMORY_FACTOR = 4;
/** The same for what the pump takes while no endpoint has shown that it is quick: more would only go back to the store. */
const UNPROVEN_FACTOR = 2;
/** Payload bytes kept in memory, roughly: past them nothing more is taken on. */
const IN_MEMORY_BYTES = 64 * 1024 * 1024;
/** Until it is opened a Fanout job counts as this many works, and as the payload one commit can write. */
const FANOUT_ROOM = 64;
const FANOUT_BYTES = MAX_COMMIT_BYTES;
/** An event's key in a Fanout job, as the committer counts it. */
const FANOUT_KEY_BYTES = 60;
/** The same for an item of a Deliver job. */
const ITEM_BYTES = MAX_ENVELOPE_BYTES / 2;
const HANDOVER_CHECK_MS = SECOND_MS / 2;

export class Flow {
  readonly recorder: Recorder;
  readonly pump: Pump;
  readonly lanes: Lanes<Work>;
  #held = new Set<Held>();
  #handover: TimerId | null = null;
  #stopping = false;
  /** Due rows were left in the store for want of room. */
  #hungry = false;
  /** Jobs whose works are being made. */
  #opening = 0;
  #emptied: (() => void) | null = null;

  constructor(readonly d: FlowDeps) {
    const { maxInFlight, maxPerEndpoint } = d;
    const limits = {
      maxInFlight,
      maxPerEndpoint,
      maxWaitingPerEndpoint: maxInFlight,
      maxWaitingProven: IN_MEMORY_FACTOR * maxInFlight + FANOUT_ROOM, // also the job that fills the memory
    };
    const bytesOf = (work: Work) => work.event?.body?.length ?? 0;
    this.lanes = new Lanes<Work>(limits, d.now, (work) => this.#deliver(work), () => this.#freed(), bytesOf);
    this.recorder = new Recorder({
      ...d,
      lanes: () => this.lanes,
      noteDue: (due) => this.pump.noteDue(due),
      adopt: (held) => void this.#held.add(held),
      released: (held) => this.#release(held),
      recorded: d.observer.recorded,
      disabled: (endpoint, reason) => {
        d.directory.invalidate();
        d.observer.disabled(endpoint, reason);
      },
      failed: d.observer.failed,
    });
    this.pump = new Pump({
      ...d,
      admit: (job) => this.#admit(job),
      take: (claim) => void this.#open(claim, null, () => this.#reserve(claim.job, -1)),
      refuse: (job) => this.#reserve(job, -1),
      failed: d.observer.failed,
    });
  }

  start(): void {
    this.pump.start();
    this.#armHandover();
  }

  /**
   * The committer's `combine`: the index of all events of a commit, and one Fanout job row. That is written claimed and handed on in
   * memory when there is room, else due now for the pump: memory stays bounded however large the backlog.
   */
  combine(events: readonly StoredEvent[]): Combined {
    const job: FanoutJob = {
      v: 1,
      kind: "fanout",
      events: events.map((event) => event.key),
      untouched: true,
    };
    const hot = this.d.hotHandOff && !this.#stopping && this.#hasRoom();
    const written = hot ? this.d.jobs.writeClaimed(job) : this.d.jobs.write(job, this.d.now());
    const bytes = events.reduce((sum, event) => sum + event.body!.length, 0);
    const release = () => this.lanes.reserve(null, -events.length, -bytes);
    if (hot) this.lanes.reserve(null, events.length, bytes);
    const refreshed = hot ? this.d.directory.refresh() : Promise.resolve();
    refreshed.catch(() => {}); // said where it is awaited, if the commit lands
    const settled = (versionstamp: string | null) => {
      if (versionstamp === null) {
        if (hot) release();
        return written.undo();
      }
      this.d.observer.appended?.(events);
      if (!hot) return this.pump.poke();
      const { key, due } = written.row;
      const claim = { key, versionstamp, until: due, job: written.row.job as FanoutJob };
      void this.#open(claim, { events, refreshed }, release);
    };
    return { writes: [...indexWrites(events), ...written.writes], settled };
  }

  /** The committer's `roomOf`. */
  roomOf(event: StoredEvent): Room {
    const room = indexRoom(event);
    room.bytes += FANOUT_KEY_BYTES;
    return room;
  }

  /** No new claims; attempts in flight get `graceMs`; the rest is left due (DESIGN §5). */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await this.pump.stop();
    if (this.#handover !== null) this.d.timers.cancel(this.#handover);
    for (const held of this.#held) {
      for (const work of held.open) {
        if (!work.started && this.lanes.remove(work, work.target.row.id)) {
          this.recorder.settle({ kind: "later", work, due: this.d.now() });
        }
      }
    }
    await this.#drained(graceMs);
    await this.recorder.stop();
    // What cannot be given back now is free when its claim runs out.
    await giveBack(this.#held, this.d).catch((error) => this.d.observer.failed("give_back", error));
  }

  /** Whether jobs are under way here, or due rows wait for room. */
  get busy(): boolean {
    return this.#held.size > 0 || this.lanes.size > 0 || this.#hungry;
  }

  /** Stages by job kind. */
  readonly #stages = {
    fanout: (held: Held<FanoutJob>, hot: Hot | null) =>
      fanOut(held, hot, {
        ...this.d,
        fanned: (event) => this.d.observer.fanned(event, held.takenAt),
        failed: (_, e) => this.d.observer.failed("fan_out", e),
      }),
    deliver: (held: Held<DeliverJob>) => openDeliver(held, this.d),
  };

  /** A claimed job becomes works, and each work enters its endpoint's lane, in the room that was promised to the job. */
  async #open(claim: Claim, hot: Hot | null, release: () => void): Promise<void> {
    const held = hold(claim, this.d.now());
    this.#held.add(held);
    this.#opening++;
    const works = await this.#worksOf(held, hot);
    this.#opening--;
    for (const work of works) held.open.add(work);
    held.opening = false;
    release();
    for (const work of works) this.#enter(work);
    if (works.length === 0) this.recorder.touch(held); // nothing to do: the row goes
    this.#freed();
  }

  async #worksOf(held: Held, hot: Hot | null): Promise<Work[]> {
    try {
      return held.job.kind === "fanout"
        ? await this.#stages.fanout(held as Held<FanoutJob>, hot)
        : await this.#stages.deliver(held as Held<DeliverJob>);
    } catch (error) {
      this.d.observer.failed("open", error);
      held.again = oneByOne(held.job);
      return [];
    }
  }

  #enter(work: Work): void {
    const endpoint = work.target.row.id;
    if (this.lanes.room(endpoint) > 0 && !this.#stopping) this.lanes.push(endpoint, work);
    else {
      const due = this.#stopping ? this.d.now() : this.lanes.later(endpoint, 1);
      this.recorder.settle({ kind: "later", work, due });
    }
  }

  /** One attempt, in its lane. Never rejects. @returns how long the endpoint took, ms; null when it was not asked. */
  async #deliver(work: Work): Promise<number | null> {
    work.started = true;
    if (!work.held.open.has(work)) return null; // its job was lost while it waited: somebody else answers for it
    const settlement = await this.#attempt(work);
    this.recorder.settle(settlement);
    return settlement.kind === "succeeded" || settlement.kind === "failed" ? settlement.durationMs : null;
  }

  async #attempt(work: Work): Promise<Settlement> {
    try {
      const target = await this.d.directory.current(work.target);
      if (target === null) return { kind: "nothing", work };
      work.target = target;
      return await settleWithoutRequest(work, this.d) ?? await attempt(work, this.d);
    } catch (error) {
      this.d.observer.failed("deliver", error);
      return { kind: "threw", work };
    }
  }

  #admit(job: Job): Admission {
    if (!this.#hasRoom(this.#pumpRoom) || this.#stopping) {
      this.#hungry = true;
      return "full";
    }
    if (job.kind === "deliver") {
      const { endpoint, items } = job;
      // What is more than a whole lane goes on alone (`#enter`), else it would never be taken.
      const wanted = Math.min(items.length, this.lanes.capacity(endpoint));
      if (this.lanes.room(endpoint) < wanted) return { later: this.lanes.later(endpoint, items.length) };
    }
    this.#reserve(job, 1);
    return "start";
  }

  #reserve(job: Job, sign: 1 | -1): void {
    if (job.kind === "deliver") {
      const { endpoint, items } = job;
      this.lanes.reserve(endpoint, sign * items.length, sign * items.length * ITEM_BYTES);
    } else this.lanes.reserve(null, sign * Math.min(job.events.length, FANOUT_ROOM), sign * FANOUT_BYTES);
  }

  #hasRoom(works = IN_MEMORY_FACTOR * this.d.maxInFlight): boolean {
    return this.lanes.size < works && this.lanes.bytes < IN_MEMORY_BYTES;
  }

  get #pumpRoom(): number {
    return (this.lanes.anyProven ? IN_MEMORY_FACTOR : UNPROVEN_FACTOR) * this.d.maxInFlight;
  }

  #freed(): void {
    if (this.#stopping) return this.#quiet ? this.#emptied?.() : undefined;
    // Half empty: worth a look at what waits in the store.
    if (!this.#hungry || this.lanes.size > this.#pumpRoom / 2) return;
    if (this.lanes.bytes > IN_MEMORY_BYTES / 2) return;
    this.#hungry = false;
    this.pump.poke();
  }

  get #quiet(): boolean {
    return this.lanes.inFlight === 0 && this.#opening === 0;
  }

  #release(held: Held): void {
    this.#held.delete(held);
  }

  /** Fanout jobs whose attempts are open for 2 s give them to Deliver rows (J1). */
  #armHandover(): void {
    this.#handover = this.d.timers.after(HANDOVER_CHECK_MS, () => {
      for (const held of this.#held) if (held.job.kind === "fanout") this.recorder.touch(held);
      if (!this.#stopping) this.#armHandover();
    });
  }

  #drained(graceMs: number): Promise<void> {
    if (this.#quiet) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.d.timers.after(graceMs, resolve);
      this.#emptied = () => (this.d.timers.cancel(timer), resolve());
    });
  }
}

/** A job that could not be opened: each of its items goes on alone, so that a poisoned one holds up no neighbour. */
function oneByOne(job: Job): Job[] {
  const throws = (job.throws ?? 0) + 1;
  return job.kind === "fanout"
    ? job.events.map((event: EventKey) => ({ v: 1, kind: "fanout", events: [event], throws }))
    : job.items.map((item) => ({ v: 1, kind: "deliver", endpoint: job.endpoint, items: [item], throws }));
}

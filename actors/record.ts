/**
 * Stage 3, record: what was settled since the last commit → ONE commit { attempt rows + pair state + endpoint health + job
 * rows done + Deliver rows for what goes on, or dead } ("Delivering an attempt", steps 5 to 7). One flush at a time, so a
 * flush holds whatever ended during the one before. While the store is full or held by another process, results are kept and
 * tried again for as long as their claims last, so that nothing has to be sent twice for it (D4).
 * Invariants: J1, J2 (a row leaves only with its results), D1 (only the holder of the claim records, checked).
 */
import type { EndpointId } from "../lib/ids.ts";
import { HANDOVER_AFTER_MS, SECOND_MS } from "../lib/limits.ts";
import { type Committer, CommitTooLargeError } from "../lib/edge/committer.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Timers } from "../lib/edge/ports.ts";
import { nothingWritten } from "../lib/edge/store_fault.ts";
import { HealthBook } from "./health_book.ts";
import type { Lanes } from "./lanes.ts";
import { ABSENT } from "./pair_state.ts";
import { RecordBatch, type RecordDeps } from "./record_batch.ts";
import type { Held, Settlement, Work } from "./work.ts";

export interface RecorderDeps extends RecordDeps {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  timers: Timers;
  lanes(): Lanes<Work>;
  /** A row for later was written. */
  noteDue(due: number): void;
  /** A job of this isolate's was written claimed: it is held from now on. */
  adopt(held: Held): void;
  /** A job left this isolate: closed, lost or given up. */
  released(held: Held): void;
  /** An endpoint was disabled. */
  disabled(endpoint: EndpointId, reason: "gone" | "failing"): void;
  /** Called for each recorded settlement, after its commit. */
  recorded(settlement: Settlement, dead: boolean): void;
  failed(what: string, error: unknown): void;
}

/** Pause after the store took nothing. */
const REFUSED_MS = SECOND_MS;

export class Recorder {
  #dirty = new Set<Held>();
  /** Jobs recorded one a flush, because a flush they were part of could not be built. */
  #alone = new Set<Held>();
  #running: Promise<void> | null = null;
  #health: HealthBook;
  #endPause: (() => void) | null = null;
  #stopping = false;

  constructor(readonly d: RecorderDeps) {
    this.#health = new HealthBook(d.kv);
  }

  /** A work ended. Its held job is recorded in the next flush. */
  settle(settlement: Settlement): void {
    const { held } = settlement.work;
    if (!held.open.delete(settlement.work)) return; // the claim was lost meanwhile: somebody else answers for it
    held.settled.push(settlement);
    this.touch(held);
  }

  /** Something about the held job has to be written: results, its close, or the handover of what is open. */
  touch(held: Held): void {
    this.#dirty.add(held);
    this.#running ??= this.#run();
  }

  /** Forgets a job whose claim is gone. What is still under way for it is not recorded. */
  lose(held: Held): void {
    this.#dirty.delete(held);
    this.#alone.delete(held);
    held.open.clear();
    held.settled = [];
    this.d.released(held);
  }

  /** Records what is settled, and waits no more for a store that takes nothing. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#endPause?.();
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    await undefined; // whatever ends in this tick shares the flush
    while (this.#dirty.size > 0) await this.#flush();
    this.#running = null;
  }

  async #flush(): Promise<void> {
    const batch = new RecordBatch(this.d);
    for (const held of this.#dirty) {
      const alone = this.#alone.has(held);
      if (batch.full || (alone && !batch.empty)) break;
      this.#dirty.delete(held);
      if (batch.take(held, this.#overdue(held) ? this.d.lanes() : null)) this.#dirty.add(held);
      if (alone) break;
    }
    let asked = false; // the store was asked to commit
    try {
      for (let tries = 0; !batch.empty; tries++) {
        asked = false;
        await this.#health.load(batch.endpoints());
        const unit = await batch.build(this.#health);
        asked = true;
        const settled = await this.d.committer.commit(unit);
        if (settled.ok) return this.#committed(batch, settled.versionstamp);
        await this.#checkAgain(batch, tries);
        if (batch.overfull) return this.#apart(batch);
      }
    } catch (error) {
      this.d.failed("record", error);
      batch.jobs.undo();
      this.#health.forget(batch.endpoints());
      if (nothingWritten(error) && !this.#stopping) return await this.#keep(batch);
      if (batch.helds().length > 1 && (!asked || error instanceof CommitTooLargeError)) {
        // Nothing was written, and one of them is why: apart, its neighbours pass.
        for (const held of batch.restore()) {
          this.#alone.add(held);
          this.#dirty.add(held);
        }
        return;
      }
      // Whether it was committed is unknown: the rows, or the claims that run out, tell whoever looks next.
      for (const held of batch.helds()) this.lose(held);
    }
  }

  /** Gives everything back to its jobs, to be taken in smaller pieces. */
  #apart(batch: RecordBatch): void {
    for (const held of batch.restore()) this.#dirty.add(held);
  }

  /** Gives everything back to its jobs, but for claims that run out: somebody else answers for those. */
  async #keep(batch: RecordBatch): Promise<void> {
    for (const held of batch.restore()) {
      if (held.until <= this.d.now() + REFUSED_MS) this.lose(held);
      else this.#dirty.add(held);
    }
    await new Promise<void>((resolve) => {
      const timer = this.d.timers.after(REFUSED_MS, resolve);
      this.#endPause = () => (this.d.timers.cancel(timer), resolve());
    });
  }

  #overdue(held: Held): boolean {
    return held.job.kind === "fanout" && !held.opening && held.open.size > 0 &&
      this.d.now() - held.takenAt >= HANDOVER_AFTER_MS;
  }

  #committed(batch: RecordBatch, versionstamp: string): void {
    this.#health.keep(versionstamp);
    for (const due of batch.jobs.dues) this.d.noteDue(due);
    for (const { from, to } of batch.jobs.moved) {
      to.versionstamp = versionstamp;
      this.d.adopt(to);
      for (const work of to.open) {
        work.held = to;
        work.pair ??= ABSENT; // from here on somebody else may try it, too (D1)
        if (from.open.delete(work)) continue;
        to.open.delete(work); // it ended during the commit
        const index = from.settled.findIndex((settlement) => settlement.work === work);
        to.settled.push(...from.settled.splice(index, 1));
        this.touch(to);
      }
    }
    for (const held of batch.closed) {
      this.#dirty.delete(held);
      this.#alone.delete(held);
      this.d.released(held);
    }
    for (const { endpoint, reason } of batch.disabled) this.d.disabled(endpoint, reason);
    for (const { settlement, dead } of batch.results()) this.d.recorded(settlement, dead);
  }

  /** A check failed: find out which claims are lost and which states were read too early, and build once more. */
  async #checkAgain(batch: RecordBatch, tries: number): Promise<void> {
    batch.jobs.undo();
    this.#health.forget(batch.endpoints());
    for (const held of await batch.lost(this.d.kv)) this.lose(held);
    if (tries > 8) throw new Error("others keep changing the same rows");
  }
}

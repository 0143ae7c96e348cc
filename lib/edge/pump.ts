/**
 * The pump: takes due job rows shard by shard, claims as many as can start at once, and sleeps until the next due time or a
 * poke. It does not know what a job does. Invariant J3: a claim is a moved due time; a lost claim is skipped.
 */
import type { Job } from "../keys.ts";
import { MAX_ITEMS_PER_JOB, MINUTE_MS } from "../limits.ts";
import type { Committer } from "./committer.ts";
import { type Claim, dueOf, headOfShard, type Jobs } from "./jobs.ts";
import type { Kv } from "./kv.ts";
import type { TimerId, Timers } from "./ports.ts";

/** What the pump may do with a due row: start it, leave it where it is, or move it to a later time (no room for it). */
export type Admission = "start" | "full" | { later: number };

export interface PumpDeps {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  now(): number;
  timers: Timers;
  /** Asked for each due row, in due order. `start` reserves the room, given back by `take` or `refuse`. */
  admit(job: Job): Admission;
  take(claim: Claim): void;
  /** An admitted row could not be claimed. */
  refuse(job: Job): void;
  failed(what: string, error: unknown): void;
}

const PAGE = 64;
/** Pause after the store refused a claim. */
const REFUSED_MS = 1_000;

export class Pump {
  #running = false;
  #again = false;
  #stopped = true;
  #timer: TimerId | null = null;
  #timerDue = Infinity;
  #turn = 0;
  #done: Promise<void> = Promise.resolve();

  constructor(readonly d: PumpDeps) {}

  start(): void {
    this.#stopped = false;
    this.poke();
  }

  /** Ends claiming; resolves when no claim is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) this.d.timers.cancel(this.#timer);
    this.#timer = null;
    this.#timerDue = Infinity;
    await this.#done;
  }

  /** Something may be due: look. */
  poke(): void {
    if (this.#stopped) return;
    this.#again = true;
    if (!this.#running) this.#done = this.#run();
  }

  /** A row due at `due` was written: be awake then. */
  noteDue(due: number): void {
    if (this.#stopped || due >= this.#timerDue) return;
    if (this.#timer !== null) this.d.timers.cancel(this.#timer);
    this.#timerDue = due;
    this.#timer = this.d.timers.after(Math.max(0, due - this.d.now()), () => {
      this.#timer = null;
      this.#timerDue = Infinity;
      this.poke();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        await this.#round();
      } catch (error) {
        this.d.failed("pump", error);
        this.noteDue(this.d.now() + 1_000); // the store answers no reads: look again soon
      }
    }
    this.#running = false;
  }

  /**
   * One page of every shard in turn, from another one each time, so that none is starved; again while some shard has more. What is
   * taken of all shards is claimed together.
   */
  async #round(): Promise<void> {
    const { shards } = this.d.jobs;
    const first = this.#turn++;
    for (;;) {
      const looks: Look[] = [];
      let answered: boolean[] = [];
      try {
        for (let i = 0; i < shards && !this.#stopped; i++) looks.push(await this.#look((first + i) % shards));
      } finally { // also when a shard cannot be read: no claim is under way behind a round
        answered = await Promise.all(looks.flatMap((look) => look.claims));
      }
      const next = Math.min(this.d.now() + MINUTE_MS, ...looks.map((look) => look.next));
      // Not at once: the store may be down.
      if (answered.includes(false)) return this.noteDue(Math.min(next, this.d.now() + REFUSED_MS));
      if (this.#stopped || !looks.some((look) => look.more)) return this.noteDue(next);
    }
  }

  /** Takes what is due in a page of a shard. */
  async #look(shard: number): Promise<Look> {
    const rows = await headOfShard(this.d.kv, shard, PAGE);
    const look: Look = { claims: [], next: Infinity, more: rows.length === PAGE };
    const moves: Move[] = [];
    for (const row of rows) {
      const due = dueOf(row.key);
      const admission = due > this.d.now() ? null : this.d.admit(row.value);
      if (admission === null) look.next = due;
      if (admission === null || admission === "full") { // whoever frees room pokes
        look.more = false;
        break;
      }
      if (admission === "start") look.claims.push(this.#claim(row));
      else moves.push({ row, due: laterOf(admission) });
    }
    for (const group of together(moves)) look.claims.push(this.#postpone(group));
    return look;
  }

  /** False: the store did not answer. */
  async #claim(row: Deno.KvEntry<Job>): Promise<boolean> {
    const claimed = this.d.jobs.writeClaimed(row.value);
    const checks = [{ key: row.key, versionstamp: row.versionstamp }];
    try {
      const settled = await this.d.committer.commit({
        checks,
        writes: [{ op: "delete", key: row.key }, ...claimed.writes],
      });
      if (settled.ok) {
        const { key, due, job } = claimed.row;
        const first = row.value.kind === "fanout" && row.value.untouched;
        const claim: Claim = { key, versionstamp: settled.versionstamp, until: due, job };
        this.d.take(first ? { ...claim, untouched: true } : claim);
        return true;
      }
      claimed.undo();
      this.d.refuse(row.value);
      return true;
    } catch (error) {
      this.d.failed("claim", error); // it may be claimed: it comes back when the claim runs out
      claimed.undo();
      this.d.refuse(row.value);
      return false;
    }
  }

  /** Rows that go on as one, due with the last of them. */
  async #postpone(moves: Move[]): Promise<boolean> {
    const due = Math.max(...moves.map((move) => move.due));
    const later = this.d.jobs.write(merged(moves), due);
    const checks = moves.map(({ row }) => ({ key: row.key, versionstamp: row.versionstamp }));
    const deletes = moves.map(({ row }) => ({ op: "delete" as const, key: row.key }));
    try {
      const settled = await this.d.committer.commit({
        checks,
        writes: [...deletes, ...later.writes],
      });
      if (settled.ok) this.noteDue(due);
      else later.undo();
      return true;
    } catch (error) {
      this.d.failed("claim", error);
      later.undo();
      return false;
    }
  }
}

/** What a page of a shard came to. */
interface Look {
  /** False: the store did not answer. */
  claims: Promise<boolean>[];
  /** When the first row is due that is not yet. */
  next: number;
  /** All of it was taken, and more may be due. */
  more: boolean;
}

/** A due row without room, and when it is to be looked at again. */
interface Move {
  row: Deno.KvEntry<Job>;
  due: number;
}

/**
 * Rows of one endpoint that are moved at once go on as one, so that a backlog which waits is moved in fewer rows each time. What
 * threw before stays alone: one poisoned item holds up no neighbour.
 */
function together(moves: readonly Move[]): Move[][] {
  const groups: Move[][] = [];
  const open = new Map<string, { moves: Move[]; items: number }>();
  for (const move of moves) {
    const job = move.row.value;
    if (job.kind !== "deliver" || job.throws !== undefined) {
      groups.push([move]);
      continue;
    }
    let group = open.get(job.endpoint);
    if (group === undefined || group.items + job.items.length > MAX_ITEMS_PER_JOB) {
      open.set(job.endpoint, group = { moves: [], items: 0 });
      groups.push(group.moves);
    }
    group.moves.push(move);
    group.items += job.items.length;
  }
  return groups;
}

function merged(moves: readonly Move[]): Job {
  const first = moves[0]!.row.value;
  if (first.kind !== "deliver") return first;
  return { ...first, items: moves.flatMap(({ row }) => row.value.kind === "deliver" ? row.value.items : []) };
}

const laterOf = (admission: Admission): number => (admission as { later: number }).later;

/**
 * The committer: every write of the system goes through it. It merges the units that are waiting into one `kv.atomic()`
 * and settles each, because a commit on a file is one fsync, one at a time: throughput is units per commit.
 *
 * - A commit starts at once when a slot is free, else when one ends; meanwhile the next one is built.
 * - A failed check splits the commit in halves, so one conflict never fails its neighbours.
 * - A commit that threw is never repeated: whether it was written is unknown, and its units reject (J2, D4).
 * - Units keep the order they came in wherever order can be told apart (see commit_batch.ts).
 */
import {
  addRoom,
  Batch,
  CommitTooLargeError,
  type Entry,
  NO_ROOM,
  type Room,
  tooLarge,
} from "./commit_batch.ts";
import type { Check, Kv, Write } from "./kv.ts";
import { measure } from "./measure.ts";
import { storeFault } from "./store_fault.ts";

export { CommitTooLargeError } from "./commit_batch.ts";

/** An independent all-or-nothing change. Its values must not be changed until it settles. */
export interface Unit {
  checks: Check[];
  writes: Write[];
  /** Handed to `combine` with those of the units that share the commit (events that want one Fanout job row). */
  carry?: readonly unknown[];
}

/** `ok: false`: a check failed and nothing of the unit was written. A KV failure rejects: the result is then unknown. */
export type Settled = { ok: true; versionstamp: string } | { ok: false };

export interface Committer {
  /** Rejects with `CommitTooLargeError` before anything is written if no commit can hold the unit. */
  commit(unit: Unit): Promise<Settled>;
  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void>;
}

/** What `combine` adds to a commit. */
export interface Combined {
  /** Rows of its own: keys that no unit writes or checks. */
  writes: Write[];
  /**
   * Called once: the commit's versionstamp when it was written, before its units settle; null when it was not, or when
   * that is unknown. After a split `combine` is called anew for each part. Must not throw.
   */
  settled?(versionstamp: string | null): void;
}

export interface CommitterOptions {
  /** Commits under way at once: 1 on a file, where they run one at a time anyway; more on a remote KV. */
  maxInFlight: number;
  /** Called when a commit starts, with all `carry` items of its units in order, if there is any. */
  combine?: (carried: unknown[]) => Combined;
  /** What `combine` may add for one carried item, at most: so much is left free in a commit that holds it. */
  roomOf?: (item: unknown) => Room;
}

/** Turns of the microtask queue a freed slot waits before it starts: a caller's way from its result to its next unit. */
const GATHER_HOPS = 40;
/** Fewer units are not worth a commit of their own while more may come. */
const MIN_GATHERED = 16;
/** How far past units that cannot join a commit it looks for ones that can. */
const MAX_PASSED_OVER = 64;

export function makeCommitter(kv: Kv, options: CommitterOptions): Committer {
  const { maxInFlight, combine, roomOf } = options;
  const inFlight = new Set<Batch>();
  const idlers: (() => void)[] = [];
  let forming = new Batch(kv, combine !== undefined);
  let waiting: Entry[] = [];
  let startPlanned = false;
  /** The commit that ended last, while its slot waits for the units that answer it, and how many of them are enough. */
  let gathering: Batch | null = null;
  let enough = 0;

  function roomFor({ carry }: Unit): Readonly<Room> {
    if (roomOf === undefined || carry === undefined) return NO_ROOM;
    const room = { ...NO_ROOM };
    for (const item of carry) addRoom(room, roomOf(item));
    return room;
  }

  function take(entry: Entry): void {
    if (waiting.length > 0 || !joins(entry)) waiting.push(entry);
    if (gathering !== null && forming.entries.length >= enough) return free(gathering);
    if (inFlight.size < maxInFlight && !startPlanned) {
      startPlanned = true;
      queueMicrotask(start);
    }
  }

  /** Puts the entry in the batch being built if it may be there. An entry that cannot be serialised rejects, too. */
  function joins(entry: Entry): boolean {
    if (!forming.hasRoomFor(entry) || mustWait(entry)) return false;
    try {
      forming.add(entry);
    } catch (error) {
      entry.reject(error);
    }
    return true;
  }

  function mustWait(entry: Entry): boolean {
    if (forming.clashesWith(entry)) return true;
    // With one slot the batch being built starts after the one in flight has ended.
    if (maxInFlight > 1) { for (const batch of inFlight) if (batch.racesWith(entry)) return true; }
    return false;
  }

  /** Starts as many commits as there are slots, then builds the next one while they are under way. */
  function start(): void {
    startPlanned = false;
    refill();
    while (inFlight.size < maxInFlight && forming.entries.length > 0) {
      const batch = forming;
      forming = new Batch(kv, combine !== undefined);
      inFlight.add(batch);
      void run(batch).then(async () => {
        for (let hop = 0; hop < GATHER_HOPS && inFlight.has(batch); hop++) await undefined;
        free(batch);
      });
      refill();
    }
    if (inFlight.size === 0 && waiting.length === 0) { for (const wake of idlers.splice(0)) wake(); }
  }

  /**
   * What answers the results of a commit with its next change shares the next one, instead of waiting for one without it. Of callers
   * that do nothing else (all units carried something) half are enough: the rest is built while that commit is under way.
   */
  function gather(ended: Batch): void {
    const { entries } = ended;
    gathering = ended;
    enough = entries.every(carries) ? Math.max(MIN_GATHERED, entries.length >> 1) : Infinity;
    if (forming.entries.length >= enough) free(ended);
  }

  /** Gives a commit's slot to the next. */
  function free(ended: Batch): void {
    if (gathering === ended) gathering = null;
    if (inFlight.delete(ended)) start();
  }

  /** Moves waiting entries into the batch being built, passing over those that must come later. */
  function refill(): void {
    if (waiting.length === 0) return;
    const left: Entry[] = [];
    const passed = new Set<string>();
    let i = 0;
    for (; i < waiting.length && left.length < MAX_PASSED_OVER; i++) {
      const entry = waiting[i]!;
      if (!forming.hasRoomFor(entry)) break;
      if (!touches(entry, passed) && joins(entry)) continue;
      left.push(entry);
      for (const name of entry.size.writeNames) passed.add(name);
      for (const name of entry.size.checkNames) passed.add(name);
    }
    if (i === left.length) return;
    waiting = left.length === 0 ? waiting.slice(i) : left.concat(waiting.slice(i));
  }

  /** Commits the batch, in parts if it must, and settles every entry. Never rejects. */
  async function run(batch: Batch): Promise<void> {
    let combined: Combined | undefined;
    let versionstamp: string | null;
    try {
      if (combine && batch.carried.length > 0) {
        combined = combine(batch.carried);
        batch.addCombined(combined.writes);
      }
      versionstamp = await batch.commit();
    } catch (error) {
      combined?.settled?.(null);
      // Refused for its size before anything was written: the parts may pass.
      if (refused(error) && batch.entries.length > 1) return split(batch);
      for (const entry of batch.entries) entry.reject(error);
      return;
    }
    combined?.settled?.(versionstamp);
    if (versionstamp !== null) {
      if (inFlight.has(batch)) gather(batch); // a part of one that was split has no slot of its own
      for (const entry of batch.entries) entry.resolve({ ok: true, versionstamp });
    } else if (batch.entries.length === 1) batch.entries[0]!.resolve({ ok: false });
    else await split(batch);
  }

  async function split(batch: Batch): Promise<void> {
    const middle = batch.entries.length >> 1;
    for (const half of [batch.entries.slice(0, middle), batch.entries.slice(middle)]) {
      const part = new Batch(kv, false);
      for (const entry of half) {
        try {
          part.add(entry);
        } catch (error) {
          entry.reject(error);
        }
      }
      await run(part);
    }
  }

  return {
    commit: (unit) =>
      new Promise((resolve, reject) => {
        const size = measure(unit.checks, unit.writes);
        const what = tooLarge(size);
        if (what) throw new CommitTooLargeError(what);
        take({ unit, size, room: roomFor(unit), resolve, reject });
      }),
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve);
        if (!startPlanned) {
          startPlanned = true;
          queueMicrotask(start);
        }
      }),
  };
}

const carries = ({ unit }: Entry): boolean => unit.carry !== undefined && unit.carry.length > 0;

/** Deno KV refuses an operation that is over its limits with a `TypeError`, before it writes. So it does when it is at fault. */
const refused = (error: unknown): boolean =>
  error instanceof CommitTooLargeError || (error instanceof TypeError && storeFault(error) === null);

function touches(entry: Entry, names: Set<string>): boolean {
  if (names.size === 0) return false;
  return entry.size.writeNames.some((name) => names.has(name)) ||
    entry.size.checkNames.some((name) => names.has(name));
}

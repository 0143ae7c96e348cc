/**
 * One commit in the making: units merged into one `kv.atomic()` within the limits, in the order they came.
 *
 * Units share a commit only if that changes no unit's meaning. All checks of an `atomic()` look at the store before it, so
 * a unit that checks or writes a key another unit of the commit writes must come in a later commit: its check would not
 * see the write, and two writers would be given one versionstamp for different values.
 */
import {
  MAX_CHECKS_PER_COMMIT,
  MAX_COMMIT_BYTES,
  MAX_COMMIT_KEY_BYTES,
  MAX_KEY_BYTES,
  MAX_MUTATIONS_PER_COMMIT,
  MAX_VALUE_BYTES,
} from "../limits.ts";
import type { Kv, Write } from "./kv.ts";
import { measure, type Measured, type Size } from "./measure.ts";
import type { Settled, Unit } from "./committer.ts";

/** What `combine` may add to a commit for what is carried, at most. */
export interface Room {
  mutations: number;
  bytes: number;
  keyBytes: number;
}

/** A unit on its way, with its sizes and its promise's ends. */
export interface Entry {
  unit: Unit;
  size: Measured;
  /** For all it carries. */
  room: Room;
  resolve(settled: Settled): void;
  reject(reason: unknown): void;
}

/** What a batch leaves free for the writes `combine` adds once, beside the room of each carried item. */
export const COMBINE_MUTATIONS = 16;
const COMBINE_BYTES = 8_192;
const COMBINE_KEY_BYTES = 2_048;

export const NO_ROOM: Readonly<Room> = { mutations: 0, bytes: 0, keyBytes: 0 };

export function addRoom(sum: Room, more: Readonly<Room>): void {
  sum.mutations += more.mutations;
  sum.bytes += more.bytes;
  sum.keyBytes += more.keyBytes;
}

/** A unit (or a unit with what `combine` adds to it) that no commit can hold. Nothing of it was written. */
export class CommitTooLargeError extends Error {
  override name = "CommitTooLargeError";
  constructor(what: string) {
    super(`Cannot commit: ${what}. Split the change into smaller units.`);
  }
}

/** Says what is too large about a unit, or null if a commit can hold it. */
export function tooLarge(size: Measured): string | null {
  if (size.mutations > MAX_MUTATIONS_PER_COMMIT) {
    return `${size.mutations} writes are more than ${MAX_MUTATIONS_PER_COMMIT}`;
  }
  if (size.checks > MAX_CHECKS_PER_COMMIT) {
    return `${size.checks} checks are more than ${MAX_CHECKS_PER_COMMIT}`;
  }
  if (size.maxKey > MAX_KEY_BYTES) return `a key of ${size.maxKey} B is over ${MAX_KEY_BYTES} B`;
  if (size.maxValue > MAX_VALUE_BYTES) return `a value of ${size.maxValue} B is over ${MAX_VALUE_BYTES} B`;
  if (size.keyBytes > MAX_COMMIT_KEY_BYTES) {
    return `keys of ${size.keyBytes} B are over ${MAX_COMMIT_KEY_BYTES} B`;
  }
  if (size.bytes > MAX_COMMIT_BYTES) return `${size.bytes} B are over ${MAX_COMMIT_BYTES} B`;
  return null;
}

export class Batch {
  readonly entries: Entry[] = [];
  readonly carried: unknown[] = [];
  readonly #kv: Kv;
  readonly #reserve: boolean;
  readonly #size: Size = { mutations: 0, checks: 0, bytes: 0, keyBytes: 0 };
  readonly #room: Room = { mutations: 0, bytes: 0, keyBytes: 0 };
  readonly #written = new Set<string>();
  readonly #checked = new Map<string, string | null>();
  #atomic: Deno.AtomicOperation;

  /** @param reserve Leave room for the writes of `combine`. */
  constructor(kv: Kv, reserve: boolean) {
    this.#kv = kv;
    this.#reserve = reserve;
    this.#atomic = kv.atomic();
  }

  /** Whether the entry fits beside the units already here. An empty batch has room for any unit that passed `tooLarge`. */
  hasRoomFor(entry: Entry): boolean {
    if (this.entries.length === 0) return true;
    const have = this.#size, more = entry.size;
    const keep = this.#reserve
      ? { mutations: COMBINE_MUTATIONS, bytes: COMBINE_BYTES, keyBytes: COMBINE_KEY_BYTES }
      : NO_ROOM;
    const sum = (of: keyof Room) => have[of] + more[of] + keep[of] + this.#room[of] + entry.room[of];
    return sum("mutations") <= MAX_MUTATIONS_PER_COMMIT &&
      have.checks + more.checks <= MAX_CHECKS_PER_COMMIT &&
      sum("keyBytes") <= MAX_COMMIT_KEY_BYTES &&
      sum("bytes") <= MAX_COMMIT_BYTES;
  }

  /** Whether merging the entry would change what it, or a unit already here, means. */
  clashesWith(entry: Entry): boolean {
    const { writeNames, checkNames } = entry.size;
    if (this.#written.size > 0) {
      for (const name of writeNames) if (this.#written.has(name)) return true;
    }
    for (let i = 0; i < checkNames.length; i++) {
      const name = checkNames[i]!;
      if (this.#written.has(name)) return true;
      const expected = this.#checked.get(name);
      if (expected !== undefined && expected !== entry.unit.checks[i]!.versionstamp) return true;
    }
    return false;
  }

  /** Whether the entry must not run at the same time as this batch, which is in flight. */
  racesWith(entry: Entry): boolean {
    const { writeNames, checkNames } = entry.size;
    for (const name of writeNames) if (this.#written.has(name) || this.#checked.has(name)) return true;
    for (const name of checkNames) if (this.#written.has(name)) return true;
    return false;
  }

  /**
   * Adds the entry; its values are serialised here, while the commit before is in flight. A value that cannot be
   * serialised throws and leaves the batch as it was.
   */
  add(entry: Entry): void {
    const { unit, size } = entry;
    try {
      for (let i = 0; i < unit.checks.length; i++) {
        const check = unit.checks[i]!, name = size.checkNames[i]!;
        // The same condition from several units is one check of the hundred a commit may have.
        if (this.#checked.has(name) && this.#checked.get(name) === check.versionstamp) continue;
        this.#atomic.check(check);
        this.#checked.set(name, check.versionstamp);
        this.#size.checks++;
      }
      writeAll(this.#atomic, unit.writes);
    } catch (error) {
      this.#rebuild();
      throw error;
    }
    for (const name of size.writeNames) this.#written.add(name);
    this.#size.mutations += size.mutations;
    this.#size.bytes += size.bytes;
    this.#size.keyBytes += size.keyBytes;
    addRoom(this.#room, entry.room);
    if (unit.carry) { for (const item of unit.carry) this.carried.push(item); }
    this.entries.push(entry);
  }

  /** Adds what `combine` made. Throws `CommitTooLargeError` if the commit cannot hold it. */
  addCombined(writes: readonly Write[]): void {
    const more = measure([], writes), have = this.#size;
    const total = {
      ...more,
      mutations: have.mutations + more.mutations,
      bytes: have.bytes + more.bytes,
      keyBytes: have.keyBytes + more.keyBytes,
    };
    const what = tooLarge(total);
    if (what) throw new CommitTooLargeError(what);
    writeAll(this.#atomic, writes);
  }

  /** Commits. `null`: a check failed and nothing was written. */
  async commit(): Promise<string | null> {
    const result = await this.#atomic.commit();
    return result.ok ? result.versionstamp : null;
  }

  /** A unit broke off half-way into the operation: starts it again without that unit. */
  #rebuild(): void {
    const entries = this.entries.splice(0);
    this.carried.length = 0;
    this.#written.clear();
    this.#checked.clear();
    Object.assign(this.#size, { mutations: 0, checks: 0, bytes: 0, keyBytes: 0 });
    Object.assign(this.#room, NO_ROOM);
    this.#atomic = this.#kv.atomic();
    for (const entry of entries) this.add(entry);
  }
}

/** Puts writes on an operation, in their order. */
export function writeAll(atomic: Deno.AtomicOperation, writes: readonly Write[]): void {
  for (const write of writes) {
    if (write.op === "set") {
      if (write.expireIn === undefined) atomic.set(write.key, write.value);
      else atomic.set(write.key, write.value, { expireIn: write.expireIn });
    } else if (write.op === "delete") atomic.delete(write.key);
    else atomic.enqueue(write.value, { delay: write.delay });
  }
}

/**
 * Signs of life ("Crash", DESIGN §5): each instance writes a row every second; jobs claimed by one whose row is over 5 s old
 * are due again at once, so that a kill -9 costs seconds, not the visibility. Clocks may jump: a sign of life from a time to come
 * counts for as long as it keeps changing, and claims are looked for wherever the instance's clock has been.
 */
import { type Heartbeat as Beat, type Job, keys, within } from "../keys.ts";
import { HEARTBEAT_DEAD_AFTER_MS, HEARTBEAT_EVERY_MS, VISIBILITY_MS } from "../limits.ts";
import type { Committer } from "./committer.ts";
import type { Jobs } from "./jobs.ts";
import type { Kv } from "./kv.ts";
import type { TimerId, Timers } from "./ports.ts";

export interface HeartbeatDeps {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  now(): number;
  timers: Timers;
  /** Rows became due. */
  freed(count: number): void;
  failed(what: string, error: unknown): void;
}

export class Heartbeat {
  #timer: TimerId | null = null;
  #stopped = false;
  #beating: Promise<void> = Promise.resolve();
  readonly #startedAt: number;
  /** The latest time the clock ever showed, Unix ms. */
  #latest = 0;
  /** Signs of life from a time to come, and since when they have not changed. */
  #ahead = new Map<string, { versionstamp: string; since: number }>();

  constructor(readonly d: HeartbeatDeps) {
    this.#startedAt = d.now();
  }

  /** Writes the first row, before anything is claimed in this instance's name. */
  async start(): Promise<void> {
    await this.#write();
    this.#arm();
  }

  /** Removes the row: what is still claimed is then free for others. A row that cannot be removed is dead in 5 s. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) this.d.timers.cancel(this.#timer);
    await this.#beating;
    const key = keys.heartbeat(this.d.jobs.instance);
    await this.d.committer.commit({ checks: [], writes: [{ op: "delete", key }] })
      .catch((error) => this.d.failed("heartbeat", error));
  }

  /** Frees the claims of instances that show no sign of life. */
  async recover(): Promise<void> {
    const beats: Deno.KvEntry<Beat>[] = [];
    for await (const row of this.d.kv.list<Beat>({ prefix: keys.heartbeats() })) beats.push(row);
    for (const beat of beats) {
      const instance = beat.key[1] as string;
      if (instance === this.d.jobs.instance || !this.#isDead(instance, beat)) continue;
      const freed = await this.#free(instance, beat.value);
      await this.d.committer.commit({
        checks: [{ key: beat.key, versionstamp: beat.versionstamp }],
        writes: [{ op: "delete", key: beat.key }],
      });
      this.d.freed(freed);
    }
  }

  #isDead(instance: string, { value, versionstamp }: Deno.KvEntry<Beat>): boolean {
    const now = this.d.now(), age = now - value.at;
    const seen = this.#ahead.get(instance);
    if (age >= -HEARTBEAT_DEAD_AFTER_MS) {
      this.#ahead.delete(instance);
      return age > HEARTBEAT_DEAD_AFTER_MS;
    }
    if (seen?.versionstamp === versionstamp && now >= seen.since) {
      return now - seen.since > HEARTBEAT_DEAD_AFTER_MS;
    }
    this.#ahead.set(instance, { versionstamp, since: now });
    return false;
  }

  async #free(instance: string, { at, latest }: Beat): Promise<number> {
    const now = this.d.now();
    const last = Math.max(now, latest ?? at, at + HEARTBEAT_DEAD_AFTER_MS) + VISIBILITY_MS + 1;
    let freed = 0;
    for (let shard = 0; shard < this.d.jobs.shards; shard++) {
      const [start, end] = [now, last].map((due) => within(keys.jobsOfShard(shard), due));
      const claimed: Deno.KvEntry<Job>[] = [];
      for await (const row of this.d.kv.list<Job>({ start: start!, end: end! })) {
        if (row.value.by === instance) claimed.push(row);
      }
      // Only now, not while a read is awaited: a commit that fails then would be a rejection nobody holds.
      const commits = claimed.map((row) => {
        const checks = [{ key: row.key, versionstamp: row.versionstamp }];
        const { writes } = this.d.jobs.write(row.value, now);
        return this.d.committer.commit({ checks, writes: [{ op: "delete", key: row.key }, ...writes] });
      });
      freed += claimed.length;
      await Promise.all(commits);
    }
    return freed;
  }

  #arm(): void {
    this.#timer = this.d.timers.after(HEARTBEAT_EVERY_MS, () => {
      this.#beating = this.#write().then(() => this.recover()).catch((error) =>
        this.d.failed("heartbeat", error)
      )
        .finally(() => this.#stopped || this.#arm());
    });
  }

  async #write(): Promise<void> {
    const at = this.d.now();
    this.#latest = Math.max(this.#latest, at);
    const wentBack = this.#latest > at + HEARTBEAT_EVERY_MS;
    const value: Beat = { at, started_at: this.#startedAt, ...(wentBack ? { latest: this.#latest } : {}) };
    const key = keys.heartbeat(this.d.jobs.instance);
    await this.d.committer.commit({ checks: [], writes: [{ op: "set", key, value }] });
  }
}

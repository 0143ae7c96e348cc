/**
 * Job rows: key, shard, claim, doorbell. Work is rows in KV; everything else only says when to look (DESIGN §5).
 * Invariants: J2 (a row leaves in the commit that records its result), J3 (a claim is a moved due time), P1 (pointers).
 */
import type { JobId } from "../ids.ts";
import { type FanoutJob, type Job, keys } from "../keys.ts";
import { MINUTE_MS, SECOND_MS, VISIBILITY_MS } from "../limits.ts";
import type { Kv, KvKey, Write } from "./kv.ts";

/** A job this instance may work on: the row that answers for it and the version that proves the claim is still ours. */
export interface Claim<J extends Job = Job> {
  key: KvKey;
  versionstamp: string;
  /** Until when nobody else may take it, Unix ms. */
  until: number;
  job: J;
  /** This is its first claim. */
  untouched?: true;
}

export interface JobRow {
  key: KvKey;
  due: number;
  job: Job;
}

export interface Jobs {
  readonly instance: string;
  readonly shards: number;
  /** A row due at `due`, and the doorbell that goes with it, if its bucket has not rung. Not claimed, and `untouched` as the job says. */
  write(job: Job, due: number): { row: JobRow; writes: Write[]; undo(): void };
  /** The same, already claimed by this instance (the hot hand-off), and untouched no more. */
  writeClaimed<J extends Job>(job: J): { row: JobRow; writes: Write[]; undo(): void };
}

export function makeJobs(
  deps: { now(): number; ulid(): string; instance: string; shards: number; doorbell: boolean },
): Jobs {
  const rung = new Set<number>();

  function shardOf(job: Job, jobId: string): number {
    const name = job.kind === "deliver" ? job.endpoint : jobId;
    let hash = 2166136261;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    return (hash >>> 0) % deps.shards;
  }

  function put(job: Job, due: number) {
    const jobId = deps.ulid() as JobId;
    const key = keys.job(shardOf(job, jobId), due, jobId);
    const writes: Write[] = [{ op: "set", key, value: job }];
    const bucket = ring(due, writes);
    return { row: { key, due, job }, writes, undo: () => void (bucket !== null && rung.delete(bucket)) };
  }

  /** One message a second-bucket within two minutes, a minute-bucket beyond: the queue crawls under many. */
  function ring(due: number, writes: Write[]): number | null {
    const now = deps.now();
    if (!deps.doorbell || due <= now) return null;
    const size = due - now <= 2 * MINUTE_MS ? SECOND_MS : MINUTE_MS;
    const bucket = Math.ceil(due / size) * size;
    if (rung.has(bucket)) return null;
    if (rung.size > 4_096) { for (const at of rung) if (at < now) rung.delete(at); }
    rung.add(bucket);
    // The queue takes delays of at most 30 days; every due time here is within hours.
    writes.push({ op: "enqueue", value: { v: 1, kind: "doorbell", due: bucket }, delay: bucket - now });
    return bucket;
  }

  return {
    instance: deps.instance,
    shards: deps.shards,
    write: ({ by: _, ...job }, due) => put(job as Job, due),
    writeClaimed: (job) => {
      const { untouched: _, ...rest } = job as FanoutJob; // a Deliver job has none
      return put({ ...rest, by: deps.instance } as Job, deps.now() + VISIBILITY_MS);
    },
  };
}

export const dueOf = (key: KvKey): number => key[2] as number;

/** Rows of a shard in due order, from its head. */
export async function headOfShard(kv: Kv, shard: number, limit: number): Promise<Deno.KvEntry<Job>[]> {
  const rows: Deno.KvEntry<Job>[] = [];
  const batchSize = Math.min(limit, 500);
  for await (const row of kv.list<Job>({ prefix: keys.jobsOfShard(shard) }, { limit, batchSize })) {
    rows.push(row);
  }
  return rows;
}

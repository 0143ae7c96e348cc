/**
 * Which first attempts of the hot path may be under way. Until it is recorded its Fanout row stands, under the claim it was written
 * with; the record checks that row, so with no such row there is no such record to come (J2, D1).
 */
import type { EventKey } from "../lib/ids.ts";
import { type Job, keys, within } from "../lib/keys.ts";
import { SECOND_MS } from "../lib/limits.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { getAll, type StoredEvent } from "./event_store.ts";

/** Job rows looked through before it is left at "may be". */
const MAX_JOBS = 2_000;

/** Those of the events whose first attempt may be under way: all of them when there are too many rows to tell. */
export async function underWay(
  d: { kv: Kv; now(): number; jobs: Pick<Jobs, "shards"> },
  events: readonly StoredEvent[],
): Promise<ReadonlySet<EventKey>> {
  const found = new Set<EventKey>();
  // A platform event says when its cause was, which may be long before its commit; what is pending of it says more.
  const platform = events.filter((event) => event.kind === "platform");
  const pending = await getAll(d.kv, platform.map((event) => keys.platformPending(event.key)));
  platform.forEach((event, i) => pending[i]!.value !== null && found.add(event.key));
  events = events.filter((event) => event.kind !== "platform");
  const asked = new Set(events.map((event) => event.key));
  if (asked.size === 0) return found;
  const since = Math.min(...events.map((event) => event.at));
  // A claim is due after the event it was written with, unless the clock went back under way.
  if (Math.max(...events.map((event) => event.at)) > d.now()) return found.union(asked);
  let left = MAX_JOBS;
  for (let shard = 0; shard < d.jobs.shards; shard++) {
    const start = within(keys.jobsOfShard(shard), since - SECOND_MS), end = keys.jobsOfShard(shard + 1);
    for await (const { value: job } of d.kv.list<Job>({ start, end }, { limit: left, batchSize: 500 })) {
      left--;
      if (job.kind === "fanout") { for (const key of job.events) if (asked.has(key)) found.add(key); }
    }
    if (left <= 0) return found.union(asked);
  }
  return found;
}

/** The doctor on the store: how fast it commits, its schema, the clock against what is written in it, what waits in it. */
import { dueOf, headOfShard } from "../../../lib/edge/jobs.ts";
import { realNow } from "../../../lib/edge/ports.ts";
import { ulidTime } from "../../../lib/ids.ts";
import { type DeadLetter, type Job, keys, schemaRow } from "../../../lib/keys.ts";
import { HEARTBEAT_DEAD_AFTER_MS, MINUTE_MS, SECOND_MS } from "../../../lib/limits.ts";
import { MIGRATIONS } from "../../../migrations/list.ts";
import { failed, type Finding, ok, warning } from "./finding.ts";

const PROBES = 20;
/** A commit is one flush of the disk; beyond this it holds everything up. */
const SLOW_COMMIT_MS = 50;
const CLOCK_SLACK_MS = 2 * SECOND_MS;
/** The sweep finds every due job within a minute. */
const STUCK_MS = 2 * MINUTE_MS;
const MAX_COUNTED = 10_000;

/** Commits a probe row some times, each waiting for the disk, and takes it away. */
export async function checkWrites(kv: Deno.Kv): Promise<Finding> {
  const key = keys.lease("doctor"), times: number[] = [];
  for (let i = 0; i < PROBES; i++) {
    const start = performance.now();
    await kv.atomic().set(key, { by: "doctor", until: 0 }).commit();
    times.push(performance.now() - start);
  }
  await kv.delete(key);
  times.sort((a, b) => a - b);
  const median = times[PROBES / 2]!, slowest = times.at(-1)!;
  const found = `a commit takes ${median.toFixed(2)} ms (median of ${PROBES}), ${
    slowest.toFixed(2)
  } ms at most`;
  return median <= SLOW_COMMIT_MS ? ok("writes", found) : warning(
    "writes",
    found,
    "Put the store on a local disk that confirms a flush sooner, and see what else writes to it.",
  );
}

export async function checkSchema(kv: Deno.Kv): Promise<Finding> {
  const version = schemaRow.safeParse((await kv.get(keys.schema())).value).data?.version ?? 0;
  const found = `the store has version ${version}, this code knows ${MIGRATIONS.length}`;
  if (version === MIGRATIONS.length) return ok("schema", found);
  return version < MIGRATIONS.length
    ? warning(
      "schema",
      found,
      "The next start of the service brings it up; back it up first: pmail backup FILE.",
    )
    : failed(
      "schema",
      found,
      "Use the newer release, or restore the copy made before it: pmail restore FILE.",
    );
}

/** Instances that show a sign of life. */
export async function livingInstances(kv: Deno.Kv): Promise<number> {
  let living = 0;
  for await (const { value } of kv.list<{ at: number }>({ prefix: keys.heartbeats() })) {
    if (realNow() - value.at <= HEARTBEAT_DEAD_AFTER_MS) living++;
  }
  return living;
}

/** Nothing in the store may be of the future: ids, due times and signatures follow the clock. */
export async function checkClock(kv: Deno.Kv): Promise<Finding> {
  let ahead = -Infinity, what = "";
  const note = (at: number, of: string) => {
    if (at - realNow() > ahead) [ahead, what] = [at - realNow(), of];
  };
  for await (const { value } of kv.list<{ at: number }>({ prefix: keys.heartbeats() })) {
    note(value.at, "an instance's sign of life");
  }
  for await (const { key } of kv.list({ prefix: keys.events() }, { limit: 1, reverse: true })) {
    note(ulidTime(key[1] as string), "the newest event");
  }
  if (ahead > CLOCK_SLACK_MS) {
    return failed(
      "clock",
      `${what} is ${Math.round(ahead / SECOND_MS)} s ahead of this machine's clock`,
      "Set the clock by NTP on every machine of the service. Receivers refuse signatures over 5 minutes off.",
    );
  }
  return ok("clock", `${new Date(realNow()).toISOString()}, nothing in the store is ahead of it`);
}

export async function checkDeadLetters(kv: Deno.Kv): Promise<Finding> {
  let count = 0, error = "";
  for await (const { value } of kv.list<DeadLetter>({ prefix: keys.deadLetters() }, { limit: MAX_COUNTED })) {
    count++;
    error = value.error;
  }
  if (count === 0) return ok("dead letters", "none");
  return failed(
    "dead letters",
    `${count}, the newest for ${error}`,
    "Mend what failed on our side (the log says: delivery_fault), then: pmail dlq list, pmail dlq redrive ID.",
  );
}

/** Jobs long due, and jobs in shards that no service with this configuration looks at. */
export async function checkJobs(kv: Deno.Kv, shards: number): Promise<Finding[]> {
  const findings: Finding[] = [], living = await livingInstances(kv);
  let oldest = Infinity;
  for (let shard = 0; shard < shards; shard++) {
    for (const { key } of await headOfShard(kv, shard, 1)) oldest = Math.min(oldest, dueOf(key));
  }
  const late = realNow() - oldest, age = `the oldest due job has waited ${Math.round(late / SECOND_MS)} s`;
  if (late <= STUCK_MS) findings.push(ok("jobs", "none is overdue"));
  else if (living === 0) {
    findings.push(warning("jobs", `${age}; no service runs`, "Start one: deno task start."));
  } else findings.push(failed("jobs", age, "See the service's log for faults of its own, then restart it."));

  const start = keys.jobsOfShard(shards);
  for await (const { key } of kv.list<Job>({ prefix: keys.jobs(), start }, { limit: 1, reverse: true })) {
    findings.push(failed(
      "job shards",
      `jobs lie in shard ${String(key[1])}, PM_JOB_SHARDS is ${shards}`,
      `Set PM_JOB_SHARDS to ${Number(key[1]) + 1} or more for every service: it may only ever be raised.`,
    ));
  }
  return findings;
}

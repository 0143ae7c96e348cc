/** Job rows: where they go, how they are claimed, and which doorbell rings for them (DESIGN "Jobs", J3, P1). */
import fc from "fast-check";
import assert from "node:assert/strict";
import { dueOf, headOfShard, makeJobs } from "../../lib/edge/jobs.ts";
import type { Write } from "../../lib/edge/kv.ts";
import type { EndpointId, EventId, EventKey } from "../../lib/ids.ts";
import { type DeliverJob, type FanoutJob, keys } from "../../lib/keys.ts";
import { MINUTE_MS, SECOND_MS, VISIBILITY_MS } from "../../lib/limits.ts";
import { runs } from "./runs.ts";

const NOW = 1_800_000_000_123;
const fanout: FanoutJob = { v: 1, kind: "fanout", events: ["E" as EventKey] };
const deliver = (endpoint: string): DeliverJob => ({
  v: 1,
  kind: "deliver",
  endpoint: endpoint as EndpointId,
  items: [{
    event: "E" as EventKey,
    id: "evt_E" as EventId,
    type: "a.b",
    attempt: 1,
    first: 1,
    replay: false,
  }],
});

function jobsOf(options: Partial<Parameters<typeof makeJobs>[0]> = {}) {
  const clock = { now: NOW };
  let n = 0;
  const ulid = () => `ULID-${n++}`;
  const jobs = makeJobs({
    now: () => clock.now,
    ulid,
    instance: "me",
    shards: 8,
    doorbell: true,
    ...options,
  });
  return { jobs, clock };
}
const bellsIn = (writes: Write[]) => writes.flatMap((write) => write.op === "enqueue" ? [write] : []);
const rowsIn = (writes: Write[]) => writes.flatMap((write) => write.op === "set" ? [write] : []);

Deno.test("J3: a claim is the row written under a time to come, by name; a row let go bears nobody's name", () => {
  const { jobs } = jobsOf({ doorbell: false });
  const claimed = jobs.writeClaimed(fanout);
  assert.equal(claimed.row.due, NOW + VISIBILITY_MS);
  assert.deepEqual(claimed.row.job, { ...fanout, by: "me" });
  assert.deepEqual(claimed.writes, [{ op: "set", key: claimed.row.key, value: claimed.row.job }]);
  assert.equal(dueOf(claimed.row.key), claimed.row.due);
  const untouched: FanoutJob = { ...fanout, untouched: true };
  assert.deepEqual(jobs.write(untouched, NOW).row.job, untouched, "as the job says");
  assert.deepEqual(jobs.writeClaimed(untouched).row.job, { ...fanout, by: "me" }, "had by somebody now");
  const free = jobs.write({ ...claimed.row.job, throws: 2 }, NOW + 5);
  assert.deepEqual(free.row.job, { ...fanout, throws: 2 });
  assert.equal(dueOf(free.row.key), NOW + 5);
  assert.deepEqual([jobs.instance, jobs.shards], ["me", 8]);
});

Deno.test("jobs: all of an endpoint share a shard whatever their ids, Fanout jobs spread, and every shard is used", () => {
  const { jobs } = jobsOf();
  const shardOf = (key: Deno.KvKey) => key[1] as number;
  const counts = Array(8).fill(0);
  for (let i = 0; i < 800; i++) {
    const endpoint = `whk_${i}`;
    const shards = [1, 2, 3].map((due) => shardOf(jobs.write(deliver(endpoint), NOW + due).row.key));
    assert.equal(new Set(shards).size, 1);
    counts[shards[0]!]++;
  }
  // FNV-1a: 100 each, none far from it.
  assert.ok(counts.every((count) => count > 60 && count < 140), counts.join());
  const spread = Array.from({ length: 200 }, () => shardOf(jobs.write(fanout, NOW).row.key));
  assert.equal(new Set(spread).size, 8);
  const fnv = (text: string) => {
    const step = (hash: bigint, char: string) =>
      ((hash ^ BigInt(char.charCodeAt(0))) * 16_777_619n) % (1n << 32n);
    return Number([...text].reduce(step, 2_166_136_261n) % 8n);
  };
  for (const at of ["whk_1", "whk_2", "whk_\u00e9", "whk_01K7"]) {
    assert.equal(shardOf(jobs.write(deliver(at), NOW).row.key), fnv(at), at);
  }
});

Deno.test("doorbell: one a second-bucket within two minutes, a minute-bucket beyond, none for now, never before it is due", () => {
  const due = fc.oneof(fc.integer({ min: -10, max: 130_000 }), fc.integer({ min: 0, max: 86_400_000 }));
  fc.assert(
    fc.property(fc.array(due, { maxLength: 30 }), (delays) => {
      const { jobs } = jobsOf();
      const rung = new Set<number>();
      for (const delay of delays) {
        const { writes, row } = jobs.write(deliver("whk_1"), NOW + delay);
        const bells = bellsIn(writes);
        assert.deepEqual(rowsIn(writes), [{ op: "set", key: row.key, value: row.job }]);
        const size = delay <= 2 * MINUTE_MS ? SECOND_MS : MINUTE_MS;
        const bucket = Math.floor((NOW + delay + size - 1) / size) * size;
        if (delay <= 0 || rung.has(bucket)) {
          assert.equal(bells.length, 0);
          continue;
        }
        rung.add(bucket);
        assert.deepEqual(bells, [{
          op: "enqueue",
          value: { v: 1, kind: "doorbell", due: bucket },
          delay: bucket - NOW,
        }]);
        assert.ok(bucket >= row.due && bucket - row.due < size);
      }
    }),
    runs(300),
  );
});

Deno.test("doorbell: exactly two minutes is still a second-bucket, and no platform without queues is rung", () => {
  const { jobs } = jobsOf();
  assert.equal(bellsIn(jobs.write(fanout, NOW + 2 * MINUTE_MS).writes)[0]!.delay, 2 * MINUTE_MS + 877);
  assert.equal(bellsIn(jobs.write(fanout, NOW + 2 * MINUTE_MS + 1_000).writes)[0]!.delay % 1_000, 877);
  assert.equal(bellsIn(jobsOf({ doorbell: false }).jobs.write(fanout, NOW + 5_000).writes).length, 0);
});

Deno.test("doorbell: what was not written after all rings again, and only what it rang itself is taken back", () => {
  const { jobs } = jobsOf();
  const first = jobs.write(fanout, NOW + 5_000);
  const second = jobs.write(fanout, NOW + 5_000);
  assert.deepEqual([bellsIn(first.writes).length, bellsIn(second.writes).length], [1, 0]);
  second.undo();
  assert.equal(bellsIn(jobs.write(fanout, NOW + 5_000).writes).length, 0);
  first.undo();
  assert.equal(bellsIn(jobs.write(fanout, NOW + 5_000).writes).length, 1);
  jobs.write(fanout, NOW).undo();
});

Deno.test("doorbell: buckets that have passed are forgotten, those to come are not", () => {
  const { jobs, clock } = jobsOf();
  for (let i = 1; i <= 4_097; i++) jobs.write(fanout, NOW + i * MINUTE_MS);
  assert.equal(bellsIn(jobs.write(fanout, NOW + MINUTE_MS).writes).length, 0);
  clock.now = NOW + 4_000 * MINUTE_MS;
  jobs.write(fanout, clock.now + 200 * MINUTE_MS); // a new bucket beside 4,097: the old ones go
  assert.equal(bellsIn(jobs.write(fanout, NOW + 4_050 * MINUTE_MS).writes).length, 0, "still to come");
  clock.now = NOW;
  assert.equal(bellsIn(jobs.write(fanout, NOW + MINUTE_MS).writes).length, 1, "forgotten");
});

Deno.test("jobs: the head of a shard is its earliest rows in due order, of that shard alone, as many as asked for", async () => {
  const kv = await Deno.openKv(":memory:");
  try {
    const id = (n: number) => `J${n}` as Parameters<typeof keys.job>[2];
    for (const [n, due] of [30, 10, 20].entries()) {
      await kv.set(keys.job(1, due, id(n)), fanout);
      await kv.set(keys.job(2, due - 5, id(n)), fanout);
    }
    const dues = async (limit: number) => (await headOfShard(kv, 1, limit)).map((row) => dueOf(row.key));
    assert.deepEqual(await dues(10), [10, 20, 30]);
    assert.deepEqual(await dues(2), [10, 20]);
    assert.deepEqual((await headOfShard(kv, 1, 1))[0]!.value, fanout);
  } finally {
    kv.close();
  }
});

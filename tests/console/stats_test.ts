/** Hourly figures: counted once, summed over instances, written seldom; quantiles within their promise. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ALL_ENDPOINTS, readHours, Stats, STATS_FLUSH_MS, sumHours, totalOf } from "../../actors/stats.ts";
import type { Settlement } from "../../actors/work.ts";
import { bucketOf, countDuration, quantile } from "../../lib/histogram.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { makeCommitter } from "../../lib/edge/committer.ts";
import { ManualTime } from "../support/manual_time.ts";

const ENDPOINT = "whk_00000000000000000000000001", PARTNER = "ptn_00000000000000000000000001";

function settled(
  kind: "succeeded" | "failed" | "dead",
  at: number,
  durationMs = 100,
  replay = false,
): Settlement {
  const target = { row: { id: ENDPOINT }, partner: PARTNER };
  const work = { target, item: { replay }, event: { at: at - 50 } };
  return { kind, work, at, durationMs, httpStatus: 200, error: "timeout" } as unknown as Settlement;
}

async function withStats(
  body: (
    kv: Deno.Kv,
    time: ManualTime,
    make: (name: string) => Stats,
    commits: () => number,
  ) => Promise<void>,
) {
  const kv = await Deno.openKv(":memory:"), time = new ManualTime();
  let commits = 0;
  const committer = makeCommitter(kv, { maxInFlight: 1 });
  const counted = {
    ...committer,
    commit: (unit: Parameters<typeof committer.commit>[0]) => (commits++, committer.commit(unit)),
  };
  const timers = time.group().timers;
  try {
    await body(
      kv,
      time,
      (instance) => new Stats({ committer: counted, timers, now: () => time.now, instance }),
      () => commits,
    );
    await committer.idle();
  } finally {
    kv.close();
  }
}

Deno.test("stats: attempts and deaths are counted for the endpoint, its partner and all", () =>
  withStats(async (kv, time, make) => {
    const stats = make("a");
    for (let i = 0; i < 5; i++) stats.recorded(settled("succeeded", time.now), false);
    stats.recorded(settled("succeeded", time.now, 100, true), false);
    stats.recorded(settled("failed", time.now, 15_000), false);
    stats.recorded(settled("failed", time.now, 15_000), true);
    stats.recorded(settled("dead", time.now), true);
    stats.recorded({ kind: "nothing" } as unknown as Settlement, false);
    await stats.flush();
    for (const subject of [ENDPOINT, PARTNER, ALL_ENDPOINTS]) {
      const { succeeded, failed, dead, took, latency } = totalOf(await readHours(kv, subject, time.now));
      assert.deepEqual([succeeded, failed, dead], [6, 2, 2], subject);
      assert.equal(took.reduce((a, b) => a + b), 8, "attempts that were made");
      assert.equal(latency.reduce((a, b) => a + b), 5, "replays are left out");
    }
  }));

Deno.test("stats: however many attempts, one commit every five seconds; two instances add up; hours stay apart", () =>
  withStats(async (kv, time, make, commits) => {
    const a = make("a"), b = make("b");
    for (let i = 0; i < 1_000; i++) a.recorded(settled("succeeded", time.now), false);
    b.recorded(settled("failed", time.now), false);
    assert.equal(commits(), 0);
    time.step(time.now + STATS_FLUSH_MS);
    await Promise.all([a.flush(), b.flush()]);
    assert.ok(commits() <= 2, String(commits()));
    time.now += HOUR_MS;
    a.recorded(settled("succeeded", time.now), false);
    await a.stop();
    await a.flush();
    const hours = await readHours(kv, ENDPOINT, time.now);
    assert.equal(hours.length, 24);
    assert.deepEqual(hours.slice(-2).map(({ succeeded, failed }) => [succeeded, failed]), [[1_000, 1], [
      1,
      0,
    ]]);
    assert.equal(totalOf(sumHours([hours, hours], time.now)).succeeded, 2_002);
    assert.equal(totalOf(await readHours(kv, ENDPOINT, time.now + 25 * HOUR_MS)).succeeded, 0);
  }));

Deno.test("stats: a write that fails is made up for by the next", () =>
  withStats(async (kv, time) => {
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    let broken = true;
    const flaky = {
      ...committer,
      commit: (unit: Parameters<typeof committer.commit>[0]) =>
        broken ? Promise.reject(new Error("store")) : committer.commit(unit),
    };
    const stats = new Stats({
      committer: flaky,
      timers: time.group().timers,
      now: () => time.now,
      instance: "a",
    });
    stats.recorded(settled("succeeded", time.now), false);
    await stats.flush();
    broken = false;
    await stats.stop();
    assert.equal(totalOf(await readHours(kv, ENDPOINT, time.now)).succeeded, 1);
    await committer.idle();
  }));

Deno.test("histogram: a quantile is within a quarter of the true one, and buckets are in order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 3_000_000 }), { minLength: 1, maxLength: 300 }),
      fc.constantFrom(0.01, 0.5, 0.95, 1),
      (durations, q) => {
        const histogram: number[] = [];
        for (const ms of durations) countDuration(histogram, ms);
        const sorted = durations.toSorted((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(q * sorted.length)) - 1]!, found = quantile(histogram, q)!;
        assert.ok(found >= exact / 1.26 - 1 && found <= exact * 1.26 + 1, `${found} for ${exact}`);
      },
    ),
  );
  assert.equal(quantile([], 0.5), null);
  assert.equal(bucketOf(0), 0);
  for (let ms = 1; ms < 100_000; ms = Math.ceil(ms * 1.1)) assert.ok(bucketOf(ms + 1) >= bucketOf(ms));
  assert.ok(bucketOf(Number.MAX_SAFE_INTEGER) <= 97);
});

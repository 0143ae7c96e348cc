/** D4: while the store is full or held, nothing is charged to anybody, nothing is sent twice, and callers learn to come again. */
import assert from "node:assert/strict";
import { makeCommitter } from "../../lib/edge/committer.ts";
import { nothingWritten, storeFault } from "../../lib/edge/store_fault.ts";
import { takeLease } from "../../lib/edge/lease.ts";
import { DAY_MS, VISIBILITY_MS } from "../../lib/limits.ts";
import { errorAnswer } from "../../routes/errors.ts";
import { attempts, jobs } from "../support/rows.ts";
import { watch } from "../support/watched_kv.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const FULL = () => new TypeError("database or disk is full");

const FAULTS: [message: string, fault: string | null, certain: boolean][] = [
  ["database or disk is full", "full", true],
  ["database is locked", "locked", true],
  ["disk I/O error", "broken", false],
  ["attempt to write a readonly database", "broken", false],
  ["Value too large (max 65536 bytes)", null, false],
];

for (const [message, fault, certain] of FAULTS) {
  Deno.test(`store_fault: "${message}" is ${fault ?? "no fault of the store"}`, () => {
    const error = new TypeError(message);
    assert.equal(storeFault(error), fault);
    assert.equal(nothingWritten(error), certain);
    const { status, code, body } = errorAnswer(error, "req_1");
    assert.deepEqual([status, code], fault === null ? [500, "internal_error"] : [503, "unavailable"]);
    assert.equal(JSON.parse(body).error.retryable, true);
    assert.ok(!body.includes(message), "nothing of the inside");
  });
}

/** Three deliveries are answered while no commit of theirs gets through; what comes next decides `until`. */
async function answeredWhileFull(w: World) {
  w.expected.add("record").add("heartbeat").add("sweep").add("claim");
  const tenant = await w.tenant();
  const endpoint = await w.endpoint(tenant, URL);
  const gate = Promise.withResolvers<number>();
  w.net.at(URL, (_, nth) => nth <= 3 ? gate.promise : 200);
  await w.append(tenant, 3);
  await w.settle();
  w.first.kv.beforeCommit = () => {
    throw FULL();
  };
  gate.resolve(200);
  await w.settle();
  return endpoint;
}

Deno.test("D4: results wait for the store and are recorded once it takes them, without another request", () =>
  world(async (w) => {
    const endpoint = await answeredWhileFull(w);
    await w.advance(40_000);
    assert.deepEqual(await attempts(w, endpoint.id), []);
    w.first.kv.beforeCommit = null;
    await w.advance(1_500);
    assert.deepEqual((await attempts(w, endpoint.id)).map((row) => [row.status, row.attempt]), [
      ["succeeded", 1],
      ["succeeded", 1],
      ["succeeded", 1],
    ]);
    assert.deepEqual(await jobs(w), []);
    await w.advance(VISIBILITY_MS);
    assert.equal(w.net.received.length, 3);
  }));

Deno.test("J3: results are kept no longer than their claim, and whoever takes it next sends again", () =>
  world(async (w) => {
    const endpoint = await answeredWhileFull(w);
    await w.advance(VISIBILITY_MS + 5_000);
    assert.equal(w.net.received.length, 3, "a store that takes no claim lets nothing be sent");
    w.first.kv.beforeCommit = null;
    await w.advance(2_000);
    assert.equal(w.net.received.length, 6);
    assert.equal((await attempts(w, endpoint.id)).length, 3);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("D4: a stop does not wait for a store that takes nothing", () =>
  world(async (w) => {
    w.expected.add("give_back");
    await answeredWhileFull(w);
    let stopped = false;
    void w.first.system.stop(5_000).then(() => stopped = true);
    await w.advance(5_000);
    assert.ok(stopped);
    w.first.kv.beforeCommit = null;
    await w.isolate();
    await w.advance(VISIBILITY_MS + 10_000);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("committer: a commit that the store refuses for want of space is not asked for again in halves", async () => {
  using store = await Deno.openKv(":memory:");
  const kv = watch(store);
  kv.beforeCommit = () => {
    throw FULL();
  };
  const committer = makeCommitter(kv, { maxInFlight: 1 });
  const units = Array.from({ length: 16 }, (_, i) =>
    committer.commit({
      checks: [],
      writes: [{ op: "set", key: ["k", i], value: i }],
    }));
  for (const { status } of await Promise.allSettled(units)) assert.equal(status, "rejected");
  assert.equal(kv.commits, 1);
});

Deno.test("clock: a lease whose holder died before the clock went back keeps nobody out for a day", async () => {
  using kv = await Deno.openKv(":memory:");
  let now = 2 * DAY_MS;
  const take = (instance: string) => takeLease("migrations", 10_000, { kv, now: () => now, instance });
  assert.ok(await take("dead"));
  assert.equal(await take("other"), null);
  now -= 5_000;
  assert.equal(await take("other"), null, "a clock a little behind takes nothing away");
  now -= DAY_MS;
  assert.ok(await take("other"));
});

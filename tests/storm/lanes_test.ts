/** When the rows of a full lane come back: at the lane's pace, thinly beyond a minute, and soon again once it is quick; and who is given memory. */
import assert from "node:assert/strict";
import { Lanes } from "../../actors/lanes.ts";
import type { EndpointId } from "../../lib/ids.ts";
import { DAY_MS, DEADLINE_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";

const DEAD = "whk_dead" as EndpointId;
const LIMITS = { maxInFlight: 512, maxPerEndpoint: 32, maxWaitingPerEndpoint: 512, maxWaitingProven: 2_048 };

/** Lanes whose clock the test moves, and attempts that end when it says so. */
function lanesOf() {
  let now = Date.UTC(2026, 9, 1);
  const ends: ((took: number | null) => void)[] = [];
  const run = () => new Promise<number | null>((resolve) => ends.push(resolve));
  const lanes = new Lanes<number>(LIMITS, () => now, run, () => {}, () => 0);
  return {
    lanes,
    get now() {
      return now;
    },
    pass: (ms: number) => void (now += ms),
    /** The lane learns how long attempts take. */
    async learn(ms: number, took: (ms: number) => number | null = (ms) => ms, times = 60) {
      for (let i = 0; i < times; i++) {
        lanes.push(DEAD, i);
        now += ms;
        ends.pop()!(took(ms));
        await undefined;
        await new Promise((resolve) => resolve(null));
      }
    },
  };
}

Deno.test("pace: rows of a full lane come back as it is likely to have room, none sooner than half a second", async () => {
  const b = lanesOf();
  await b.learn(64);
  const dues = Array.from({ length: 1_000 }, () => b.lanes.later(DEAD, 1) - b.now);
  assert.ok(dues[0]! >= 500 && dues[0]! <= 505, `${dues[0]}`);
  assert.ok(Math.abs(dues.at(-1)! - (500 + 1_000 * 2)) < 100, `${dues.at(-1)}: 32 at a time, 64 ms each`);
  assert.deepEqual(dues, [...dues].sort((x, y) => x - y));
});

Deno.test("pace: what an attempt waited for us is not the endpoint's doing, and one that asked nobody teaches nothing", async () => {
  const b = lanesOf();
  await b.learn(64);
  const quick = b.lanes.later(DEAD, 100) - b.now;
  await b.learn(5_000, () => 64);
  await b.learn(5_000, () => null);
  b.pass(MINUTE_MS);
  assert.equal(b.lanes.later(DEAD, 100) - b.now, quick);
});

Deno.test("pace: a backlog of a lane that stands still costs the store at most 500 moves a second, however large it is", async () => {
  const rows = 60_000, minutes = 10;
  const b = lanesOf();
  await b.learn(DEADLINE_MS);
  const began = b.now;
  let due = Array.from({ length: rows }, () => b.lanes.later(DEAD, 1)), moves = 0, most = 0;
  for (let second = 0; second < minutes * 60; second++) {
    b.pass(SECOND_MS);
    const late = due.filter((at) => at <= b.now).length;
    due = due.map((at) => at <= b.now ? b.lanes.later(DEAD, 1) : at);
    moves += late;
    most = Math.max(most, late);
  }
  console.log({ rows, minutes, moves, moves_a_second: most });
  assert.ok(most <= 520, `${most} moves in a second`);
  assert.ok(moves < (b.now - began) / SECOND_MS * 510, "once a minute each would be ten moves a row");
  const last = Math.max(...due) - b.now;
  assert.ok(last <= MINUTE_MS + rows * 2 + SECOND_MS, `${last} ms ahead`);
});

Deno.test("pace: a lane that has become quick again sends nothing behind its old backlog", async () => {
  const b = lanesOf();
  await b.learn(DEADLINE_MS);
  for (let i = 0; i < 60_000; i++) b.lanes.later(DEAD, 1);
  await b.learn(5);
  b.pass(MINUTE_MS);
  assert.ok(b.lanes.later(DEAD, 1) - b.now < SECOND_MS);
});

Deno.test("pace: a clock that goes back a day sends no row a day away", async () => {
  const b = lanesOf();
  await b.learn(DEADLINE_MS);
  for (let i = 0; i < 1_000; i++) b.lanes.later(DEAD, 1);
  b.pass(-DAY_MS);
  assert.ok(b.lanes.later(DEAD, 1) - b.now <= MINUTE_MS);
});

Deno.test("memory: a quick endpoint keeps its place through a pause of ours, and loses it when it is slow or says nothing", async () => {
  const b = lanesOf(),
    unproven = b.lanes.capacity(DEAD),
    full = LIMITS.maxPerEndpoint + LIMITS.maxWaitingProven;
  assert.ok(unproven < full);
  const slow = SECOND_MS * LIMITS.maxPerEndpoint / LIMITS.maxWaitingProven;
  await b.learn(slow + 1, (ms) => ms, 200);
  assert.equal(b.lanes.capacity(DEAD), unproven, "over a second for a full memory");
  await b.learn(slow / 2, (ms) => ms, 200);
  assert.equal(b.lanes.capacity(DEAD), full, "half a second");
  await b.learn(slow * 2.5, (ms) => ms, 200);
  assert.equal(b.lanes.capacity(DEAD), full, "two and a half");
  await b.learn(slow * 3.5, (ms) => ms, 200);
  assert.equal(b.lanes.capacity(DEAD), unproven, "three and a half");
  await b.learn(slow * 2.5, (ms) => ms, 200);
  assert.equal(b.lanes.capacity(DEAD), unproven, "what is lost is earned again by a second");
  await b.learn(slow / 2, (ms) => ms, 200);
  b.pass(SECOND_MS - 1);
  assert.equal(b.lanes.capacity(DEAD), full);
  b.pass(1);
  assert.equal(b.lanes.capacity(DEAD), unproven, "a second without an answer");
});

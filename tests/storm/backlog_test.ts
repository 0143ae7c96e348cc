/**
 * More due at once than the system can take: after an outage, behind a dead endpoint, from thousands of endpoints together.
 * `STORM=full` runs them at their full sizes.
 */
import assert from "node:assert/strict";
import { eventually } from "../e2e/support/process.ts";
import { type Backlog, MAX_IN_FLIGHT, MAX_PER_ENDPOINT, openBacklog } from "./backlog.ts";

const FULL = Deno.env.get("STORM") === "full";
const DRAIN_MS = FULL ? 240_000 : 60_000;
const MEBIBYTE = 1024 * 1024;
/** Works in memory for each one in flight, and what the jobs taken last may go past it. */
const MAX_IN_MEMORY = 4 * MAX_IN_FLIGHT + 64;

const resident = () => Deno.memoryUsage().rss;

/** Waits until `count` attempts are recorded and no job row is left; answers the most works in memory and the memory's growth. */
async function drain(b: Backlog, count: number): Promise<{ works: number; grown: number; ms: number }> {
  const before = resident(), at = performance.now();
  const { flow } = await b.start();
  let works = 0, most = before;
  await eventually(`${count} attempts are recorded`, () => {
    works = Math.max(works, flow.lanes.size);
    most = Math.max(most, resident());
    return b.recorded() >= count;
  }, DRAIN_MS);
  await eventually("J2: no job row is left", async () => (await b.dues()).length === 0, DRAIN_MS);
  return { works, grown: Math.round((most - before) / MEBIBYTE), ms: Math.round(performance.now() - at) };
}

const START = FULL ? 100_000 : 5_000;

Deno.test(`start: ${START} due jobs are worked off within the concurrency and bounded memory, each sent once`, async () => {
  const endpoints = 100;
  await using b = await openBacklog(endpoints, () => ({ ms: 10, status: 204 }));
  for (const endpoint of b.endpoints) await b.seed(endpoint, START / endpoints);
  const { works, grown, ms } = await drain(b, START);
  console.log({ jobs: START, max_in_flight: b.maxOpen, max_in_memory: works, grown_mib: grown, ms });
  assert.ok(b.maxOpen <= MAX_IN_FLIGHT, `${b.maxOpen} in flight`);
  assert.ok(works <= MAX_IN_MEMORY, `${works} works in memory`);
  assert.ok(grown < 300, `${grown} MiB more`);
  assert.equal(b.recorded(), START);
  assert.deepEqual([...b.sent.values()], b.endpoints.map(() => START / endpoints), "each is sent once");
  assert.deepEqual(b.failures, []);
});

const DEAD = FULL ? 50_000 : 5_000;

Deno.test(`fair: behind ${DEAD} due rows of a dead endpoint in its own shard, a healthy row is delivered within 2 s`, async () => {
  await using b = await openBacklog(2, (endpoint) => ({
    ms: endpoint === b.endpoints[0] ? 15_000 : 0,
    status: 204,
  }), { shards: 1 });
  const [dead, healthy] = b.endpoints;
  await b.seed(dead!, DEAD);
  await b.seed(healthy!, 1);
  await b.start();
  const at = performance.now();
  await eventually("the healthy row is sent", () => b.sent.get(healthy!) === 1);
  const ms = performance.now() - at;
  console.log({ rows_ahead: DEAD, healthy_after_ms: Math.round(ms), job_writes: b.jobWrites });
  assert.ok(ms < 2_000 * DEAD / 5_000, `${ms} ms`);
  assert.ok(b.maxOpen <= MAX_PER_ENDPOINT + 1, `${b.maxOpen} in flight`);
  assert.deepEqual(b.failures, []);
});

Deno.test("pace: the rows of a receiver slower than the store are moved once at the most, and fewer each time", async () => {
  const rows = 2_000;
  await using b = await openBacklog(1, () => ({ ms: 40, status: 204 }));
  await b.seed(b.endpoints[0]!, rows);
  await drain(b, rows);
  // Claimed (delete, set) and done (delete): three writes a row. Moved by itself it would be two more.
  const writes = b.jobWrites / rows;
  console.log({ rows, job_writes_a_row: Number(writes.toFixed(2)) });
  assert.ok(writes <= 3, `${writes} writes a row`);
});

const ENDPOINTS = FULL ? 10_000 : 1_000;

Deno.test(`storm: ${ENDPOINTS} endpoints that die together and come back are retried spread out, within the concurrency`, async () => {
  let status = 503;
  await using b = await openBacklog(ENDPOINTS, () => ({ ms: 10, status }), { retryScale: FULL ? 1 : 0.05 });
  for (const endpoint of b.endpoints) await b.seed(endpoint, 1);
  const began = Date.now();
  await b.start();
  await eventually("each was refused", () => b.recorded() >= ENDPOINTS, DRAIN_MS);
  const dues = await b.dues(), failing = Date.now() - began;
  status = 204;
  const spread = Math.max(...dues) - Math.min(...dues);
  const bySlot = Map.groupBy(dues, (due) => Math.floor(due / (spread / 20)));
  const fullest = Math.max(...[...bySlot.values()].map((slot) => slot.length)) / dues.length;
  await eventually("each is delivered", () => b.recorded() >= 2 * ENDPOINTS, DRAIN_MS);
  await eventually("J2: no job row is left", async () => (await b.dues()).length === 0, DRAIN_MS);
  console.log({
    endpoints: ENDPOINTS,
    max_in_flight: b.maxOpen,
    failing_ms: failing,
    spread_ms: spread,
    fullest,
  });
  assert.ok(b.maxOpen <= MAX_IN_FLIGHT, `${b.maxOpen} in flight`);
  assert.ok(spread >= failing / 2, "retries are spread at least as the failures were");
  assert.ok(fullest < 0.35, `${fullest} of all retries within a twentieth of their time`);
  assert.deepEqual([...b.sent.values()], b.endpoints.map(() => 2));
  assert.deepEqual(b.failures, []);
});

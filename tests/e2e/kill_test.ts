/**
 * What was acknowledged is delivered, whatever happens to the process: kill -9 at random moments under load, a graceful stop
 * under load, and two processes on one store of which one is killed.
 */
import assert from "node:assert/strict";
import { makeApi } from "./support/api.ts";
import { eventually, makePlace, platformKey, startService } from "./support/process.ts";
import { checkAll, makeTenants, startPublishers, undelivered } from "./support/publishers.ts";
import { startReceiver } from "./support/receiver.ts";
import { checkAttempts, jobRows } from "./support/store.ts";

const KILLS = 5;
const DRAIN_MS = 30_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A receiver that refuses one request in twenty, so that retries lie in the store when the process dies. */
function flakyReceiver() {
  let count = 0;
  return startReceiver(() => ++count % 20 === 0 ? 503 : 204);
}

Deno.test(`kill: nothing acknowledged is lost over ${KILLS} kill -9 under 32 publishers`, async () => {
  await using receiver = flakyReceiver();
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target, PM_RETRY_SCALE: "0.002" });
  const call = makeApi(place.env.PM_PORT!, await platformKey(place.env));
  let service = await startService(place.env);
  await using _last = { [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
  const publishers = await startPublishers(call, await makeTenants(call, receiver), [place.env.PM_PORT!]);
  const starts: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    await pause(300 + Math.random() * 1_000);
    const before = publishers.acknowledged.length;
    await service.end("SIGKILL");
    const at = performance.now();
    service = await startService(place.env);
    starts.push(Math.round(performance.now() - at));
    await eventually("events are acknowledged again", () => publishers.acknowledged.length > before);
  }
  await publishers.stop();
  const stoppedAt = performance.now();
  await eventually("everything arrives", () => undelivered(publishers, receiver).length === 0, DRAIN_MS)
    .catch(() => {});
  const drained = Math.round(performance.now() - stoppedAt);
  const tally = checkAll(publishers, receiver);
  {
    using kv = await Deno.openKv(place.env.PM_KV_PATH);
    await eventually("J2: no job row is left", async () => await jobRows(kv) === 0, DRAIN_MS);
  }
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);
  const rows = await checkAttempts(place.env.PM_KV_PATH!);
  const acknowledged = publishers.acknowledged.length;
  console.log({ acknowledged, ...tally, rows, ready_ms: starts, drained_ms: drained });
});

Deno.test("kill: SIGTERM under load ends with 0 within 20 s, and nothing is lost or sent twice", async () => {
  await using receiver = startReceiver();
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target });
  const call = makeApi(place.env.PM_PORT!, await platformKey(place.env));
  let service = await startService(place.env);
  await using _last = { [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
  const publishers = await startPublishers(call, await makeTenants(call, receiver), [place.env.PM_PORT!]);
  await pause(500 + Math.random() * 500);
  const at = performance.now();
  const { code } = await service.end("SIGTERM");
  const ms = Math.round(performance.now() - at);
  assert.equal(code, 0, service.output);
  assert.ok(ms < 20_000, `${ms} ms`);
  await publishers.stop();
  service = await startService(place.env);
  await eventually("everything arrives", () => undelivered(publishers, receiver).length === 0, DRAIN_MS)
    .catch(() => {});
  const tally = checkAll(publishers, receiver);
  assert.equal(tally.duplicates, 0);
  console.log({ acknowledged: publishers.acknowledged.length, ...tally, stop_ms: ms });
});

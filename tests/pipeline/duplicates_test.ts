/** Several jobs for one endpoint and event at once: never two rows for an attempt (D1). */
import assert from "node:assert/strict";
import { type FanoutJob, keys } from "../../lib/keys.ts";
import type { JobId } from "../../lib/ids.ts";
import { attempts, jobs, pair } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

/** Writes job rows past the system, due now: what a repeated fan-out looks like. */
async function fanOutAgain(w: World, event: string, times: number): Promise<void> {
  const job = { v: 1, kind: "fanout", events: [event] } as unknown as FanoutJob;
  for (let i = 0; i < times; i++) {
    await w.store.set(keys.job(i % 4, w.now(), w.first.ids.ulid() as JobId), job);
  }
  w.first.system.flow.pump.poke();
}

Deno.test("D1: two fan-outs of one event that end in the same flush record one attempt", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.append(tenant, 1); // before the endpoint: no delivery of its own
    await w.settle();
    const endpoint = await w.endpoint(tenant, URL);
    await w.settle();
    w.net.at(URL, () => gate.promise);
    const gate = Promise.withResolvers<number>();
    const [event] = await w.append(tenant, 1);
    await w.settle();
    await fanOutAgain(w, event!.key, 3);
    await w.settle();
    assert.equal(w.net.open, 4);
    gate.resolve(500);
    await w.settle();
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => [row.attempt, row.status]), [[1, "failed"]]);
    assert.equal((await jobs(w)).length, 1, "one retry");
  }));

Deno.test("D1: a replay while the first attempt is under way leaves one row for each attempt", async () => {
  for (const [first, second] of [[200, 200], [500, 200], [200, 500], [500, 500]] as const) {
    for (const firstEndsAfter of [500, 4_000]) {
      await world(async (w) => {
        const tenant = await w.tenant();
        const endpoint = await w.endpoint(tenant, URL);
        w.net.at(URL, (_, nth) => nth === 1 ? w.later(firstEndsAfter, first) : nth === 2 ? second : 200);
        const [event] = await w.append(tenant);
        await w.advance(250);
        const queued = await w.done(
          w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }),
        );
        assert.equal(queued.queued, 1);
        for (let i = 0; i < 40; i++) await w.advance(5_000);
        const state = (await pair(w, endpoint.id, event!.key))!;
        assert.equal(state.status, "succeeded");
        assert.deepEqual(await jobs(w), []);
      });
    }
  }
});

Deno.test("D1: a replay while a retry is pending takes its number, and the older run stops", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [event] = await w.append(tenant);
    await w.settle();
    assert.equal((await jobs(w)).length, 1);
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    assert.deepEqual((await attempts(w, endpoint.id)).map((r) => [r.attempt, r.first_attempt]), [[1, 1], [
      2,
      2,
    ]]);
    assert.equal((await jobs(w)).length, 2, "the old retry's row, and the new run's");
    w.net.at(URL, 200);
    await w.advance(40_000);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((r) => [r.attempt, r.first_attempt, r.status]), [
      [1, 1, "failed"],
      [2, 2, "failed"],
      [3, 2, "succeeded"],
    ]);
    assert.equal(w.net.received.length, 3, "the older run's retry sends nothing");
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("D1: a replay while a retry is under way discards the older run's result", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth === 1 ? 500 : nth === 2 ? w.later(6_000, 500) : 200);
    const [event] = await w.append(tenant);
    await w.advance(34_000);
    assert.equal(w.net.open, 1);
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    await w.advance(10_000);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((r) => [r.attempt, r.first_attempt, r.status]), [[1, 1, "failed"], [
      2,
      2,
      "succeeded",
    ]]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("D1: two isolates with the same due rows send and record each once", () =>
  world(async (w) => {
    await w.isolate();
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    await w.append(tenant, 60);
    await w.settle();
    w.net.at(URL, 200);
    w.time.now += 40_000; // all are due at once, and both look
    for (const { system } of w.isolates) system.doorbell();
    await w.settle();
    assert.equal((await attempts(w, endpoint.id)).length, 120);
    assert.equal(w.net.received.length, 120);
  }));

Deno.test("O3: every attempt and every replay sends the same bytes, signed at its own time", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth < 3 ? 503 : 200);
    const [event] = await w.append(tenant, [{ data: { price: 1.5, name: "é" } }]);
    await w.advance(40_000);
    await w.advance(140_000);
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    const sent = w.net.to(URL);
    assert.equal(sent.length, 4);
    assert.equal(new Set(sent.map((r) => r.body)).size, 1);
    assert.deepEqual(new Set(sent.map((r) => r.id)), new Set([event!.id]));
    assert.equal(new Set(sent.map((r) => r.signature)).size, new Set(sent.map((r) => r.timestamp)).size);
  }));

/** Past events again (`replay_by_ids_and_window`, R1), payloads that are gone, and test deliveries. */
import assert from "node:assert/strict";
import { deleteEndpoint, updateEndpoint } from "../../actors/endpoints.ts";
import type { ApiError } from "../../lib/errors.ts";
import type { EventId, EventKey } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS } from "../../lib/limits.ts";
import { attempts, changeEvent, jobs, pairs } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

async function erase(w: World, event: EventKey): Promise<void> {
  await changeEvent(w.store, event, { body: null });
}

Deno.test("replay_by_ids_and_window: by ids and by a half-open window, from before the endpoint, too", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const [a] = await w.append(tenant);
    w.time.now += 1_000;
    const [b] = await w.append(tenant);
    w.time.now += 1_000;
    const [c] = await w.append(tenant);
    w.time.now += 1_000;
    const endpoint = await w.endpoint(tenant, URL);
    const { replay } = w.first.system.deliveries;
    const sent = async (selection: Parameters<typeof replay>[1]) => {
      w.net.received.length = 0;
      const { queued } = await w.done(replay(endpoint.id, selection));
      assert.equal(w.net.received.length, queued);
      return w.net.received.map((r) => r.id).sort();
    };
    assert.deepEqual(await sent({ event_ids: [c!.id, a!.id, a!.id] }), [a!.id, c!.id]);
    assert.deepEqual(await sent({ since: a!.occurred_at, until: c!.occurred_at }), [a!.id, b!.id]);
    assert.deepEqual(await sent({ since: c!.occurred_at, until: c!.occurred_at }), []);
    assert.deepEqual(await sent({ event_ids: [w.first.ids.next("event")] }), []);
    const states = (await pairs(w)).map(({ value }) => [value.attempt, value.first]);
    assert.deepEqual(states, [[2, 2], [1, 1], [1, 1]]);
  }));

Deno.test("replay_by_ids_and_window: by state of the delivery", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const { replay } = w.first.system.deliveries;
    const [good] = await w.append(tenant);
    await w.settle();
    w.net.at(URL, 500);
    const [bad] = await w.append(tenant);
    await w.settle();
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: false }, null));
    await w.jump(40_000);
    const [late] = await attempts(w, endpoint.id).then((rows) => rows.slice(-1));
    assert.deepEqual([late!.event_id, late!.status, late!.error], [bad!.id, "dead", "endpoint_disabled"]);
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: true }, null));
    const [failed] = await w.append(tenant);
    await w.settle();
    w.net.at(URL, 200);
    const ids = async (status: "succeeded" | "failed" | "dead") => {
      w.net.received.length = 0;
      await w.done(replay(endpoint.id, { since: 0, until: w.now() + 1, status }));
      return w.net.received.map((r) => r.id).sort();
    };
    assert.deepEqual(await ids("failed"), [failed!.id]);
    assert.deepEqual(await ids("dead"), [bad!.id]);
    assert.deepEqual(await ids("dead"), [], "it has succeeded since");
    assert.deepEqual(await ids("succeeded"), [good!.id, bad!.id, failed!.id]);
  }));

Deno.test("replay_by_ids_and_window: R1: the window counts from occurred_at, or the tenant's retention if shorter", async () => {
  for (const days of [30, 7]) {
    await world(async (w) => {
      const tenant = await w.tenant(null, { retention: { events_days: days } });
      const endpoint = await w.endpoint(tenant, URL);
      const [event] = await w.append(tenant);
      await w.settle();
      const { replay } = w.first.system.deliveries;
      const queued = async () => [
        (await w.done(replay(endpoint.id, { event_ids: [event!.id] }))).queued,
        (await w.done(replay(endpoint.id, { since: 0, until: w.now() }))).queued,
      ];
      await w.jump(days * DAY_MS - HOUR_MS);
      assert.deepEqual(await queued(), [1, 1]);
      await w.jump(2 * HOUR_MS);
      assert.deepEqual(await queued(), [0, 0]);
    });
  }
});

Deno.test("replay_by_ids_and_window: erased events are not replayed, over 1,000 are refused, a deleted endpoint is 404", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const [gone, ...rest] = [...await w.append(tenant, 200), ...await w.append(tenant, 200)];
    w.time.now += 10;
    const endpoint = await w.endpoint(tenant, URL);
    const { replay } = w.first.system.deliveries;
    await erase(w, gone!.key);
    assert.equal((await w.done(replay(endpoint.id, { event_ids: [gone!.id, rest[0]!.id] }))).queued, 1);
    assert.equal((await w.done(replay(endpoint.id, { since: 0, until: w.now() }))).queued, 399);
    assert.equal(w.net.received.length, 400);
    for (let i = 0; i < 4; i++) await w.append(tenant, 200);
    await w.settle();
    await assert.rejects(
      replay(endpoint.id, { since: 0, until: w.now() + 1 }),
      (e: ApiError) => e.status === 400,
    );
    await w.done(deleteEndpoint(w.first.endpoints, endpoint.id, null));
    await assert.rejects(
      replay(endpoint.id, { event_ids: [rest[0]!.id] }),
      (e: ApiError) => e.status === 404,
    );
  }));

Deno.test("replay: an id two owners use replays each owner's event within the scope, and no stranger's", () =>
  world(async (w) => {
    const mine = await w.tenant(), theirs = await w.tenant();
    const event_id = w.first.ids.next("event") as EventId;
    for (const [tenant, owner] of [[mine, "a"], [mine, "b"], [theirs, "a"]] as const) {
      await w.append(tenant, [{ event_id }], owner);
    }
    w.time.now += 10;
    const endpoint = await w.endpoint(mine, URL);
    const { queued } = await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event_id] }));
    assert.equal(queued, 2);
    assert.deepEqual(w.net.received.map((r) => [r.id, JSON.parse(r.body).tenant_id]), [
      [event_id, mine.id],
      [event_id, mine.id],
    ]);
  }));

Deno.test("deleted_identity_event_unavailable: dead on that attempt, without a request or a retry", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [erased, pruned] = await w.append(tenant, 2);
    await w.settle();
    await erase(w, erased!.key);
    await w.store.delete(keys.event(pruned!.key));
    for (let i = 0; i < 3; i++) await w.jump(40_000);
    const rows = (await attempts(w, endpoint.id)).slice(2);
    assert.deepEqual(rows.map((r) => [r.attempt, r.status, r.error, r.next_attempt_at]), [
      [2, "dead", "event_unavailable", null],
      [2, "dead", "event_unavailable", null],
    ]);
    assert.equal(w.net.received.length, 2);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("webhook.test: one attempt within the request, also on a disabled endpoint; never fanned out, retried, replayed", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    await w.endpoint(tenant, "https://other.example.com/in");
    await w.endpoint(null, "https://platform.example.com/in");
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: false }, null));
    const { test, replay } = w.first.system.deliveries;
    const row = await w.done(test(endpoint.id));
    assert.deepEqual([row.status, row.attempt, row.event_type], ["succeeded", 1, "webhook.test"]);
    const body = JSON.parse(w.net.to(URL)[0]!.body);
    assert.deepEqual([body.data, body.sequence, body.tenant_id], [{ message: "hello" }, null, tenant.id]);
    w.net.at(URL, 500);
    assert.deepEqual((await w.done(test(endpoint.id))).error, "status_5xx");
    assert.deepEqual(await jobs(w), []);
    await w.first.system.sweep();
    await w.settle();
    assert.equal(w.net.received.length, 2, "nobody else hears of it");
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: true }, null));
    assert.equal((await w.done(replay(endpoint.id, { since: 0, until: w.now() + 1 }))).queued, 0);
    assert.equal((await w.done(replay(endpoint.id, { event_ids: [row.event_id] }))).queued, 0);
    w.net.name("hooks.example.com", () => {
      throw new Error("resolver down");
    });
    await assert.rejects(
      test(endpoint.id),
      (e: ApiError) => e.status === 503,
      "D4: a fault of ours is no row",
    );
    assert.equal((await attempts(w, endpoint.id)).length, 2);
  }));

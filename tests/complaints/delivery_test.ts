/**
 * What users of other webhook systems complained about, on the delivering side: each complaint is a test here, over the whole pipeline.
 */
import assert from "node:assert/strict";
import { deleteEndpoint, updateEndpoint } from "../../actors/endpoints.ts";
import type { Appended } from "../../actors/owner.ts";
import type { EventId } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { attempts, endpointRow, health, jobs, pair } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in", OTHER = "https://other.example.com/in";

/** Leaps to the next attempt, which is in the first job row. */
async function toNext(w: World): Promise<void> {
  const [next] = await jobs(w);
  await w.jump(Math.max(0, next!.due - w.now()) + 1);
}

Deno.test("complaint: an endpoint is enabled again without clearing its counter, so one failure more disables it", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    await w.store.set(keys.health(endpoint.id), {
      consecutive_failures: 99,
      failing_since: w.now() - 30 * HOUR_MS,
      last_success_at: null,
      last_failure_at: w.now(),
    });
    w.net.at(URL, 500);
    await w.append(tenant);
    await w.settle();
    assert.equal((await endpointRow(w, endpoint.id)).disabled_reason, "failing");
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: true }, null));
    const start = (w.time.now += 1_000);
    for (let failure = 1; failure <= 5; failure++) {
      await w.append(tenant);
      await w.settle();
      const streak = (await health(w, endpoint.id))!;
      assert.deepEqual([streak.consecutive_failures, streak.failing_since], [failure, start]);
    }
    assert.deepEqual([(await endpointRow(w, endpoint.id)).enabled], [true]);
  }));

Deno.test("complaint: a second manual retry is blocked by the stale key of the first", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const [event] = await w.append(tenant);
    await w.settle();
    for (let retry = 1; retry <= 3; retry++) {
      const { queued } = await w.done(
        w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id], key: event!.key }),
      );
      assert.equal(queued, 1);
      assert.equal(w.net.to(URL).length, 1 + retry, "each retry is a request");
    }
    assert.deepEqual((await attempts(w, endpoint.id)).map((row) => row.attempt), [1, 2, 3, 4]);
    assert.equal(new Set(w.net.received.map((request) => request.id)).size, 1, "with the same webhook-id");
  }));

Deno.test("complaint: a replay of a batch touches another owner's events", () =>
  world(async (w) => {
    const mine = await w.tenant(), theirs = await w.tenant();
    const endpoint = await w.endpoint(mine, URL);
    const event_id = w.first.ids.next("event") as EventId; // a producer's own, the same for each of its owners
    const [ofA] = await w.append(mine, [{ event_id }], "a");
    const [ofB] = await w.append(mine, [{ event_id }], "b");
    const [foreign] = await w.append(theirs, [{ event_id }], "a");
    await w.settle();
    const again = (event: Appended) =>
      w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event.id], key: event.key }));
    assert.deepEqual(await again(ofA!), { queued: 1 });
    const made = async (event: Appended) => (await pair(w, endpoint.id, event.key))?.attempt ?? 0;
    assert.deepEqual([await made(ofA!), await made(ofB!), await made(foreign!)], [2, 1, 0]);
    assert.deepEqual(
      await again(foreign!),
      { queued: 0 },
      "another tenant's event, by its id and its very key",
    );
    assert.equal(w.net.received.length, 3);
  }));

Deno.test("complaint: an edit of a subscription is seen late", async () => {
  for (const elsewhere of [false, true]) {
    await world(async (w) => {
      const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
      const by = elsewhere ? await w.isolate() : w.first;
      w.net.at(URL, 500);
      await w.append(tenant); // what is delivered once is cached
      await w.settle();
      const edit = (patch: Parameters<typeof updateEndpoint>[2]) =>
        w.done(updateEndpoint(by.endpoints, endpoint.id, patch, null));
      await edit({ url: OTHER });
      w.time.now += 50; // what another isolate may be behind
      await w.append(tenant);
      await w.settle();
      assert.deepEqual(
        [w.net.to(URL).length, w.net.to(OTHER).length],
        [1, 1],
        "the next event goes to the new URL",
      );
      await w.jump(40_000);
      assert.deepEqual(
        [w.net.to(URL).length, w.net.to(OTHER).length],
        [1, 2],
        "and so does the pending retry",
      );
      await edit({ events: ["domain.created"] });
      w.time.now += 50;
      await w.append(tenant);
      await w.settle();
      assert.equal(w.net.to(OTHER).length, 2);
      await edit({ events: ["*"] });
      await edit({ enabled: false });
      w.time.now += 50;
      await w.append(tenant);
      await w.settle();
      assert.equal(w.net.to(OTHER).length, 2);
    });
  }
});

Deno.test("complaint: the last retry is never picked up, least of all after a restart", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    await w.append(tenant);
    await w.settle();
    for (let attempt = 2; attempt <= 12; attempt++) await toNext(w);
    assert.equal((await attempts(w, endpoint.id)).length, 12);
    w.first.crash();
    const second = await w.isolate();
    await toNext(w);
    await second.system.sweep();
    await w.settle();
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual([rows.length, rows.at(-1)!.attempt, rows.at(-1)!.status], [13, 13, "dead"]);
    assert.deepEqual(await jobs(w), [], "and nothing comes after it");
  }));

Deno.test("complaint: the retry counter is stuck, so an event is retried for ever", () =>
  world(async (w) => {
    w.expected.add("record");
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [event] = await w.append(tenant);
    await w.settle();
    for (let attempt = 2; attempt <= 13; attempt++) {
      if (attempt === 4) {
        // The store takes a result and its answer is lost: the count must neither stop nor run ahead.
        let lost = false;
        w.first.kv.afterCommit = (_, written) => {
          if (lost || !written.some((key) => key[0] === "attempt")) return;
          lost = true;
          throw new Error("the answer is lost");
        };
      }
      await toNext(w);
      await w.first.system.sweep();
      await w.settle();
      assert.equal((await pair(w, endpoint.id, event!.key))!.attempt, attempt);
    }
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => row.attempt), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("complaint: an error of DNS is final, or never retried", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.name("hooks.example.com", () => ({ a: [], aaaa: [] }));
    await w.append(tenant);
    await w.settle();
    for (let k = 0; k < 3; k++) await toNext(w);
    w.net.name("hooks.example.com", () => ({ a: ["93.184.216.34"], aaaa: [] }));
    await toNext(w);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => row.error ?? row.status), ["dns", "dns", "dns", "dns", "succeeded"]);
    assert.equal((await endpointRow(w, endpoint.id)).enabled, true);
  }));

Deno.test("complaint: the jobs of a deleted endpoint loop for ever", () =>
  world(async (w) => {
    const partner = await w.partner(), tenant = await w.tenant(partner);
    const failing = await w.endpoint(tenant, URL), slow = await w.endpoint(tenant, OTHER);
    w.net.at(URL, 500);
    w.net.at(OTHER, () => w.later(5_000, 500));
    await w.append(tenant, 5);
    await w.advance(3_000); // five retries are due later, five attempts are under way
    await w.done(w.first.system.deliveries.replay(failing.id, { since: 0, until: w.now() }));
    for (const { id } of [failing, slow]) await w.done(deleteEndpoint(w.first.endpoints, id, null));
    await w.advance(10_000);
    const dialled = w.net.received.length;
    for (let minute = 0; minute < 5; minute++) {
      await w.jump(60_000);
      await w.first.system.sweep();
      await w.settle();
    }
    assert.deepEqual(await jobs(w), []);
    assert.equal(w.net.received.length, dialled);
  }));

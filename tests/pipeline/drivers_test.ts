/** Who wakes for a due row: timers, doorbells, sweep, heartbeats; and fairness between endpoints (DESIGN-level "Jobs"). */
import assert from "node:assert/strict";
import { updateTenant } from "../../actors/tenancy.ts";
import { type FanoutJob, keys } from "../../lib/keys.ts";
import type { JobId } from "../../lib/ids.ts";
import { HOUR_MS, MINUTE_MS } from "../../lib/limits.ts";
import { attempts, jobs, pendingPlatform } from "../support/rows.ts";
import { world } from "../support/world.ts";

const SLOW = "https://slow.example.com/in";
const FAST = "https://fast.example.com/in";

Deno.test("J1: a slow endpoint's attempts move to Deliver rows after 2 s and hold up no Fanout job", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const slow = await w.endpoint(tenant, SLOW), fast = await w.endpoint(tenant, FAST);
    w.net.at(SLOW, "hang");
    await w.append(tenant, 4);
    await w.settle();
    assert.equal((await attempts(w, fast.id)).length, 4, "recorded without waiting for the slow one");
    assert.deepEqual((await jobs(w)).map(({ job }) => job.kind), ["fanout"]);
    await w.advance(2_600);
    const rows = await jobs(w);
    assert.deepEqual(rows.map(({ job }) => job.kind === "deliver" && job.items.length), [4]);
    assert.equal(rows[0]!.job.by, w.first.system.jobs.instance);
    await w.advance(13_000);
    assert.deepEqual((await attempts(w, slow.id)).map((r) => r.error), Array(4).fill("timeout"));
    const retries = await jobs(w);
    assert.equal(retries.length >= 1 && retries.every(({ job }) => job.by === undefined), true);
    assert.equal(w.net.to(SLOW).length, 4);
  }));

Deno.test("fair: an endpoint that answers nothing delays no other, and stays within its share", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, SLOW);
    await w.endpoint(tenant, FAST);
    w.net.at(SLOW, "hang");
    for (let i = 0; i < 40; i++) {
      await w.append(tenant, 5);
      await w.advance(250);
      assert.equal(w.net.to(FAST).length, 5 * (i + 1), "delivered at once");
      assert.ok(w.net.to(FAST).every((r) => r.at - Date.parse(JSON.parse(r.body).occurred_at) < 250));
    }
    assert.equal(w.net.maxOpenAt.get(SLOW), 8);
    w.net.at(SLOW, 200);
    for (let i = 0; i < 30; i++) await w.advance(5_000);
    assert.deepEqual(await jobs(w), []);
    assert.equal(new Set(w.net.to(SLOW).map((r) => r.id)).size, 200);
  }, { maxPerEndpoint: 8, maxInFlight: 32 }));

Deno.test("J1: the hot hand-off stays within its memory; what is over it waits in the store and is taken in turn", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, FAST);
    const gate = Promise.withResolvers<number>();
    w.net.at(FAST, gate.promise);
    for (let i = 0; i < 60; i++) await w.append(tenant, 10);
    await w.settle();
    const { lanes } = w.first.system.flow;
    assert.equal(w.net.open, 16);
    assert.ok(lanes.size <= 4 * 16 + 2 * 64, `${lanes.size} in memory`);
    const waiting = (await jobs(w)).reduce(
      (n, { job }) => n + (job.kind === "deliver" ? job.items.length : 0),
      0,
    );
    assert.ok(waiting >= 500, "the rest waits in the store");
    gate.resolve(200);
    await w.settle();
    for (let i = 0; i < 20; i++) await w.advance(500);
    assert.equal(w.net.received.length, 600);
    assert.deepEqual(await jobs(w), []);
  }, { maxInFlight: 16, maxPerEndpoint: 16 }));

Deno.test("J1: payload bytes in memory are bounded, too, and room that comes back is used", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, FAST);
    const gate = Promise.withResolvers<number>();
    w.net.at(FAST, gate.promise);
    const text = "x".repeat(500_000);
    for (let i = 0; i < 150; i++) await w.append(tenant, [{ data: { text } }]);
    await w.settle();
    const { lanes } = w.first.system.flow;
    assert.ok(lanes.bytes < 66 * 1024 * 1024, `${lanes.bytes} bytes`);
    assert.ok((await jobs(w)).some(({ due }) => due <= w.now()));
    gate.resolve(200);
    await w.settle();
    assert.equal(w.net.received.length, 150);
    assert.deepEqual([await jobs(w), lanes.bytes], [[], 0]);
  }));

Deno.test("doorbells: one a second-bucket near, one a minute-bucket far, none for what is due, pointers only", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    for (let i = 0; i < 10; i++) {
      await w.endpoint(tenant, `https://hooks${i}.example.com/in`);
      w.net.at(`https://hooks${i}.example.com/in`, 500);
    }
    await w.append(tenant, 50);
    await w.settle();
    assert.equal((await jobs(w)).length > 10, true);
    const bells = w.first.kv.enqueued;
    const retries = bells.filter(({ delay }) => delay < 50_000);
    assert.ok(retries.length >= 1 && retries.length <= 8, `${retries.length} doorbells for 500 retries`);
    assert.ok(bells.length <= 10);
    for (const { value, delay } of bells) {
      assert.deepEqual(Object.keys(value as object), ["v", "kind", "due"]);
      assert.ok(delay > 0);
    }
    const buckets = bells.map(({ value }) => (value as { due: number }).due);
    assert.equal(new Set(buckets).size, buckets.length);
    assert.ok(buckets.every((due) => due % 1_000 === 0));
  }, { doorbell: true }));

Deno.test("a row due with nobody awake is found within a minute, by the doorbell or the sweep at once", async () => {
  for (const driver of ["timer", "doorbell", "sweep"] as const) {
    await world(async (w) => {
      const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, FAST);
      w.net.at(FAST, 500);
      const other = await w.isolate();
      await w.append(tenant);
      await w.settle();
      await w.first.system.stop(0);
      w.net.at(FAST, 200);
      await w.done(Promise.resolve());
      w.time.now += 40_000; // the retry is due; the other isolate never heard of it
      if (driver === "doorbell") other.system.doorbell();
      if (driver === "sweep") await other.system.sweep();
      if (driver === "timer") await w.advance(MINUTE_MS);
      await w.settle();
      assert.deepEqual((await attempts(w, endpoint.id)).map((r) => r.status), ["failed", "succeeded"]);
    });
  }
});

Deno.test("a change that brings its own job is delivered at once", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, FAST);
    const policy = { webhook_text_bytes: 1_000 };
    await w.done(updateTenant(w.first.tenancy, tenant.id, { policy }, null));
    assert.equal(JSON.parse(w.net.to(FAST)[0]!.body).type, "tenant.policy_updated");
    assert.deepEqual(await pendingPlatform(w), []);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("platform events: the sweep fans out what nobody fanned out within the hour, once", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(null, FAST);
    const endpoint = await w.endpoint(tenant, SLOW);
    w.net.at(SLOW, 410);
    await w.append(tenant);
    await w.settle();
    const event = JSON.parse(w.net.to(FAST).map((r) => r.body).find((b) => b.includes("webhook.disabled"))!);
    assert.equal(event.data.webhook_id, endpoint.id);
    assert.deepEqual(await pendingPlatform(w), []);
    // The same, had the job been lost: the mark and the event are there, the job and its deliveries are not.
    const key = event.id.slice(4);
    await w.store.set(keys.platformPending(key), w.now());
    for await (const row of w.store.list({ prefix: ["pair"] })) {
      if (row.key[2] === key) await w.store.delete(row.key);
    }
    for await (const row of w.store.list<{ event: string }>({ prefix: ["attempt"] })) {
      if (row.value.event === key) await w.store.delete(row.key);
    }
    const count = w.net.to(FAST).length;
    await w.first.system.sweep();
    await w.settle();
    assert.equal(w.net.to(FAST).length, count, "not before a minute");
    await w.jump(2 * MINUTE_MS);
    for (let i = 0; i < 3; i++) {
      await w.first.system.sweep();
      await w.settle();
    }
    assert.equal(w.net.to(FAST).length, count + 1);
    assert.deepEqual(await pendingPlatform(w), []);
    await w.store.set(keys.platformPending(key), w.now());
    await w.jump(2 * HOUR_MS);
    await w.first.system.sweep();
    await w.settle();
    assert.equal(w.net.to(FAST).length, count + 1, "past the hour it is let go");
    assert.deepEqual(await pendingPlatform(w), []);
  }));

Deno.test("P1: rows, doorbells and dead letters carry pointers, never content", () =>
  world(async (w) => {
    w.expected.add("open").add("fan_out").add("deliver");
    const canary = "CANARY-5f1d";
    const tenant = await w.tenant();
    await w.endpoint(tenant, SLOW + `?token=${canary}`);
    w.net.at(SLOW + `?token=${canary}`, 500);
    await w.append(tenant, [{ data: { secret: canary } }], "owner");
    const bad = { v: 1, kind: "fanout", events: ["x"], throws: 12 } as unknown as FanoutJob;
    await w.store.set(keys.job(0, w.now(), w.first.ids.ulid() as JobId), bad);
    await w.settle();
    for (
      const prefix of [keys.jobs(), keys.deadLetters(), keys.parkedAll(), ["pair"], ["attempt"], ["health"]]
    ) {
      for await (const row of w.store.list({ prefix })) assert.ok(!JSON.stringify(row).includes(canary));
    }
    assert.ok(w.first.kv.enqueued.length > 0 && !JSON.stringify(w.first.kv.enqueued).includes(canary));
  }, { doorbell: true }));

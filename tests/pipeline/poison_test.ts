/** Jobs whose processing throws: alone, backed off, dead-lettered after 13 throws, redriven; their neighbours never wait. */
import assert from "node:assert/strict";
import type { EventKey, Id } from "../../lib/ids.ts";
import { keys, type PairRow } from "../../lib/keys.ts";
import { attempts, changeEvent, deadLetters, jobs, pair } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

/** An event whose row throws when it is read. @returns what mends it. */
const poison = (w: World, event: EventKey): Promise<() => Promise<unknown>> =>
  changeEvent(w.store, event, { type: "webhook.disabled", body: new TextEncoder().encode("no JSON") });

async function appendCold(w: World, count: number) {
  await w.first.system.flow.pump.stop();
  const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
  const events = await w.append(tenant, count);
  return { tenant, endpoint, events, start: () => (w.first.system.flow.pump.start(), w.settle()) };
}

/** Leaps from due time to due time until nothing is left; answers the delays between the throws, ms. */
async function untilGivenUp(w: World, sent: number): Promise<number[]> {
  const delays: number[] = [];
  while ((await jobs(w)).length > 0) {
    const [row] = await jobs(w);
    delays.push(row!.due - w.now());
    assert.ok(delays.length < 20);
    await w.jump(row!.due - w.now() + 1);
    assert.equal(w.net.received.length, sent);
  }
  return delays;
}

Deno.test("a poisoned event leaves its neighbours, backs off from 30 s to 5 min, and is a dead letter after 13 throws", () =>
  world(async (w) => {
    w.expected.add("open");
    const { events, endpoint, start } = await appendCold(w, 20);
    const mend = await poison(w, events[7]!.key);
    await start();
    assert.equal(w.net.received.length, 0, "the first look threw for all of them");
    await w.jump(30_001);
    assert.equal(w.net.received.length, 19, "alone, its neighbours pass");
    const delays = await untilGivenUp(w, 19);
    assert.deepEqual(delays.map((ms) => Math.round(ms / 1_000)), [60, 120, 240, ...Array(8).fill(300)]);
    const [letter] = await deadLetters(w);
    assert.equal(letter!.error, "fan_out_failed");
    assert.deepEqual(letter!.job.kind === "fanout" && letter!.job.events, [events[7]!.key]);
    await w.first.system.sweep();
    await w.jump(3_600_000);
    assert.equal(w.net.received.length, 19, "nothing takes it up by itself");
    await mend();
    const redriven = await w.done(w.first.system.deliveries.redrive(letter!.id));
    assert.equal(redriven!.id, letter!.id);
    assert.equal(w.net.received.length, 20);
    assert.equal((await attempts(w, endpoint.id)).length, 20);
    assert.deepEqual([await deadLetters(w), await jobs(w)], [[], []]);
    assert.equal(await w.first.system.deliveries.redrive(letter!.id as Id<"deadLetter">), null);
  }, { hotHandOff: false }));

Deno.test("a poisoned delivery leaves its job's other items, and is a dead letter after 13 throws, 30 s apart", () =>
  world(async (w) => {
    w.expected.add("open");
    const { events, endpoint } = await appendCold(w, 6);
    w.first.system.flow.pump.start();
    await w.settle();
    assert.equal(w.net.received.length, 6);
    await w.first.system.flow.pump.stop();
    await w.done(w.first.system.deliveries.replay(endpoint.id, { since: 0, until: w.now() + 1 }));
    const mend = await poison(w, events[2]!.key);
    w.first.system.flow.pump.start();
    await w.settle();
    await w.jump(30_001);
    assert.equal(w.net.received.length, 11);
    const delays = await untilGivenUp(w, 11);
    assert.deepEqual(delays.map((ms) => Math.round(ms / 1_000)), Array(11).fill(30));
    const [letter] = await deadLetters(w);
    assert.equal(letter!.error, "deliver_failed");
    assert.deepEqual(letter!.job.kind === "deliver" && letter!.job.items.map((i) => i.event), [
      events[2]!.key,
    ]);
    assert.equal(letter!.job.by, undefined);
    await mend();
    await w.done(w.first.system.deliveries.redrive(letter!.id));
    assert.equal(w.net.received.length, 12);
  }, { hotHandOff: false }));

Deno.test("a result that cannot be recorded holds up no other that ended with it", () =>
  world(async (w) => {
    w.expected.add("record");
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const events = await w.append(tenant, 5);
    await w.settle();
    w.time.now += 60_000;
    const gate = Promise.withResolvers<number>();
    w.net.at(URL, gate.promise);
    for (const { id } of events) {
      await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [id] }));
    }
    const key = keys.pair(endpoint.id, events[1]!.key), { value } = await w.store.get<PairRow>(key);
    assert.equal(w.net.open, 5);
    await w.store.set(key, { ...value, ids: 5 }); // a row that breaks whoever reads it
    gate.resolve(200);
    await w.settle();
    assert.equal((await attempts(w, endpoint.id)).length, 9);
    assert.equal((await jobs(w)).length, 1, "it comes again when its claim runs out");
    await w.store.set(key, value);
    await w.advance(61_000);
    assert.equal((await attempts(w, endpoint.id)).length, 10);
  }));

Deno.test("a pair that was replayed for ever stays within one value", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const [event] = await w.append(tenant);
    await w.settle();
    const key = keys.pair(endpoint.id, event!.key), value = await pair(w, endpoint.id, event!.key);
    const ids = Array.from(
      { length: 499 },
      (_, i) => i === 0 ? value!.ids[0]! : w.first.ids.next("delivery"),
    );
    await w.store.set(key, { ...value!, attempt: 499, ids });
    const { replay } = w.first.system.deliveries;
    assert.equal((await w.done(replay(endpoint.id, { event_ids: [event!.id] }))).queued, 1);
    assert.equal((await w.done(replay(endpoint.id, { event_ids: [event!.id] }))).queued, 0);
    assert.equal((await attempts(w, endpoint.id)).at(-1)!.attempt, 500);
    await w.store.delete(key); // as it was, for what is checked at the end
    await w.store.delete(keys.attempt(endpoint.id, (await attempts(w, endpoint.id)).at(-1)!.id));
  }));

Deno.test("D4: a store that fails reads for a while delays deliveries and charges nobody", () =>
  world(async (w) => {
    w.expected.add("open").add("fan_out").add("deliver").add("pump").add("record").add("heartbeat");
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    await w.append(tenant);
    await w.settle();
    w.time.now += 1_000;
    w.first.kv.beforeRead = (key) => {
      if (
        ["endpoint", "endpoint_of", "endpoints_revision", "pair", "attempt", "ev"].includes(String(key[0]))
      ) {
        throw new Error("unreachable");
      }
    };
    await w.append(tenant, 5);
    for (let i = 0; i < 4; i++) await w.advance(10_000);
    assert.equal(w.net.received.length, 1);
    w.first.kv.beforeRead = null;
    for (let i = 0; i < 14; i++) await w.advance(10_000);
    assert.equal(w.net.received.length, 6);
    assert.deepEqual(
      (await attempts(w, endpoint.id)).map((r) => [r.attempt, r.status]),
      Array(6).fill([1, "succeeded"]),
    );
    assert.deepEqual(await jobs(w), []);
  }));

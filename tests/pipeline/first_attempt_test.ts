/** What a first attempt of the hot path leaves: one row when it succeeds, which is its pair's state as well (D1, J1). */
import assert from "node:assert/strict";
import { type EndpointId, type EventKey, firstDelivery, type JobId } from "../../lib/ids.ts";
import { type FanoutJob, keys } from "../../lib/keys.ts";
import { HANDOVER_AFTER_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { allAttempts, attempts, jobs, pair, pairs } from "../support/rows.ts";
import { type Isolate, type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

const counts = async (w: World) => [(await allAttempts(w)).length, (await pairs(w)).length];

/** Lets an isolate's commit that writes `key` wait until it is told to go on. */
function stopBefore({ kv }: Isolate, key: Deno.KvKey) {
  const reached = Promise.withResolvers<void>(), goOn = Promise.withResolvers<void>();
  kv.beforeCommit = (written) => {
    if (!written.some((one) => one.join(" ") === key.join(" "))) return;
    kv.beforeCommit = null;
    reached.resolve();
    return goOn.promise;
  };
  return { reached: reached.promise, goOn: goOn.resolve };
}

Deno.test("record: a first success writes one row, under the id its event gives; a first failure the pair's as well", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const [good] = await w.append(tenant);
    await w.settle();
    assert.deepEqual(await counts(w), [1, 0]);
    const id = firstDelivery(endpoint.id, good!.key);
    assert.equal((await w.store.get(keys.attempt(endpoint.id, id))).versionstamp === null, false);
    const state = { status: "succeeded", attempt: 1, first: 1, succeeded: true, dead: false, ids: [id] };
    assert.deepEqual(await pair(w, endpoint.id, good!.key), state);
    w.net.at(URL, 500);
    const [bad] = await w.append(tenant);
    await w.settle();
    assert.deepEqual(await counts(w), [2, 1]);
    const { status, ids } = (await pair(w, endpoint.id, bad!.key))!;
    assert.deepEqual([status, ids], ["failed", [firstDelivery(endpoint.id, bad!.key)]]);
    w.net.at(URL, 200);
    await w.advance(40 * SECOND_MS);
    assert.deepEqual(await counts(w), [3, 1]);
    assert.equal((await pair(w, endpoint.id, bad!.key))!.attempt, 2);
  }));

Deno.test("record: a first attempt of the store's own work that succeeds writes no pair row, unless it is alone", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL), gate = Promise.withResolvers<number>();
    w.net.at(URL, gate.promise);
    const events = await w.append(tenant, 10);
    await w.settle();
    gate.resolve(200);
    await w.advance(SECOND_MS);
    const [tried, paired] = await counts(w);
    assert.ok(tried === 10 && paired! <= 1, `${paired} of ${tried} have a pair row`); // what ends first is recorded alone, maybe
    for (const { key } of events) assert.equal((await pair(w, endpoint.id, key))!.succeeded, true);
    await w.append(tenant);
    await w.advance(SECOND_MS);
    assert.deepEqual(await counts(w), [11, paired! + 1]);
  }, { hotHandOff: false }));

Deno.test("fan-out: of a job that nobody had before, pairs are read only where some replay may have written one", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const read = new Set<unknown>();
    w.first.kv.beforeRead = ([family]) => void read.add(family);
    const [event] = await w.append(tenant, 5);
    await w.advance(SECOND_MS);
    assert.deepEqual([read.has("replays"), read.has("pair"), w.net.received.length], [true, false, 5]);
    w.time.now += HANDOVER_AFTER_MS;
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    await w.advance(MINUTE_MS);
    read.clear();
    await w.append(tenant, 5);
    await w.advance(SECOND_MS);
    assert.deepEqual([read.has("pair"), w.net.received.length], [true, 11]);
  }, { hotHandOff: false }));

Deno.test("D1: a fan-out that is repeated sends nothing of what succeeded at once, few events or many", async () => {
  for (const n of [1, 5, 6, 11, 150]) {
    await world(async (w) => {
      const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
      const events = (await w.append(tenant, n)).map(({ key }) => key);
      await w.advance(SECOND_MS);
      assert.deepEqual([w.net.received.length, ...await counts(w)], [n, n, 0]);
      for (let i = 0; i < 3 * n; i++) { // strangers in between
        const id = firstDelivery(
          endpoint.id,
          `${events[0]!.slice(0, 10)}${w.first.ids.ulid().slice(10)}` as EventKey,
        );
        if (n === 11) {
          await w.store.set(keys.attempt(endpoint.id, id), { ...(await attempts(w, endpoint.id))[0], id });
        }
      }
      const strangers = (await allAttempts(w)).filter(({ value }) =>
        value.id !== firstDelivery(endpoint.id, value.event)
      );
      const job = { v: 1, kind: "fanout", events } satisfies FanoutJob;
      await w.store.set(keys.job(0, w.now(), w.first.ids.ulid() as JobId), job);
      w.first.system.flow.pump.poke();
      await w.advance(SECOND_MS);
      for (const { value } of strangers) await w.store.delete(keys.attempt(endpoint.id, value.id));
      assert.deepEqual([w.net.received.length, ...await counts(w)], [n, n, 0], `${n} events`);
      assert.deepEqual(await jobs(w), []);
    });
  }
});

Deno.test("D1: after a crash with half of a job recorded, its heir sends the other half alone", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth <= 3 ? 200 : new Promise(() => {}));
    await w.append(tenant, 6);
    await w.settle();
    assert.deepEqual([w.net.received.length, ...await counts(w)], [6, 3, 0]);
    w.first.crash();
    w.net.at(URL, 200);
    const heir = await w.isolate();
    await w.advance(7 * SECOND_MS);
    assert.equal(w.net.received.filter(({ from }) => from === heir.name).length, 3);
    assert.deepEqual(await counts(w), [6, 3]);
    assert.ok((await attempts(w, endpoint.id)).every((row) => row.attempt === 1));
  }));

Deno.test("replay: what succeeded at once goes on as attempt 2, and lists both", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const [event] = await w.append(tenant);
    await w.settle();
    const { queued } = await w.done(
      w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }),
    );
    assert.equal(queued, 1);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => [row.attempt, row.first_attempt]), [[1, 1], [2, 2]]);
    assert.deepEqual((await pair(w, endpoint.id, event!.key))!.ids, rows.map(({ id }) => id));
  }));

for (const n of [1, 3]) { // a row of its own, or a block
  Deno.test(`D1: a first attempt recorded between a replay's look and its commit is seen by it, one of ${n}`, () =>
    underReplay(n, async (w, endpoint, event, recordFirst) => {
      const other = await w.isolate();
      const replay = stopBefore(other, keys.pair(endpoint, event.key));
      const asked = other.system.deliveries.replay(endpoint, { event_ids: [event.id] });
      await replay.reached;
      await recordFirst();
      replay.goOn();
      await w.done(asked);
      await w.advance(20 * SECOND_MS);
      assert.deepEqual(
        (await attemptsOf(w, endpoint, event)).map((row) => [row.attempt, row.first_attempt]),
        [
          [1, 1],
          [2, 2],
        ],
      );
    }));

  Deno.test(`D1: a first attempt recorded after a replay was queued is what the replay finds done, one of ${n}`, () =>
    underReplay(n, async (w, endpoint, event, recordFirst) => {
      await w.done(w.first.system.deliveries.replay(endpoint, { event_ids: [event.id] }));
      await recordFirst();
      await w.advance(20 * SECOND_MS);
      assert.deepEqual((await attemptsOf(w, endpoint, event)).map((row) => row.attempt), [1]);
      assert.deepEqual((await pair(w, endpoint, event.key))!.status, "succeeded");
      assert.deepEqual(await jobs(w), []);
    }));

  Deno.test(`D1: a replay's attempt under way when the first one is recorded is not on record as the first again, one of ${n}`, () =>
    underReplay(n, async (w, endpoint, event, recordFirst) => {
      const gate = Promise.withResolvers<number>();
      w.net.at(URL, gate.promise);
      // As if the clocks of two isolates disagreed: nothing keeps the replay off the first attempt.
      const item = { event: event.key, id: event.id, type: event.type, attempt: 1, first: 1, replay: true };
      const opened = { status: null, attempt: 0, first: 1, succeeded: false, dead: false, ids: [] };
      await w.store.set(keys.pair(endpoint, event.key), opened);
      await w.store.set(keys.job(0, w.now(), w.first.ids.ulid() as JobId), {
        v: 1,
        kind: "deliver",
        endpoint,
        items: [item],
      });
      w.first.system.flow.pump.poke();
      await w.settle();
      assert.equal(w.net.received.length, n + 1, "all are under way");
      await recordFirst();
      gate.resolve(200);
      await w.settle();
      assert.deepEqual((await attemptsOf(w, endpoint, event)).map((row) => row.attempt), [1]);
      assert.deepEqual(await jobs(w), []);
    }));
}

type Event = Awaited<ReturnType<World["append"]>>[number];

const attemptsOf = async (w: World, endpoint: EndpointId, event: Event) =>
  (await attempts(w, endpoint)).filter((row) => row.event === event.key);

/** A world with `n` first attempts under way, which end well and are recorded together when `recordFirst` is called; the last one's event. */
function underReplay(
  n: number,
  run: (w: World, endpoint: EndpointId, event: Event, recordFirst: () => Promise<void>) => Promise<void>,
): Promise<void> {
  return world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const gate = Promise.withResolvers<number>();
    w.net.at(URL, (_, nth) => nth <= n ? gate.promise : 200);
    const event = (await w.append(tenant, n)).at(-1)!;
    await w.settle();
    await run(w, endpoint.id, event, async () => {
      gate.resolve(200);
      for (let i = 0; i < 500 && (await attemptsOf(w, endpoint.id, event)).length === 0; i++) {
        await new Promise((r) => setTimeout(r, 1));
      }
      const id = firstDelivery(endpoint.id, event.key);
      assert.deepEqual((await attemptsOf(w, endpoint.id, event)).map((row) => row.id), [id]);
      assert.equal(
        (await w.store.get(keys.attempt(endpoint.id, id))).value === null,
        n > 1,
        "a block or a row",
      );
    });
  });
}

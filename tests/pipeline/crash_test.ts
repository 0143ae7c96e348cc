/** What a crash, a lost answer of the store or a stop leaves behind, and who picks it up (J1, J2, J3, D1, D4). */
import assert from "node:assert/strict";
import { attempts, heartbeats, jobs } from "../support/rows.ts";
import { world } from "../support/world.ts";
import { VISIBILITY_MS } from "../../lib/limits.ts";

const URL = "https://hooks.example.com/in";

Deno.test("outbox_at_least_once: a crash after the request and before its record delivers again, same webhook-id", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, () => (w.first.crashed || w.first.crash(), 200));
    const [event] = await w.append(tenant);
    await w.settle();
    assert.equal(w.net.to(URL).length, 1);
    assert.deepEqual(await attempts(w, endpoint.id), []);
    const heir = await w.isolate();
    await w.advance(7_000);
    const sent = w.net.to(URL);
    assert.deepEqual(sent.map(({ id, from }) => [id, from]), [
      [event!.id, "isolate 1"],
      [event!.id, heir.name],
    ]);
    assert.equal(sent[0]!.body, sent[1]!.body);
    assert.deepEqual((await attempts(w, endpoint.id)).map((row) => row.status), ["succeeded"]);
    assert.deepEqual(await jobs(w), []);
    assert.equal((await heartbeats(w)).length, 1, "the dead one's sign of life is cleared away");
  }));

Deno.test("outbox_at_least_once: a crash right after the append loses nothing", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    w.first.kv.afterCommit = (_, keys) => {
      if (keys.some((key) => key[0] === "ev")) w.first.crash();
      return w.first.crashed ? new Promise(() => {}) : undefined;
    };
    void w.append(tenant, 3);
    await w.settle();
    assert.equal(w.net.received.length, 0);
    assert.equal((await jobs(w)).length, 1, "the Fanout job answers for it");
    await w.isolate();
    await w.advance(7_000);
    assert.equal(w.net.to(URL).length, 3);
  }));

Deno.test("J3: a claim lasts while its holder shows signs of life, and 5 s after the last one", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, "hang");
    const other = await w.isolate();
    await w.append(tenant);
    await w.advance(4_500);
    assert.equal(w.net.to(URL).length, 1, "alive: nobody else takes it");
    const [row] = await jobs(w);
    assert.equal(row!.job.by, w.first.system.jobs.instance);
    assert.ok(row!.due <= w.now() + VISIBILITY_MS);
    w.first.crash();
    w.net.at(URL, 200);
    await w.advance(4_000);
    assert.equal(w.net.to(URL).length, 1, "not yet given up");
    await w.advance(3_000);
    assert.deepEqual(w.net.to(URL).map(({ from }) => from), ["isolate 1", other.name]);
    assert.equal((await attempts(w, endpoint.id)).length, 1);
  }));

Deno.test("J2: a claim that was taken over meanwhile records nothing (D1)", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    let answer = (_: number) => {};
    w.net.at(URL, (_, nth) => nth > 1 ? 200 : new Promise((resolve) => answer = resolve));
    await w.append(tenant);
    await w.advance(1_500);
    const other = await w.isolate();
    w.first.kv.beforeCommit = () => new Promise<void>((resolve) => stalled.push(resolve)); // stalls, does not die
    const stalled: (() => void)[] = [];
    w.first.crashed = true; // for `settle`: it does not come to rest
    await w.advance(7_000);
    assert.equal(w.net.to(URL).at(-1)!.from, other.name);
    w.first.kv.beforeCommit = null;
    w.first.crashed = false;
    answer(500);
    stalled.forEach((go) => go());
    await w.settle();
    assert.deepEqual((await attempts(w, endpoint.id)).map((row) => row.status), ["succeeded"]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("J2: when the answer to a record is lost, the rows tell: recorded once, whichever way it went", async () => {
  for (const written of [true, false]) {
    await world(async (w) => {
      w.expected.add("record");
      const tenant = await w.tenant();
      const endpoint = await w.endpoint(tenant, URL);
      const lost = (keys: Deno.KvKey[]) => {
        if (!keys.some((key) => key[0] === "attempt")) return;
        w.first.kv.beforeCommit = w.first.kv.afterCommit = null;
        throw new Error("connection lost");
      };
      if (written) w.first.kv.afterCommit = (_, keys) => lost(keys);
      else w.first.kv.beforeCommit = lost;
      const gate = Promise.withResolvers<number>();
      w.net.at(URL, gate.promise);
      await w.append(tenant, 3);
      await w.settle();
      gate.resolve(200);
      await w.settle();
      assert.equal((await attempts(w, endpoint.id)).length, written ? 3 : 0);
      await w.advance(VISIBILITY_MS + 1_000);
      assert.equal((await attempts(w, endpoint.id)).length, 3);
      assert.equal(w.net.received.length, written ? 3 : 6);
      assert.deepEqual(await jobs(w), []);
    });
  }
});

Deno.test("D4: a store that refuses claims is not asked in a tight loop, and work goes on once it answers", () =>
  world(async (w) => {
    w.expected.add("claim");
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    await w.first.system.flow.pump.stop();
    for (let i = 0; i < 70; i++) await w.append(tenant);
    let refused = 0;
    w.first.kv.beforeCommit = (keys) => {
      if (!keys.some((key) => key[0] === "job")) return;
      refused++;
      throw new Error("disk full");
    };
    w.first.system.flow.pump.start();
    await w.advance(3_000);
    assert.ok(refused > 0 && refused <= 5 * 4 * 8, `${refused} tries in 3 s`);
    w.first.kv.beforeCommit = null;
    await w.advance(2_000);
    assert.equal(w.net.received.length, 70);
    assert.deepEqual(await jobs(w), []);
  }, { hotHandOff: false }));

Deno.test("J1: a graceful stop lets attempts end within its grace and leaves the rest due now", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth <= 2 ? w.later(3_000, 200) : nth <= 4 ? "hang" : 200);
    await w.append(tenant, 10);
    await w.settle();
    assert.equal(w.net.open, 4);
    const stopping = w.first.system.stop(5_000);
    await w.advance(5_500);
    await stopping;
    assert.equal((await attempts(w, endpoint.id)).filter((row) => row.status === "succeeded").length, 2);
    const left = await jobs(w);
    assert.ok(left.every(({ due }) => due <= w.now()), "due now");
    const events = new Set(
      left.flatMap(({ job }) => job.kind === "deliver" ? job.items.map((i) => i.event) : job.events),
    );
    assert.ok(events.size >= 8 && events.size <= 10, "what is done already costs its successor a look");
    assert.deepEqual(await heartbeats(w), []);
    await w.isolate();
    await w.advance(20_000);
    assert.equal((await attempts(w, endpoint.id)).filter((row) => row.status === "succeeded").length, 10);
  }, { maxPerEndpoint: 4 }));

Deno.test("J1: appends during a stop are left for the next instance", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    const running = [w.append(tenant, 2), w.first.system.stop(1_000), w.append(tenant, 3, "other")];
    await w.done(Promise.all(running));
    const before = w.net.received.length;
    await w.isolate();
    await w.advance(1_000);
    assert.equal(new Set(w.net.received.map((r) => r.id)).size, 5);
    assert.ok(before <= 5);
    assert.deepEqual(await jobs(w), []);
  }));

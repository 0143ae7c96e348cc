/** Recording the first attempts of a backlog: one check an endpoint stands for all of its pairs, and a replay is noticed by it (D1). */
import assert from "node:assert/strict";
import { SECOND_MS } from "../../lib/limits.ts";
import { attempts, jobs, pair } from "../support/rows.ts";
import { world } from "../support/world.ts";

const url = (n: number) => `https://hooks${n}.example.com/in`;

Deno.test("record: two hundred results of a backlog that come together are recorded together", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoints = 8, events = 25;
    const gate = Promise.withResolvers<number>();
    for (let i = 0; i < endpoints; i++) {
      await w.endpoint(tenant, url(i));
      w.net.at(url(i), gate.promise);
    }
    await w.append(tenant, events);
    await w.settle();
    assert.equal(w.net.open, endpoints * events);
    let commits = 0;
    w.first.kv.beforeCommit = (keys) =>
      void (commits += keys.some(([family]) => family === "attempt") ? 1 : 0);
    gate.resolve(200);
    await w.settle();
    assert.deepEqual([w.first.recorded.length, await jobs(w)], [endpoints * events, []]);
    assert.ok(commits <= 2, `${commits} commits`);
  }, { hotHandOff: false }));

for (const [first, replay] of [[1_500, 200], [500, 1_700]] as const) {
  Deno.test(`D1: a replay beside the first attempt of an old event: that takes ${first} ms, the replay ${replay}`, () =>
    world(async (w) => {
      const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, url(0));
      w.net.at(url(0), (_, nth) => w.later(nth === 1 ? first : replay, 200));
      await w.first.system.flow.pump.stop();
      const [event] = await w.append(tenant);
      await w.advance(60 * SECOND_MS);
      w.first.system.flow.pump.start();
      await w.advance(200);
      assert.equal(w.net.open, 1);
      const { queued } = await w.done(
        w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }),
      );
      assert.equal(queued, 1);
      await w.advance(5 * SECOND_MS);
      assert.equal(w.net.received.length, 2, "both were under way");
      assert.deepEqual((await attempts(w, endpoint.id)).map(({ attempt }) => attempt), [1]);
      assert.equal((await pair(w, endpoint.id, event!.key))!.ids.length, 1);
      assert.deepEqual(await jobs(w), []);
    }, { hotHandOff: false }));
}

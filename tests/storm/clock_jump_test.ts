/**
 * The wall clock jumps by a day, forward or back, while timers go on as ever: no work is lost, ids and sequences go on, claims of
 * a dead instance are freed, and no endpoint is disabled for it.
 */
import assert from "node:assert/strict";
import { makeKeyCache } from "../../routes/auth.ts";
import { Cache } from "../../actors/cache.ts";
import { type KeyRow, keys } from "../../lib/keys.ts";
import { DAY_MS, KEY_CACHE_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { attempts, endpoints, heartbeats, jobs } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const JUMPS = [["forward", DAY_MS], ["back", -DAY_MS]] as const;

/** As an operator sees it: an endpoint that is still on. */
async function assertEnabled(w: World) {
  assert.deepEqual((await endpoints(w)).map(({ value }) => [value.enabled, value.disabled_reason]), [[
    true,
    null,
  ]]);
  assert.deepEqual(w.isolates.flatMap(({ disabled }) => disabled), []);
}

for (const [way, byMs] of JUMPS) {
  Deno.test(`clock: a day ${way} under way loses nothing, and events go on in order`, () =>
    world(async (w) => {
      const tenant = await w.tenant();
      const endpoint = await w.endpoint(tenant, URL);
      let down = true;
      w.net.at(URL, () => w.later(3_000, down ? 503 : 200));
      const before = await w.append(tenant, 5);
      await w.advance(4_000); // refused: retries lie in the store
      const flying = await w.append(tenant, 5);
      await w.advance(1_000);
      w.skewMs += byMs;
      const after = await w.append(tenant, 5);
      down = false;
      await w.advance(10_000);
      const all = [...before, ...flying, ...after];
      assert.deepEqual(all.map(({ sequence }) => sequence), all.map((_, i) => i + 1), "O2");
      assert.deepEqual(all.map(({ key }) => key), all.map(({ key }) => key).sort(), "ids go on in order");
      const times = all.map(({ occurred_at }) => occurred_at);
      assert.deepEqual(times, [...times].sort((a, b) => a - b));
      const came = (events: typeof all) =>
        events.filter(({ id }) => w.net.to(URL).some((request) => request.id === id)).length;
      assert.equal(came(after), 5, "what is appended after it is delivered at once");
      // Retries come at the time they were given, by the clock as it is now; the sweep looks every minute.
      await w.jump(DAY_MS + 5 * MINUTE_MS);
      await w.done(w.first.system.sweep());
      await w.advance(20_000);
      const done = (await attempts(w, endpoint.id)).filter(({ status }) => status === "succeeded");
      assert.equal(new Set(done.map(({ event_id }) => event_id)).size, 15);
      assert.deepEqual(await jobs(w), []);
      await assertEnabled(w);
    }));

  Deno.test(`clock: claims of an instance that dies and whose heir starts a day ${way} are free within seconds`, () =>
    world(async (w) => {
      const tenant = await w.tenant();
      await w.endpoint(tenant, URL);
      w.net.at(URL, () => (w.first.crash(), 200));
      await w.append(tenant, 3);
      while (w.net.to(URL).length < 3) await w.settle(); // all are signed before the clock jumps
      w.skewMs += byMs;
      w.net.at(URL, 200);
      const heir = await w.isolate();
      await w.advance(8_000);
      const sent = w.net.to(URL).filter(({ from }) => from === heir.name);
      assert.equal(new Set(sent.map(({ id }) => id)).size, 3);
      assert.deepEqual(await jobs(w), []);
      assert.equal((await heartbeats(w)).length, 1);
    }));
}

Deno.test("clock: claims from before it went back are freed when their instance dies long after", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    w.net.at(URL, "hang");
    await w.append(tenant);
    await w.advance(3_000);
    w.skewMs -= DAY_MS;
    await w.advance(3_000); // it lives on, with a claim a day ahead
    w.first.crash();
    w.net.at(URL, 200);
    const heir = await w.isolate();
    await w.advance(7_000);
    assert.equal(w.net.to(URL).filter(({ from }) => from === heir.name).length, 1);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("clock: an instance that lives keeps its claims when the clock goes back under it", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    w.net.at(URL, () => w.later(12_000, 200));
    await w.isolate();
    await w.append(tenant);
    await w.advance(1_500);
    w.skewMs -= DAY_MS;
    await w.advance(15_000);
    assert.equal(w.net.to(URL).length, 1, "sent once");
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("clock: a short outage and a day's jump disable no endpoint", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    let down = true;
    w.net.at(URL, () => down ? 503 : 200);
    await w.append(tenant, 60);
    await w.advance(SECOND_MS);
    for (const byMs of [DAY_MS, -2 * DAY_MS, 2 * DAY_MS]) {
      w.skewMs += byMs;
      await w.append(tenant, 10);
      await w.advance(SECOND_MS);
    }
    await assertEnabled(w);
    down = false;
    await w.jump(DAY_MS);
    await w.advance(5 * SECOND_MS);
    await assertEnabled(w);
  }));

Deno.test("clock: what is cached for seconds is not kept for a day when the clock goes back", async () => {
  let now = 2 * DAY_MS;
  const cache = new Cache<string, number>(() => now, SECOND_MS);
  assert.equal(await cache.get("a", () => Promise.resolve(1)), 1);
  assert.equal(await cache.get("a", () => Promise.resolve(2)), 1);
  now -= DAY_MS;
  assert.equal(await cache.get("a", () => Promise.resolve(3)), 3);

  using kv = await Deno.openKv(":memory:");
  const row = (revoked_at: number | null) => ({ lookup: "k", revoked_at }) as unknown as KeyRow;
  const found = makeKeyCache({ kv, now: () => now });
  await kv.set(keys.apiKey("k"), row(null));
  assert.deepEqual(await found.get("k"), row(null));
  await kv.set(keys.apiKey("k"), row(1)); // revoked by another isolate
  assert.deepEqual(await found.get("k"), row(null), `for ${KEY_CACHE_MS} ms at the most`);
  now -= DAY_MS;
  assert.deepEqual(await found.get("k"), row(1));
});

/** More at once than one commit, one lane or one isolate holds. */
import assert from "node:assert/strict";
import { jobs } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";
import type { TenantRow } from "../../lib/keys.ts";

const url = (n: number) => `https://hooks${n}.example.com/in`;

/** Tenants with an endpoint each. */
async function tenants(w: World, count: number): Promise<TenantRow[]> {
  return await w.done(Promise.all(Array.from({ length: count }, async (_, i) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, url(i));
    return tenant;
  })));
}

/** All receivers answer at once, when the gate opens. */
function gate(w: World, count: number, status: number): () => void {
  const { promise, resolve } = Promise.withResolvers<number>();
  for (let i = 0; i < count; i++) w.net.at(url(i), promise);
  return () => resolve(status);
}

Deno.test("J2: results for more endpoints than a commit has checks are recorded all the same", () =>
  world(async (w) => {
    const all = await tenants(w, 220);
    const open = gate(w, 220, 200);
    await w.done(Promise.all(all.map((tenant) => w.append(tenant))));
    open();
    await w.settle();
    assert.equal(w.first.recorded.length, 220);
    assert.equal(w.net.received.length, 220, "each is sent once");
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("J2: and so are failures, each with a streak and a retry of its own", () =>
  world(async (w) => {
    const all = await tenants(w, 220);
    const open = gate(w, 220, 500);
    await w.done(Promise.all(all.map((tenant) => w.append(tenant))));
    open();
    await w.settle();
    assert.equal(w.first.recorded.length, 220);
    assert.equal(w.net.received.length, 220, "each is sent once");
    assert.equal((await jobs(w)).length, 220);
  }));

Deno.test("J1: a burst to slow endpoints is handed over in parts a commit can hold", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    for (let i = 0; i < 6; i++) {
      await w.endpoint(tenant, url(i));
      w.net.at(url(i), () => w.later(2_400, 200));
    }
    await w.append(tenant, 60); // the lanes learn their pace
    await w.advance(6_000);
    await w.append(tenant, 290);
    for (let i = 0; i < 24; i++) await w.advance(2_500);
    assert.deepEqual(await jobs(w), []);
    assert.equal(w.first.recorded.filter(({ kind }) => kind === "succeeded").length, 6 * 350);
    assert.equal(w.net.received.length, 6 * 350, "no attempt is made twice");
  }));

Deno.test("J1: a backlog whose events match nobody is worked off without a pause", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.first.system.flow.pump.stop();
    for (let i = 0; i < 80; i++) await w.append(tenant, 60);
    assert.equal((await jobs(w)).length, 80);
    w.first.system.flow.pump.start();
    await w.settle();
    assert.deepEqual(await jobs(w), []);
  }, { hotHandOff: false, maxInFlight: 64 }));

Deno.test("J1: a job with more items than a slow endpoint's lane ever takes at once is delivered", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, url(0));
    w.net.at(url(0), () => w.later(14_000, 200));
    await w.append(tenant, 12);
    for (let i = 0; i < 6; i++) await w.advance(14_000); // a lane that has learnt to be slow
    w.net.received.length = 0;
    await w.done(w.first.system.deliveries.replay(endpoint.id, { since: 0, until: w.now() + 1 }));
    for (let i = 0; i < 10; i++) await w.advance(14_000);
    assert.deepEqual(await jobs(w), []);
    assert.equal(w.net.received.length, 12);
  }, { maxPerEndpoint: 4 }));

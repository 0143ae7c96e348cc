/** Deliveries under a suspended partner: parked, polled by nobody, moved back by the reactivation (deviation 3). */
import assert from "node:assert/strict";
import { deleteEndpoint } from "../../actors/endpoints.ts";
import { updatePartner } from "../../actors/tenancy.ts";
import type { PartnerId } from "../../lib/ids.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { attempts, health, jobs, parked, states } from "../support/rows.ts";
import { type Isolate, type World, world } from "../support/world.ts";

const OF_TENANT = "https://tenant.example.com/in";
const OF_PARTNER = "https://partner.example.com/in";
const PLATFORM = "https://platform.example.com/in";

const suspend = (w: World, partner: PartnerId, by: Isolate = w.first) =>
  w.done(updatePartner(by.tenancy, partner, { status: "suspended" }, null));

async function activate(w: World, partner: PartnerId): Promise<void> {
  const { reactivated } = await w.done(updatePartner(w.first.tenancy, partner, { status: "active" }, null));
  assert.equal(reactivated, true);
  await w.done(w.first.system.deliveries.unpark(partner));
}

async function partnerWorld(w: World, events_days?: number) {
  const partner = await w.partner();
  const tenant = await w.tenant(
    partner,
    events_days === undefined ? undefined : { retention: { events_days } },
  );
  const endpoints = [
    await w.endpoint(tenant, OF_TENANT),
    await w.endpoint(partner, OF_PARTNER),
    await w.endpoint(null, PLATFORM),
  ];
  return { partner, tenant, endpoints };
}

Deno.test("j13_held_while_partner_suspended: no request, no attempt, no count; then each once", () =>
  world(async (w) => {
    const { partner, tenant, endpoints } = await partnerWorld(w);
    await suspend(w, partner);
    await w.append(tenant, 3);
    await w.settle();
    assert.equal(w.net.to(PLATFORM).length, 3, "platform endpoints are not held");
    assert.equal((await parked(w)).length, 6);
    assert.deepEqual(await jobs(w), []);
    const reads = w.first.kv.reads;
    await w.jump(3 * DAY_MS);
    await w.first.system.sweep();
    await w.settle();
    assert.ok(w.first.kv.reads - reads < 60, "nothing polls");
    assert.equal(w.net.received.length, 3);
    assert.equal((await parked(w)).length, 6);
    assert.equal((await states(w)).size, 3);
    assert.equal(await health(w, endpoints[0]!.id), null);
    await activate(w, partner);
    assert.equal(w.net.to(OF_TENANT).length, 3);
    assert.equal(w.net.to(OF_PARTNER).length, 3);
    assert.deepEqual((await attempts(w, endpoints[0]!.id)).map((r) => [r.attempt, r.status]), [
      [1, "succeeded"],
      [1, "succeeded"],
      [1, "succeeded"],
    ]);
    assert.deepEqual(await parked(w), []);
    await w.first.system.sweep();
    await w.settle();
    assert.equal(w.net.received.length, 9, "once each");
  }));

Deno.test("j13_held_while_partner_suspended: a retry is held, too, and keeps its number", () =>
  world(async (w) => {
    const { partner, tenant, endpoints } = await partnerWorld(w);
    w.net.at(OF_TENANT, 500);
    await w.append(tenant);
    await w.settle();
    await suspend(w, partner);
    await w.jump(40_000);
    assert.equal((await parked(w))[0]!.items[0]!.attempt, 2);
    w.net.at(OF_TENANT, 200);
    await activate(w, partner);
    assert.deepEqual((await attempts(w, endpoints[0]!.id)).map((r) => [r.attempt, r.status]), [
      [1, "failed"],
      [2, "succeeded"],
    ]);
  }));

Deno.test("j13_held_while_partner_suspended: dead event_unavailable once past the window", async () => {
  for (const days of [undefined, 7]) {
    await world(async (w) => {
      const { partner, tenant, endpoints } = await partnerWorld(w, days);
      await suspend(w, partner);
      await w.append(tenant);
      await w.settle();
      const window = (days ?? 30) * DAY_MS;
      await w.jump(window - 60_000);
      await w.first.system.sweep();
      await w.settle();
      assert.equal((await parked(w)).length, 2);
      await w.jump(120_000);
      await w.first.system.sweep();
      await w.settle();
      assert.deepEqual(await parked(w), []);
      const [row] = await attempts(w, endpoints[0]!.id);
      assert.deepEqual([row!.status, row!.error], ["dead", "event_unavailable"]);
      assert.equal(w.net.to(OF_TENANT).length, 0);
    });
  }
});

Deno.test("J1: what is parked just after the reactivation is found by the sweep", () =>
  world(async (w) => {
    const { partner, tenant } = await partnerWorld(w);
    await suspend(w, partner);
    // The record that parks is slow; the partner is active again before it is written.
    const gate = Promise.withResolvers<void>(), reached = Promise.withResolvers<void>();
    w.first.kv.beforeCommit = (keys) => {
      if (!keys.some((key) => key[0] === "parked")) return;
      reached.resolve();
      return gate.promise;
    };
    const other = await w.isolate();
    w.first.crashed = true; // for `settle`: it is waiting
    await w.append(tenant);
    await reached.promise;
    await w.done(updatePartner(other.tenancy, partner, { status: "active" }, null));
    await w.done(other.system.deliveries.unpark(partner));
    w.first.crashed = false;
    gate.resolve();
    await w.settle();
    assert.equal((await parked(w)).length, 2);
    await other.system.sweep();
    await w.settle();
    assert.deepEqual(await parked(w), []);
    assert.deepEqual([w.net.to(OF_TENANT).length, w.net.to(OF_PARTNER).length], [1, 1]);
  }));

Deno.test("a suspension by another isolate holds the very next delivery, and a deleted endpoint's parked rows go", () =>
  world(async (w) => {
    const { partner, tenant, endpoints } = await partnerWorld(w);
    const other = await w.isolate();
    await w.append(tenant);
    await w.settle();
    await suspend(w, partner, other);
    await w.append(tenant);
    await w.settle();
    assert.deepEqual([w.net.to(OF_TENANT).length, (await parked(w)).length], [1, 2]);
    await w.done(deleteEndpoint(w.first.endpoints, endpoints[0]!.id, null));
    await w.first.system.sweep();
    await w.settle();
    assert.equal((await parked(w)).length, 1);
    assert.deepEqual(await jobs(w), []);
  }));

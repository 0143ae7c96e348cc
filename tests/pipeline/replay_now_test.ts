/** A replay waits for a first attempt under way, and for nothing else. */
import assert from "node:assert/strict";
import { updateEndpoint } from "../../actors/endpoints.ts";
import type { EventId } from "../../lib/ids.ts";
import { attempts, jobs } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const OPS = "https://ops.example.com/in";

Deno.test("replay: an event of a moment ago that was never tried goes out at once", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const edit = (enabled: boolean) =>
      w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled }, null));
    await edit(false);
    const [event] = await w.append(tenant);
    await w.settle();
    await edit(true);
    w.time.now += 100;
    const { queued } = await w.done(
      w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }),
    );
    assert.deepEqual([queued, w.net.received.length], [1, 1]);
    const again = await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    assert.deepEqual([again.queued, w.net.received.length], [1, 2]);
    assert.deepEqual((await attempts(w, endpoint.id)).map((row) => row.attempt), [1, 2]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("replay: one whose first attempt is under way waits for it", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth === 1 ? w.later(1_000, 200) : 200);
    const [event] = await w.append(tenant);
    await w.advance(100);
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    assert.equal(w.net.received.length, 1);
    await w.advance(20_000);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => [row.attempt, row.status]), [[1, "succeeded"]]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("D1: a replay keeps off the first attempt of a webhook.disabled, however old its cause is", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    const ops = await w.endpoint(null, OPS);
    w.net.at(URL, () => w.later(14_500, 410)); // the event says when this attempt began
    w.net.at(OPS, (_, nth) => w.later(nth === 2 ? 1_500 : 50, 200)); // the first of them is the tenant's own event
    await w.append(tenant, 1);
    await w.advance(14_600);
    const told = w.net.to(OPS).filter(({ body }) => body.includes("webhook.disabled"));
    assert.equal(told.length, 1, "its first attempt is under way");
    await w.done(w.first.system.deliveries.replay(ops.id, { event_ids: [told[0]!.id as EventId] }));
    await w.advance(30_000);
    const rows = (await attempts(w, ops.id)).filter(({ event_type }) => event_type === "webhook.disabled");
    assert.deepEqual(rows.map(({ attempt }) => attempt), [1], "the replay finds it done");
  }));

/** Faults the simulator found, each as the shortest scenario that shows it. */
import assert from "node:assert/strict";
import { makeDirectory } from "../../actors/directory.ts";
import { unpark } from "../../actors/replay.ts";
import type { Committer } from "../../lib/edge/committer.ts";
import { makeGuardedHttp } from "../../lib/edge/http.ts";
import { makeJobs } from "../../lib/edge/jobs.ts";
import type { EndpointId, JobId, PartnerId } from "../../lib/ids.ts";
import { type DeliverJob, keys } from "../../lib/keys.ts";
import { attempts } from "../support/rows.ts";
import { world } from "../support/world.ts";
import { DAY_MS, DEADLINE_MS, SECOND_MS } from "../../lib/limits.ts";

Deno.test("D4: a clock that jumps during the look-up uses up no deadline", async () => {
  let wall = 0;
  let timeoutMs = NaN;
  const http = makeGuardedHttp({
    rules: { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set() },
    resolver: {
      resolve() {
        wall += DAY_MS;
        return Promise.resolve({ a: ["93.184.216.34"], aaaa: [] });
      },
    },
    dialer: {
      dial(request) {
        timeoutMs = request.timeoutMs;
        return Promise.resolve({ kind: "response", status: 200, retryAfter: null, body: new Uint8Array(0) });
      },
      close: () => Promise.resolve(),
    },
    timers: { after: () => 0 as never, cancel() {} },
    now: () => wall,
    clock: () => 0,
  });
  const sent = await http.send({ url: "https://hooks.example.com/", headers: {}, body: new Uint8Array(0) });
  assert.equal(timeoutMs, DEADLINE_MS);
  assert.equal(sent.durationMs, 0);
});

Deno.test("D1: a clock that goes on between an event and its commit: its first attempt is not on record behind a replay's", () =>
  world(async (w) => {
    const url = "https://hooks.example.com/in", gate = Promise.withResolvers<number>();
    const tenant = await w.tenant(), { id } = await w.endpoint(tenant, url);
    w.net.at(url, (_, nth) => nth === 1 ? gate.promise : 200);
    w.first.kv.beforeCommit = () => {
      w.first.kv.beforeCommit = null;
      w.time.now += 20 * SECOND_MS;
    };
    const [event] = await w.append(tenant);
    await w.settle();
    await w.done(w.first.system.deliveries.replay(id, { event_ids: [event!.id] }));
    await w.settle();
    assert.deepEqual((await attempts(w, id)).map((row) => row.attempt), [1], "the replay's");
    gate.resolve(200);
    await w.settle();
    assert.equal(w.net.received.length, 2);
    assert.deepEqual((await attempts(w, id)).map((row) => row.attempt), [1]);
  }));

const failing: Committer = {
  commit: () => Promise.reject(new Error("the store is away")),
  idle: () => Promise.resolve(),
};

Deno.test("J1: a store that goes away while parked deliveries are moved kills no process", async () => {
  const kv = await Deno.openKv(":memory:");
  const partner = "ptn_01" as PartnerId;
  const job: DeliverJob = { v: 1, kind: "deliver", endpoint: "whk_01" as EndpointId, items: [] };
  for (const id of ["a", "b"]) await kv.set(keys.parked(partner, id as JobId), job);
  const jobs = makeJobs({ now: () => 0, ulid: () => "x", instance: "i", shards: 1, doorbell: false });
  let asked = 0;
  const wanted = async () => {
    await new Promise((resolve) => setTimeout(resolve)); // as a read of the store does
    if (asked++ > 0) throw new Error("a read failed");
    return true;
  };
  const d = { kv, committer: failing, jobs, now: () => 0, poke() {} };
  await assert.rejects(unpark(keys.parkedOf(partner), d, wanted), /a read failed/); // and nothing else is left rejecting
  kv.close();
});

Deno.test("D1: a second replay keeps off a first attempt under way, too", () =>
  world(async (w) => {
    const url = "https://hooks.example.com/in";
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, url);
    w.net.at(url, (_, nth) => nth === 1 ? w.later(500, 500) : 200);
    const [event] = await w.append(tenant);
    await w.advance(250);
    for (let i = 0; i < 2; i++) {
      await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
      await w.settle();
    }
    await w.advance(1_000);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((row) => [row.attempt, row.status]), [[1, "failed"]]);
  }));

Deno.test("D2: a clock that steps back keeps no endpoint fresh", async () => {
  const kv = await Deno.openKv(":memory:");
  let wall = 10_000;
  let mono = 0;
  const directory = makeDirectory({ kv, now: () => wall, clock: () => mono });
  const id = "whk_01" as EndpointId;
  const row = { id, tenant_id: null, partner_id: null, enabled: true, deleted_at: null };
  await kv.set(keys.endpoint(id), row);
  await directory.refresh();
  const target = (await directory.endpoint(id))!;
  wall -= 5_000;
  await kv.set(keys.endpoint(id), { ...row, enabled: false }); // by another isolate
  await kv.set(keys.endpointsRevision(), "1");
  wall += 100, mono += 100;
  assert.equal((await directory.current(target))?.row.enabled, false);
  kv.close();
});

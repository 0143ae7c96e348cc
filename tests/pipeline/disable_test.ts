/** Endpoints that are switched off, by themselves or by somebody, and what still waits for them (D2, auto-disable). */
import assert from "node:assert/strict";
import { deleteEndpoint, updateEndpoint } from "../../actors/endpoints.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import type { EndpointId } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { attempts, endpointRow, health, jobs, pendingPlatform } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const OPS = "https://ops.example.com/in";

const disabledEvents = (w: World, url: string) =>
  w.net.to(url).map((r) => JSON.parse(r.body)).filter((body) => body.type === "webhook.disabled");

Deno.test("disable_on_410: at once, told to other platform endpoints, never to a tenant or to itself", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    await w.endpoint(tenant, "https://sibling.example.com/in");
    await w.endpoint(null, OPS);
    w.net.at(URL, 410);
    await w.append(tenant, 5);
    await w.settle();
    const row = await endpointRow(w, endpoint.id);
    assert.deepEqual([row.enabled, row.disabled_reason], [false, "gone"]);
    assert.deepEqual(
      w.first.disabled,
      [{ endpoint: endpoint.id, reason: "gone" }],
      "once, however many answered so",
    );
    const [event] = disabledEvents(w, OPS);
    assert.deepEqual(event.data, { webhook_id: endpoint.id, reason: "gone" });
    assert.deepEqual([event.sequence, event.tenant_id], [null, tenant.id]);
    assert.equal(disabledEvents(w, OPS).length, 1);
    assert.equal(disabledEvents(w, "https://sibling.example.com/in").length, 0);
    assert.deepEqual(await pendingPlatform(w), []);
    const dialled = w.net.to(URL).length; // those under way before the first answer was recorded
    for (let i = 0; i < 4; i++) await w.jump(40_000);
    const rows = await attempts(w, endpoint.id);
    assert.equal(rows.filter((r) => r.error === "endpoint_disabled" && r.status === "dead").length, 5);
    assert.equal(w.net.to(URL).length, dialled, "D2: the retries are not dialled");
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("disable_on_410: a disabled platform endpoint is told to the other one only", () =>
  world(async (w) => {
    const endpoint = await w.endpoint(null, URL);
    await w.endpoint(null, OPS);
    w.net.at(URL, 410);
    await w.append(await w.tenant());
    await w.settle();
    assert.equal((await endpointRow(w, endpoint.id)).enabled, false);
    assert.equal(disabledEvents(w, OPS)[0].tenant_id, null);
    assert.equal(disabledEvents(w, URL).length, 0);
  }));

/** Fails `count` attempts over `hours`. */
async function failFor(w: World, count: number, hours: number): Promise<EndpointId> {
  const tenant = await w.tenant();
  const endpoint = await w.endpoint(tenant, URL, { events: ["domain.created"] });
  await w.endpoint(null, OPS, { events: ["webhook.disabled"] });
  w.net.at(URL, 500);
  await w.store.set(keys.health(endpoint.id), {
    consecutive_failures: count - 1,
    failing_since: w.now() - hours * HOUR_MS,
    last_success_at: null,
    last_failure_at: w.now(),
  });
  await w.append(tenant, [{ type: "domain.created" }]);
  await w.settle();
  return endpoint.id;
}

Deno.test("disable_after_100_failures_24h: 100 within 24 h do not, 99 over 25 h do not, 100 over 24 h do", async () => {
  const table = [[100, 23.9, true], [99, 25, true], [100, 24, false], [140, 30, false]] as const;
  for (const [count, hours, enabled] of table) {
    await world(async (w) => {
      const endpoint = await failFor(w, count, hours);
      assert.equal((await health(w, endpoint))!.consecutive_failures, count);
      const row = await endpointRow(w, endpoint);
      assert.deepEqual([row.enabled, row.disabled_reason], [enabled, enabled ? null : "failing"]);
      assert.equal(disabledEvents(w, OPS).length, enabled ? 0 : 1);
    });
  }
});

Deno.test("disable_after_100_failures_24h: one success starts the streak anew, enabling resets it", () =>
  world(async (w) => {
    const endpoint = await failFor(w, 99, 30);
    w.net.at(URL, 200);
    await w.jump(40_000);
    const streak = (await health(w, endpoint))!;
    assert.deepEqual([streak.consecutive_failures, streak.failing_since], [0, null]);
    assert.equal(streak.last_success_at! >= w.now() - 40_000, true);
    const again = await health(w, endpoint);
    await w.store.set(keys.health(endpoint), { ...again, consecutive_failures: 150, failing_since: 1 });
    await w.done(updateEndpoint(w.first.endpoints, endpoint, { enabled: true }, null));
    assert.equal((await health(w, endpoint))!.consecutive_failures, 0);
  }));

Deno.test("enabling again resets the counter in every isolate: the next failure is the first", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL), other = await w.isolate();
    w.net.at(URL, 500);
    await w.append(tenant, 3);
    await w.settle();
    await w.append(tenant, 2, "b", other);
    await w.settle();
    assert.equal((await health(w, endpoint.id))!.consecutive_failures, 5, "the streak is shared");
    await w.done(updateEndpoint(other.endpoints, endpoint.id, { enabled: false }, null));
    assert.equal((await endpointRow(w, endpoint.id)).disabled_reason, "manual");
    await w.done(updateEndpoint(other.endpoints, endpoint.id, { enabled: true }, null));
    assert.equal((await endpointRow(w, endpoint.id)).disabled_reason, null);
    w.time.now += 100;
    await w.append(tenant, 1);
    await w.settle();
    assert.equal((await health(w, endpoint.id))!.consecutive_failures, 1);
    w.net.at(URL, 200);
    await w.append(tenant, 1, "b", other);
    await w.settle();
    assert.equal((await health(w, endpoint.id))!.consecutive_failures, 0);
  }));

Deno.test("D2: a claimed job of an endpoint disabled or deleted meanwhile is not dialled, whoever did it", async () => {
  for (const elsewhere of [false, true]) {
    for (const remove of [false, true]) {
      await world(async (w) => {
        const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
        const by = elsewhere ? await w.isolate() : w.first;
        w.net.at(URL, () => w.later(500, 200));
        await w.append(tenant, 3); // one is under way, two wait in memory behind it, claimed
        await w.advance(100);
        assert.equal(w.net.to(URL).length, 1);
        await w.done(
          remove
            ? deleteEndpoint(by.endpoints, endpoint.id, null)
            : updateEndpoint(by.endpoints, endpoint.id, { enabled: false }, null).then(() => {}),
        );
        await w.advance(5_000);
        assert.equal(w.net.to(URL).length, 1);
        const rows = await attempts(w, endpoint.id);
        assert.equal(rows.filter((r) => r.error === "endpoint_disabled").length, remove ? 0 : 2);
        assert.deepEqual(await jobs(w), [], "nothing loops");
      }, { maxPerEndpoint: 1 });
    }
  }
});

Deno.test("D2: an endpoint disabled while its name is looked up is not dialled", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const by = await w.isolate();
    const found = { a: ["93.184.216.34"], aaaa: [] };
    w.net.name("hooks.example.com", () => w.later(3_000, 0).then(() => found));
    await w.append(tenant, 1);
    await w.advance(1_000);
    await w.done(updateEndpoint(by.endpoints, endpoint.id, { enabled: false }, null));
    await w.advance(5_000);
    assert.equal(w.net.to(URL).length, 0);
    const [row] = await attempts(w, endpoint.id);
    assert.deepEqual([row!.status, row!.error], ["dead", "endpoint_disabled"]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("a deleted endpoint's retries end, and its log stays", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    await w.append(tenant, 30);
    await w.settle();
    await w.done(deleteEndpoint(w.first.endpoints, endpoint.id, null));
    for (let i = 0; i < 3; i++) await w.jump(40_000);
    assert.equal(w.net.to(URL).length, 30);
    assert.equal((await attempts(w, endpoint.id)).length, 30);
    assert.deepEqual(await jobs(w), []);
  }));

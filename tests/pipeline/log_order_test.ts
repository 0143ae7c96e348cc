/** The delivery log's order (reference §1, "Lists": newest first by `created_at` and id, to within 3 s for first attempts). */
import assert from "node:assert/strict";
import { ulidTime } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { MAX_FIRST_LAG_MS } from "../../lib/limits.ts";
import { allAttempts, pairs } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const OPS = "https://ops.example.com/in";

Deno.test("lists: an attempt stands in the log where it began, however long it took", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    const took = [9_000, 10, 1_500, 4_000, 20];
    w.net.at(URL, (_, nth) => w.later(took[nth - 1]!, 200));
    for (const _ of took) {
      await w.append(tenant);
      await w.advance(5);
    }
    await w.advance(10_000);
    const rows = (await allAttempts(w)).map(({ value }) => value); // in the order of their ids
    assert.equal(rows.length, took.length);
    assert.deepEqual(rows.map((row) => row.created_at), rows.map((row) => row.created_at).toSorted());
    assert.deepEqual(rows.map((row) => ulidTime(row.id)), rows.map((row) => row.created_at));
  }));

Deno.test("lists: an attempt that had to wait stands at most 3 s before it began, and only a first one", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => w.later(700, nth % 3 === 0 ? 500 : 200));
    await w.append(tenant, 12);
    await w.advance(60_000);
    w.net.at(URL, 200);
    await w.done(w.first.system.deliveries.test(endpoint.id));
    const rows = (await allAttempts(w)).map(({ value }) => value);
    const lags = rows.map((row) => row.created_at - ulidTime(row.id));
    assert.ok(Math.max(...lags) > 500 && Math.max(...lags) <= MAX_FIRST_LAG_MS, String(lags));
    assert.ok(rows.every((row, i) => lags[i] === 0 || row.attempt === 1));
  }, { maxPerEndpoint: 1 }));

Deno.test("lists: the first attempt for an event whose cause is long ago stands where it began, and its pair has a row", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    const ops = await w.endpoint(null, OPS);
    w.net.at(URL, () => w.later(14_500, 410)); // webhook.disabled says when this attempt began
    await w.append(tenant);
    await w.advance(20_000);
    const rows = (await allAttempts(w)).map(({ value }) => value);
    const told = rows.filter(({ event_type }) => event_type === "webhook.disabled");
    assert.deepEqual(told.map((row) => [row.attempt, row.status]), [[1, "succeeded"]]);
    assert.equal(ulidTime(told[0]!.id), told[0]!.created_at);
    const key = keys.pair(ops.id, told[0]!.event);
    assert.ok((await pairs(w)).some((row) => row.key.join(" ") === key.join(" ")));
  }));

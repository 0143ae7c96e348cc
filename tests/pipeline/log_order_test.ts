/** The delivery log's order (reference §1, "Lists": newest first by `created_at` and id). */
import assert from "node:assert/strict";
import { ulidTime } from "../../lib/ids.ts";
import { attempts } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

Deno.test("lists: an attempt stands in the log where it began, however long it took", () =>
  world(async (w) => {
    const tenant = await w.tenant(), endpoint = await w.endpoint(tenant, URL);
    const took = [9_000, 10, 1_500, 4_000, 20];
    w.net.at(URL, (_, nth) => w.later(took[nth - 1]!, 200));
    for (const _ of took) {
      await w.append(tenant);
      await w.advance(5);
    }
    await w.advance(10_000);
    const rows = await attempts(w, endpoint.id); // in the order of their ids
    assert.equal(rows.length, took.length);
    assert.deepEqual(rows.map((row) => row.created_at), rows.map((row) => row.created_at).toSorted());
    assert.deepEqual(rows.map((row) => ulidTime(row.id)), rows.map((row) => row.created_at));
    w.net.at(URL, 200);
    const test = await w.done(w.first.system.deliveries.test(endpoint.id));
    assert.equal(ulidTime(test.id), test.created_at);
  }));

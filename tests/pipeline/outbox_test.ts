/** From an append to a signed delivery, and what a crash in between leaves behind. */
import assert from "node:assert/strict";
import { attempts, jobs, pair } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

Deno.test("O1: an appended event is delivered once, recorded once, and its job row is gone", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    const [event] = await w.append(tenant, [{ data: { amount: 3 } }]);
    await w.settle();
    const [request] = w.net.to(URL);
    assert.equal(request!.id, event!.id);
    const envelope = JSON.parse(request!.body);
    assert.deepEqual([envelope.id, envelope.sequence, envelope.data], [event!.id, 1, { amount: 3 }]);
    const [row] = await attempts(w, endpoint.id);
    assert.deepEqual([row!.status, row!.attempt, row!.http_status], ["succeeded", 1, 200]);
    assert.equal((await pair(w, endpoint.id, event!.key))!.succeeded, true);
    assert.deepEqual(await jobs(w), []);
    assert.equal(w.net.received.length, 1);
  }));

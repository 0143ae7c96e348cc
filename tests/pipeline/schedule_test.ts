/** When the next attempt comes, and what ends a delivery (reference §4). */
import assert from "node:assert/strict";
import { DELAYS_MS } from "../../lib/schedule.ts";
import { response } from "../support/network.ts";
import { attempts, endpointRow, health, jobs, pair } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

/** Leaps to just past the due time of the only pending job. */
async function toNext(w: World): Promise<void> {
  const [row] = await jobs(w);
  assert.ok(row, "a job row answers for the next attempt");
  await w.jump(row.due - w.now() + 1);
}

Deno.test("j4_retry_schedule: 13 attempts at the delays within 10 %, in whole seconds, then dead and never again", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth % 2 ? 500 : "hang");
    const [event] = await w.append(tenant);
    await w.settle();
    for (let k = 1; k <= 13; k++) {
      if (w.net.open > 0) await w.advance(16_000);
      const rows = await attempts(w, endpoint.id);
      assert.equal(rows.length, k);
      const row = rows.at(-1)!;
      assert.deepEqual([row.attempt, row.first_attempt], [k, 1]);
      assert.equal(row.error, k % 2 ? "status_5xx" : "timeout");
      if (k === 13) break;
      assert.equal(row.status, "failed");
      const [job] = await jobs(w);
      const delay = row.next_attempt_at! - row.created_at - row.duration_ms;
      assert.equal(delay % 1_000, 0);
      assert.ok(
        delay >= 0.9 * DELAYS_MS[k - 1]! - 500 && delay <= 1.1 * DELAYS_MS[k - 1]! + 500,
        `${k}: ${delay}`,
      );
      assert.ok(delay <= 86_400_000);
      assert.equal(job!.due, row.next_attempt_at);
      await toNext(w);
    }
    assert.deepEqual((await attempts(w, endpoint.id)).map((r) => r.status), [
      ...Array(12).fill("failed"),
      "dead",
    ]);
    const last = (await attempts(w, endpoint.id)).at(-1)!;
    assert.equal(last.next_attempt_at, null);
    assert.deepEqual(await jobs(w), [], "the last retry was picked up, and nothing is left");
    assert.equal((await pair(w, endpoint.id, event!.key))!.dead, true);
    assert.equal((await health(w, endpoint.id))!.consecutive_failures, 13);
    await w.jump(100 * 3_600_000);
    assert.equal(w.net.received.length, 13);
    assert.equal(w.first.recorded.filter(({ dead }) => dead).length, 1);
    assert.equal((await endpointRow(w, endpoint.id)).enabled, true);
  }));

Deno.test("j4_retry_schedule: a replay starts the schedule anew, 13 attempts from its first", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [event] = await w.append(tenant);
    await w.settle();
    for (let k = 1; k < 13; k++) await toNext(w);
    assert.equal((await attempts(w, endpoint.id)).at(-1)!.status, "dead");
    await w.done(w.first.system.deliveries.replay(endpoint.id, { event_ids: [event!.id] }));
    for (let k = 1; k < 13; k++) await toNext(w);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual([rows.length, rows.at(-1)!.attempt, rows.at(-1)!.first_attempt], [26, 26, 14]);
    assert.deepEqual(rows.filter((r) => r.status === "dead").map((r) => r.attempt), [13, 26]);
    assert.deepEqual(await jobs(w), []);
  }));

Deno.test("Retry-After: never earlier than the receiver asks on 429 and 503, at most 24 h, and only there", () =>
  world(async (w) => {
    const cases = [
      { answer: response(429, "300"), atLeast: 300_000, atMost: 300_200 },
      { answer: response(503, "5"), atLeast: 27_000, atMost: 33_200 },
      { answer: response(503, "999999999"), atLeast: 86_400_000, atMost: 86_400_200 },
      { answer: response(503, new Date(w.now() + 600_000).toUTCString()), atLeast: 599_000, atMost: 601_200 },
      { answer: response(500, "3600"), atLeast: 27_000, atMost: 33_200 },
    ];
    for (const [i, { answer, atLeast, atMost }] of cases.entries()) {
      const url = `https://hooks${i}.example.com/in`, tenant = await w.tenant();
      const endpoint = await w.endpoint(tenant, url);
      w.net.at(url, answer);
      await w.append(tenant);
      await w.settle();
      const [row] = await attempts(w, endpoint.id);
      const delay = row!.next_attempt_at! - w.now();
      assert.ok(delay >= atLeast && delay <= atMost, `case ${i}: ${delay}`);
    }
    for (const { due, job } of await jobs(w)) {
      if (job.kind !== "deliver") continue;
      const [row] = await attempts(w, job.endpoint);
      assert.ok(due >= row!.next_attempt_at!, "the job is due no earlier than the row says");
    }
  }));

Deno.test("a name that does not resolve is retried like any failure, and delivered once it does", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.name("hooks.example.com", () => ({ a: [], aaaa: [] }));
    await w.append(tenant);
    await w.settle();
    await toNext(w);
    w.net.name("hooks.example.com", () => ({ a: ["93.184.216.34"], aaaa: [] }));
    await toNext(w);
    const rows = await attempts(w, endpoint.id);
    assert.deepEqual(rows.map((r) => r.error ?? r.status), ["dns", "dns", "succeeded"]);
    assert.equal(w.net.received.length, 1);
  }));

Deno.test("D3: a name that turns to an inner address is not dialled, and the attempt is charged", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.name("hooks.example.com", () => ({ a: ["93.184.216.34", "10.0.0.1"], aaaa: [] }));
    await w.append(tenant);
    await w.settle();
    assert.equal((await attempts(w, endpoint.id))[0]!.error, "ssrf_blocked");
    assert.equal(w.net.received.length, 0);
  }));

Deno.test("D4: a fault on our side uses no attempt and counts no failure", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    const down = () => {
      throw Object.assign(new Error("no resolver"), { fault: "ours" });
    };
    w.net.name("hooks.example.com", down);
    await w.append(tenant);
    await w.settle();
    for (let i = 0; i < 20; i++) await toNext(w);
    assert.deepEqual(await attempts(w, endpoint.id), []);
    assert.equal(await health(w, endpoint.id), null);
    const answer = { a: ["93.184.216.34"], aaaa: [] };
    w.net.name("hooks.example.com", () => answer);
    w.net.at(URL, (_, nth) => nth === 1 ? { kind: "failed", error: "connect", detail: "EMFILE" } : 200);
    await toNext(w);
    assert.deepEqual(await attempts(w, endpoint.id), []);
    await toNext(w);
    assert.deepEqual((await attempts(w, endpoint.id)).map((r) => [r.attempt, r.status]), [[1, "succeeded"]]);
  }));

Deno.test("secret_unavailable: a secret that does not open fails the attempt and is retried", () =>
  world(async (w) => {
    w.expected.add("secret");
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    const row = await endpointRow(w, endpoint.id);
    await w.store.set(["endpoint", endpoint.id], {
      ...row,
      secret_enc: row.secret_enc.slice(0, -4) + "AAAA",
    });
    await w.append(tenant);
    await w.settle();
    const [first] = await attempts(w, endpoint.id);
    assert.deepEqual([first!.error, first!.http_status, first!.status], [
      "secret_unavailable",
      null,
      "failed",
    ]);
    assert.equal(w.net.received.length, 0);
    assert.equal((await jobs(w)).length, 1);
  }));

/** Retention: what leaves, when, with all of its rows, and what stays. */
import assert from "node:assert/strict";
import { deleteEndpoint } from "../../actors/endpoints.ts";
import type { Appended } from "../../actors/owner.ts";
import { retain } from "../../actors/retention.ts";
import type { EventId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { allAttempts, attempts, pair } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const days = (events_days: number) => ({ retention: { events_days } });

/** Rows of the store by family, but what is not an event's or a delivery's. */
async function families(w: World): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const { key } of w.store.list({ prefix: [] })) {
    const family = String(key[0]);
    if (/^(ev|pair|attempt)/.test(family)) counts[family] = (counts[family] ?? 0) + 1;
  }
  return counts;
}

const sweep = (w: World) => w.done(w.first.system.sweep());

Deno.test("retention: an event leaves with every row it was written with, and not a moment before its day", () =>
  world(async (w) => {
    const tenant = await w.tenant(await w.partner(), days(2));
    const id = `evt_${"0".repeat(25)}1` as EventId;
    const [appended] = await w.append(tenant, [{ event_id: id, data: { text: "x".repeat(100_000) } }]);
    const mailbox: OwnerRef = { kind: "mailbox", tenant: tenant.id, id: w.first.ids.next("identity") };
    const message = w.first.ids.next("message");
    const data = { message_id: message, recipient: "a@example.com", smtp_code: 250 };
    await w.done(
      w.first.system.owners.run(mailbox, (tx) => tx.append({ type: "message.delivered", data, message })),
    );
    assert.deepEqual(await families(w), {
      ev: 2,
      ev_alias: 1,
      ev_chunk: 2,
      ev_message: 1,
      ev_partner: 2,
      ev_tenant: 2,
    });
    w.time.now = appended!.occurred_at + 2 * DAY_MS;
    await sweep(w);
    assert.equal((await families(w)).ev, 2);
    await w.jump(HOUR_MS + 1);
    await sweep(w);
    assert.deepEqual(await families(w), {});
  }));

Deno.test("retention: each tenant's own days; platform events without a tenant leave after 30", () =>
  world(async (w) => {
    const [short, long] = [await w.tenant(null, days(1)), await w.tenant(null, days(60))];
    await w.append(short);
    const [kept] = await w.append(long);
    await w.settle(); // fanned out before there is an endpoint: of the same millisecond, it would get them, too
    const { id } = await w.endpoint(null, URL);
    await w.done(w.first.system.deliveries.test(id));
    await w.jump(29 * DAY_MS);
    await sweep(w);
    assert.deepEqual(await families(w), { attempt: 1, ev: 2, ev_platform: 1, ev_tenant: 1, pair: 1 });
    await w.jump(3 * DAY_MS);
    await sweep(w);
    assert.deepEqual(await families(w), { ev: 1, ev_tenant: 1 });
    assert.notEqual((await w.store.get(keys.event(kept!.key))).value, null);
  }));

Deno.test("retention: what was tried leaves a day after its event, attempts and pair together", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(1));
    const { id } = await w.endpoint(tenant, URL);
    w.net.at(URL, (_, nth) => nth === 1 ? 500 : 200);
    await w.append(tenant);
    await w.advance(MINUTE_MS);
    assert.equal((await attempts(w, id)).length, 2);
    await w.jump(DAY_MS + HOUR_MS);
    await sweep(w);
    assert.deepEqual(await families(w), { attempt: 2, pair: 1 });
    await w.jump(DAY_MS);
    await sweep(w);
    assert.deepEqual(await families(w), {});
  }));

Deno.test("retention: a first attempt that is the pair's state itself leaves as a pair does; one that was replayed, with its pair", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(2));
    const { id } = await w.endpoint(tenant, URL);
    const made = await w.append(tenant, 60);
    await w.settle();
    await w.done(w.first.system.deliveries.replay(id, { event_ids: [made[7]!.id] }));
    await w.jump(2 * DAY_MS + HOUR_MS);
    const [kept] = await w.append(tenant);
    await sweep(w);
    const { attempt, ...others } = await families(w);
    assert.deepEqual([others, (await attempts(w, id)).length], [{ ev: 1, ev_tenant: 1, pair: 1 }, 62]);
    assert.ok(attempt! < 62, `${attempt} rows: first attempts share some`);
    await w.jump(DAY_MS);
    await sweep(w);
    await w.jump(HOUR_MS + 1);
    await sweep(w); // the block that had the replayed one leaves behind the pair
    assert.deepEqual(await families(w), { attempt: 1, ev: 1, ev_tenant: 1 });
    assert.deepEqual((await attempts(w, id)).map(({ event }) => event), [kept!.key]);
  }));

for (const n of [1, 3]) { // a row of its own, or a block
  Deno.test(`retention: attempts of a pair that still waits stay with it, its first success too, one of ${n}`, () =>
    world(async (w) => {
      const tenant = await w.tenant(null, days(1));
      const { id } = await w.endpoint(tenant, URL);
      const [event] = await w.append(tenant, n);
      await w.settle();
      w.net.at(URL, 500);
      await w.jump(DAY_MS - HOUR_MS);
      await w.done(w.first.system.deliveries.replay(id, { event_ids: [event!.id] }));
      for (let i = 0; i < 3; i++) await w.jump(10 * HOUR_MS);
      await sweep(w);
      const open = await pair(w, id, event!.key);
      assert.equal(open!.status, "failed");
      const its = async () => (await attempts(w, id)).filter((row) => row.event === event!.key);
      assert.deepEqual((await its()).map((row) => row.id), open!.ids);
      for (let i = 0; i < 10; i++) await w.jump(DAY_MS);
      await sweep(w);
      await w.jump(HOUR_MS);
      await sweep(w);
      assert.deepEqual(await families(w), {}, "and leave with it");
    }));
}

Deno.test("retention: a delivery still open when its event leaves ends dead with event_unavailable", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(1));
    const { id } = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [event] = await w.append(tenant);
    for (let i = 0; i < 9; i++) await w.jump(13 * HOUR_MS);
    const tried = (await attempts(w, id)).length;
    assert.ok(tried > 5 && tried < 13);
    await sweep(w);
    assert.equal((await families(w)).ev, undefined);
    const open = await pair(w, id, event!.key);
    assert.equal(open?.status, "failed", "an open pair waits for its last attempt");
    await w.jump(DAY_MS);
    const last = (await attempts(w, id)).at(-1)!;
    assert.deepEqual([last.status, last.error, last.attempt], ["dead", "event_unavailable", tried + 1]);
    assert.equal(w.net.to(URL).length, tried);
    await sweep(w);
    assert.deepEqual(await families(w), {}, "terminal, and its event is long gone");
  }));

Deno.test("sequence_strictly_increases: also after every row of the owner's events was deleted (O2)", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(1));
    const before = await w.append(tenant, 3);
    await w.jump(2 * DAY_MS);
    await sweep(w);
    assert.deepEqual(await families(w), {});
    const again = await w.isolate(); // nothing cached
    const after: Appended[] = await w.done(w.append(tenant, 2, "owner", again));
    const sequences = [...before, ...after].map((event) => event.sequence);
    assert.deepEqual(sequences, [1, 2, 3, 4, 5]);
  }));

Deno.test("retention: a deleted endpoint's log stays readable until it leaves, and the endpoint with it", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(3));
    const { id } = await w.endpoint(tenant, URL);
    await w.append(tenant);
    await w.settle();
    await w.done(deleteEndpoint(w.first.endpoints, id, null));
    await w.jump(3 * DAY_MS + HOUR_MS);
    await sweep(w);
    assert.equal((await attempts(w, id)).length, 1);
    await w.jump(DAY_MS);
    await sweep(w);
    assert.equal((await attempts(w, id)).length, 0);
    for (const key of [keys.endpoint(id), keys.health(id)]) {
      assert.equal((await w.store.get(key)).value, null);
    }
  }));

Deno.test("retention: goes on where it stopped, in bounded commits, and is done with each row once", () =>
  world(async (w) => {
    const tenants = [
      await w.tenant(null, days(1)),
      await w.tenant(null, days(1)),
      await w.tenant(null, days(1)),
    ];
    for (const tenant of tenants) await w.append(tenant, 300);
    await w.jump(2 * DAY_MS);
    let most = 0;
    w.first.kv.beforeCommit = (touched) => void (most = Math.max(most, touched.length));
    const limits = { maxRows: 500, maxLooks: 100, maxMs: DAY_MS };
    const d = { kv: w.first.kv, committer: w.first.system.committer, now: w.now };
    const deleted: number[] = [];
    for (let count = -1; count !== 0;) deleted.push(count = await w.done(retain(d, limits)));
    w.first.kv.beforeCommit = null;
    assert.deepEqual(await families(w), {});
    // Of each tenant 300 events and the index row of their commit.
    assert.deepEqual(deleted, [501, 402, 0]);
    assert.ok(most <= 401, `${most} rows in a commit`);
  }));

Deno.test("retention: two instances never run the same pass: the later one stops", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, days(1));
    for (let i = 0; i < 3; i++) await w.append(tenant, 300);
    await w.jump(2 * DAY_MS);
    const other = await w.isolate();
    const both = [w.first, other].map(({ kv, system: { committer } }) =>
      retain({ kv, committer, now: w.now })
    );
    const [one, two] = await w.done(Promise.all(both));
    assert.ok(Math.min(one!, two!) === 0 && Math.max(one!, two!) === 903, `${one} and ${two}`);
    assert.deepEqual(await families(w), {});
  }));

Deno.test("retention: between passes a sweep reads one row of it; a pass reads heads, not history", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.endpoint(tenant, URL);
    for (let i = 0; i < 5; i++) await w.append(tenant, 60);
    await w.advance(5 * SECOND_MS);
    const d = { kv: w.first.kv, committer: w.first.system.committer, now: w.now };
    const reads = async () => {
      const before = w.first.kv.reads;
      await w.done(retain(d));
      return w.first.kv.reads - before;
    };
    assert.ok(await reads() < 10, "a pass that finds nothing old");
    assert.equal(await reads(), 1, "not due");
    assert.equal((await allAttempts(w)).length, 300);
  }));

/** Owners: one commit for state, event and job (O1), numbers that only go up (O2), bytes made once (O3). */
import assert from "node:assert/strict";
import fc from "fast-check";
import { loadEvent } from "../../actors/event_store.ts";
import { ApiError } from "../../lib/errors.ts";
import type { EventId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { events, jobs } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const sequences = async (w: World): Promise<number[]> => (await events(w.store)).map(({ row }) => row.seq!);

Deno.test("sequence_strictly_increases: per owner across types, and never again after rows are deleted", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const first = await w.append(tenant, [{ type: "order.paid" }, { type: "order.sent" }]);
    assert.deepEqual(first.map((event) => event.sequence), [1, 2]);
    for (const event of first) await w.store.delete(keys.event(event.key));
    const again = await w.append(tenant, 2);
    assert.deepEqual(again.map((event) => event.sequence), [3, 4]);
    const other = await w.append(tenant, 1, "another owner");
    assert.deepEqual(other.map((event) => event.sequence), [1]);
  }));

Deno.test("sequence_strictly_increases: whatever commands two isolates run at once", async () => {
  const step = fc.record({
    isolate: fc.integer({ min: 0, max: 1 }),
    events: fc.integer({ min: 0, max: 3 }),
    throws: fc.boolean(),
    id: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
    rest: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) =>
      world(async (w) => {
        await w.isolate();
        const tenant = await w.tenant();
        const owner: OwnerRef = { kind: "custom", tenant: tenant.id, id: "shared" };
        const state = keys.ownerState(owner, "count");
        const ids = Array.from({ length: 4 }, () => w.first.ids.next("event"));
        let committed = 0;
        const running = steps.map(async ({ isolate, events, throws, id, rest }) => {
          const run = w.isolates[isolate]!.system.owners.run(owner, async (tx) => {
            const count = await tx.get<number>(state) ?? 0;
            for (let i = 0; i < events; i++) {
              const event = { type: "order.paid", data: { i } };
              await tx.append(i === 0 && id !== undefined ? { ...event, event_id: ids[id]! } : event);
            }
            tx.set(state, count + 1);
            if (throws) throw new ApiError("invalid_state", "Cannot: no.", "Do not.");
          });
          await run.then(() => void committed++, (error) => assert.ok(error instanceof ApiError));
          if (rest) await w.settle();
        });
        await w.done(Promise.all(running));
        const found = (await sequences(w)).sort((a, b) => a - b);
        assert.deepEqual(found, found.map((_, i) => i + 1), "no gap, no number twice");
        assert.equal((await w.store.get(state)).value ?? 0, committed, "O1: each change once");
      })),
    { numRuns: 15 },
  );
});

Deno.test("O2: a deterministic id seen before spends no number and answers the first event", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const event_id = w.first.ids.next("event") as EventId;
    const [one] = await w.append(tenant, [{ event_id }]);
    const [two, three] = await w.append(tenant, [{ event_id, data: { other: 1 } }, {}]);
    assert.deepEqual([two!.duplicate, two!.key, two!.sequence], [true, one!.key, 1]);
    assert.equal(three!.sequence, 2);
    await w.settle();
    const [elsewhere] = await w.append(tenant, [{ event_id }], "another owner");
    assert.equal(elsewhere!.duplicate, false, "an id is one owner's own");
  }));

Deno.test("O2: a batch of 100 events with ids of their own is one commit", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const event_ids = Array.from({ length: 100 }, () => w.first.ids.next("event") as EventId);
    const running = [
      ...event_ids.slice(0, 30).map((event_id) => w.append(tenant, [{ event_id }])),
      w.append(tenant, event_ids.map((event_id) => ({ event_id }))),
    ];
    const all = await w.done(Promise.all(running));
    assert.deepEqual(
      all.at(-1)!.map((event) => event.sequence),
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
  }));

Deno.test("O1: a command that fits a commit alone is not refused for its neighbours", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const big = { data: { text: "x".repeat(500_000) } };
    const running = [
      w.append(tenant, [{ data: { text: "y".repeat(150_000) } }]),
      w.append(tenant, [big]),
      w.append(tenant, [big]),
      w.append(tenant, 1),
    ];
    const all = await w.done(Promise.all(running));
    assert.deepEqual(all.map(([event]) => event!.sequence), [1, 2, 3, 4]);
    await assert.rejects(
      w.append(tenant, [big, big]),
      (error: ApiError) => error.code === "payload_too_large",
    );
  }));

Deno.test("O1: nor for the rows its neighbours read", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const owner: OwnerRef = { kind: "custom", tenant: tenant.id, id: "owner" };
    const reader = (name: string, count: number) =>
      w.first.system.owners.run(owner, async (tx) => {
        for (let i = 0; i < count; i++) await tx.get(keys.ownerState(owner, name, String(i)));
        return (await tx.append({ type: "order.paid", data: {} })).sequence;
      });
    const running = [reader("a", 25), reader("b", 90), reader("c", 90)];
    assert.deepEqual(await w.done(Promise.all(running)), [1, 2, 3]);
  }));

Deno.test("O3: an envelope over one value's size comes back byte for byte", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const url = "https://hooks.example.com/in";
    await w.endpoint(tenant, url);
    const text = "äöü€𝄞".repeat(30_000);
    const [event] = await w.append(tenant, [{ data: { text } }]);
    await w.settle();
    assert.equal(JSON.parse(w.net.to(url)[0]!.body).data.text, text);
    const stored = await loadEvent(w.store, event!.key);
    assert.ok(stored!.body!.length > 60_000 * 5);
    assert.equal(new TextDecoder().decode(stored!.body!), w.net.to(url)[0]!.body);
  }));

Deno.test("O1: events of one commit share one Fanout job row", () =>
  world(async (w) => {
    const tenants = [await w.tenant(), await w.tenant(), await w.tenant()];
    const appendAll = () =>
      w.done(Promise.all(tenants.flatMap((tenant) => [w.append(tenant, 2), w.append(tenant, 2, "other")])));
    await appendAll(); // owners and tenants are known from here on
    await w.first.system.flow.pump.stop();
    const before = w.first.kv.commits;
    await appendAll();
    assert.equal(w.first.kv.commits - before, 1);
    const rows = await jobs(w);
    assert.deepEqual(rows.map(({ job }) => job.kind === "fanout" && job.events.length), [12]);
    w.first.system.flow.pump.start();
    await w.settle();
    assert.deepEqual(await jobs(w), []);
  }, { hotHandOff: false }));

Deno.test("O1: a commit that fails leaves neither state, event nor job, and rejects the command", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.append(tenant, 1);
    await w.settle();
    w.first.kv.beforeCommit = () => Promise.reject(new Error("disk full"));
    await assert.rejects(w.append(tenant, 1), /disk full/);
    w.first.kv.beforeCommit = null;
    assert.deepEqual(await sequences(w), [1]);
    assert.deepEqual((await w.append(tenant, 1)).map((event) => event.sequence), [2]);
  }));

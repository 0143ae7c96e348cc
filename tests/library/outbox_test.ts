/** The library's outbox beside a running system, over one real KV: its rows are an owner's rows, in the application's own commit. */
import assert from "node:assert/strict";
import { makeEventTypes } from "../../actors/event_types.ts";
import { loadEvent } from "../../actors/event_store.ts";
import { makeOutbox } from "../../actors/outbox.ts";
import { eventRowOf } from "../../lib/event_row.ts";
import type { EventId, EventKey } from "../../lib/ids.ts";
import { keys, type TenantRow } from "../../lib/keys.ts";
import { SECOND_MS } from "../../lib/limits.ts";
import { makeIds } from "../../lib/ids.ts";
import { makeOutbox as makePublic, OutboxError } from "../../mod.ts";
import { type World, world } from "../support/world.ts";

const URL_ONE = "https://one.example.com/in";
const ID = "evt_01K0000000000000000000000A" as EventId;

async function typed(w: World): Promise<TenantRow> {
  const tenant = await w.tenant(await w.partner());
  const { kv, committer } = w.first.system;
  await makeEventTypes({ kv, committer, now: w.now }).put(tenant.id, {
    name: "order.paid",
    description: "",
    schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    example: { n: 1 },
  });
  return tenant;
}

/** An application's process: its own ids over the same store. */
const outboxOf = (w: World, doorbell = false) =>
  makeOutbox({ kv: w.store, now: w.now, ids: makeIds(w.now, w.unit), doorbell });

async function rowsOf(kv: Deno.Kv): Promise<Map<string, unknown>> {
  const rows = new Map<string, unknown>();
  for await (const { key, value } of kv.list({ prefix: [] })) rows.set(JSON.stringify(key), value);
  return rows;
}

const order = (n: number) => ["order", n];

Deno.test("O1: the event is there exactly when the application's commit is", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = outboxOf(w), before = await rowsOf(w.store);
    const event = { tenant: tenant.id, owner: "order-1", type: "order.paid", data: { n: 1 } };

    const lost = w.store.atomic().check({ key: order(1), versionstamp: "00000000000000000001" });
    await outbox.append(lost.set(order(1), "paid"), event);
    assert.equal((await lost.commit()).ok, false);
    assert.deepEqual(await rowsOf(w.store), before, "neither the order nor the event");

    const kept = w.store.atomic().check({ key: order(1), versionstamp: null }).set(order(1), "paid");
    const { key } = await outbox.append(kept, event);
    assert.ok((await kept.commit()).ok);
    assert.equal((await w.store.get(order(1))).value, "paid");
    assert.notEqual((await w.store.get(keys.event(key))).value, null);
  });
});

Deno.test("O1: the rows are those an owner's own turn writes", async () => {
  await world(async (w) => {
    const tenant = await typed(w);
    const grown = async (act: () => Promise<unknown>) => {
      const before = await rowsOf(w.store);
      await act();
      const rows = [...await rowsOf(w.store)].filter(([key]) => !before.has(key));
      // Ids and times differ by nature; everything else may not.
      const shape = (text: string) =>
        text.replace(/keys\\":\\"\w+/, "keys TAILS").replace(/[0-7][0-9A-HJKMNP-TV-Z]{25}/g, "ULID")
          .replace(/\d{13}/g, "MS");
      return rows.map(([key, value]) => {
        const [family, event] = JSON.parse(key);
        const row = family === "ev" ? eventRowOf(event, value) : null;
        const shown = row === null
          ? value
          : { ...row, body: new TextDecoder().decode(row.body as Uint8Array) };
        return shape(key + JSON.stringify(shown)).replace(/"occurred_at":"[^"]+"/, "AT").replace(
          /\\"occurred_at\\":\\"[^"]+\\"/,
          "AT",
        );
      }).filter((row) => !row.startsWith('["instance"')).map((row) => row.replace(/\["job",\d/, '["job",S'))
        .sort();
    };
    const data = { n: 7 }, event_id = ID;
    const own = await grown(() => w.append(tenant, [{ data, event_id }], "same"));
    const other = await grown(async () => {
      const operation = w.store.atomic();
      const id = "evt_01K0000000000000000000000B" as EventId;
      await outboxOf(w).append(operation, {
        tenant: tenant.id,
        owner: "other",
        type: "order.paid",
        data,
        event_id: id,
      });
      await operation.commit();
    });
    assert.deepEqual(other.map((row) => row.replaceAll("other", "same")), own);
    assert.equal(own.length, 6, "event, by tenant, by partner, alias, sequence, job");
  }, { hotHandOff: false, jobShards: 1, maxInFlight: 0 });
});

Deno.test("O2: sequences go on from the owner's, two events of one commit in order, and a stale one does not commit", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = outboxOf(w);
    await w.append(tenant, 2, "order-1");
    const event = { tenant: tenant.id, owner: "order-1", type: "order.paid", data: { n: 1 } };
    const operation = w.store.atomic();
    const [third, fourth] = await Promise.all([
      outbox.append(operation, event),
      outbox.append(operation, event),
    ]);
    assert.deepEqual([third!.sequence, fourth!.sequence], [3, 4]);
    const stale = w.store.atomic();
    await outbox.append(stale, event);
    assert.ok((await operation.commit()).ok);
    assert.equal((await stale.commit()).ok, false, "its number is taken");
    const [fifth] = await w.append(tenant, 1, "order-1");
    assert.equal(fifth!.sequence, 5, "the owner's actor saw that another wrote");
  });
});

Deno.test("O2: an id appended before is answered and spends no number, in the same commit and in a later one", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = outboxOf(w);
    const event = { tenant: tenant.id, owner: "o", type: "order.paid", data: { n: 1 }, event_id: ID };
    const operation = w.store.atomic();
    const first = await outbox.append(operation, event), again = await outbox.append(operation, event);
    assert.ok((await operation.commit()).ok);
    const later = w.store.atomic().set(order(2), 1);
    const third = await outbox.append(later, event);
    assert.ok((await later.commit()).ok);
    for (const repeat of [again, third]) assert.deepEqual(repeat, { ...first, duplicate: true });
    assert.equal(
      (await w.store.get(keys.ownerMeta({ kind: "custom", tenant: tenant.id, id: "o" }))).value,
      1,
    );
  });
});

Deno.test("J1: a running system in another process delivers what the library appended within two seconds", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = outboxOf(w);
    await w.endpoint(tenant, URL_ONE);
    await w.advance(SECOND_MS);
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      const operation = w.store.atomic().set(order(n), "paid");
      const event = { tenant: tenant.id, owner: `order-${n % 2}`, type: "order.paid", data: { n } };
      ids.push((await outbox.append(operation, event)).id);
      assert.ok((await operation.commit()).ok);
    }
    await w.advance(2 * SECOND_MS);
    assert.deepEqual(w.net.to(URL_ONE).map((request) => request.id).sort(), ids.sort());
    assert.equal((await w.store.get(keys.heartbeat("outbox"))).value, null, "the note is taken away");
  });
});

Deno.test("J1: the doorbell rings in the commit, at most once a second", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = outboxOf(w, true), rung = Promise.withResolvers<unknown>();
    let rings = 0;
    const listening = w.store.listenQueue((message) => (rings++, rung.resolve(message)));
    listening.catch(() => {});
    for (let n = 0; n < 3; n++) {
      const operation = w.store.atomic();
      await outbox.append(operation, { tenant: tenant.id, owner: "o", type: "order.paid", data: { n } });
      await operation.commit();
    }
    const message = await rung.promise as { kind: string };
    assert.equal(message.kind, "doorbell");
    assert.equal(rings, 1);
  });
});

Deno.test("outbox: what cannot be appended says why and puts nothing on the operation", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = makePublic(w.store), before = await rowsOf(w.store);
    const good = { tenant: tenant.id as string, owner: "o", type: "order.paid", data: { n: 1 } as unknown };
    const cases: [Partial<typeof good> & { id?: string }, string, string | undefined][] = [
      [{ type: "order.payed" }, "invalid_request", "type"],
      [{ type: "message.received" }, "invalid_request", "type"],
      [{ data: { n: "1" } }, "invalid_request", "data.n"],
      [{ data: undefined }, "invalid_request", "data"],
      [{ owner: "" }, "invalid_request", "key"],
      [{ tenant: "acme" }, "invalid_request", "tenant"],
      [{ id: "order-1" }, "invalid_request", "id"],
      [{ tenant: "ten_01K0000000000000000000000A" }, "tenant_not_found", undefined],
      [{ data: { n: 1, more: "x".repeat(600_000) } }, "invalid_request", "data"],
    ];
    const operation = w.store.atomic();
    for (const [change, code, path] of cases) {
      const error = await outbox.append(operation, { ...good, ...change }).then(
        () => null,
        (thrown) => thrown,
      );
      assert.ok(error instanceof OutboxError, `${path}: ${error}`);
      assert.deepEqual([error.code, error.errors[0]?.path], [code, path]);
    }
    await operation.commit();
    assert.deepEqual(await rowsOf(w.store), before);
  });
});

Deno.test("outbox: numbers and text of the data go out as JSON has them", async () => {
  await world(async (w) => {
    const tenant = await typed(w), outbox = makePublic(w.store), operation = w.store.atomic();
    const data = { n: 1, at: new Date(0), gone: undefined, text: "é\u2028" };
    const { id, type, sequence, duplicate } = await outbox.append(operation, {
      tenant: tenant.id,
      owner: "o",
      type: "order.paid",
      data,
    });
    await operation.commit();
    assert.deepEqual([type, sequence, duplicate], ["order.paid", 1, false]);
    const sent = new TextDecoder().decode((await loadEvent(w.store, id.slice(4) as EventKey))!.body!);
    assert.ok(sent.endsWith(`"sequence":1,"data":${JSON.stringify(data)}}`), sent);
  });
});

/** An application's own events: registered, judged, appended as written (O1, O2, O3). */
import assert from "node:assert/strict";
import { appendCustom, appendCustomBatch, customOwner } from "../../actors/custom_owner.ts";
import { type EventTypes, makeEventTypes } from "../../actors/event_types.ts";
import { ApiError } from "../../lib/errors.ts";
import type { EventId } from "../../lib/ids.ts";
import { elementsOf, readJson } from "../../lib/json.ts";
import { defineType } from "../../lib/custom_types.ts";
import { ENDPOINT_CACHE_MS } from "../../lib/limits.ts";
import { type World, world } from "./bench_owner.ts";

const ORDER = {
  name: "order.paid",
  description: "An order was paid.",
  schema: {
    type: "object",
    properties: { amount: { type: "number" }, id: { type: "integer" } },
    required: ["amount"],
  },
  example: { amount: 1.5 },
};

const errorsOf = (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.status, 400);
  return (error.details!.errors as { path: string; message: string }[]).map((e) => `${e.path}: ${e.message}`);
};

async function refused(run: Promise<unknown>, ...wanted: RegExp[]) {
  const error = await run.then(() => assert.fail("was accepted"), (thrown) => thrown);
  const errors = errorsOf(error);
  wanted.forEach((pattern, i) => assert.match(errors[i] ?? "", pattern));
  assert.equal(errors.length, wanted.length, errors.join());
}

function typed(body: (w: World, types: EventTypes) => Promise<void>) {
  return world(async (w) => {
    const types = makeEventTypes(w);
    assert.equal((await types.put(w.tenant.id, ORDER)).created, true);
    await body(w, types);
  });
}

Deno.test("O3: custom data reaches the envelope byte for byte", () =>
  typed(async (w, types) => {
    const owner = customOwner(w.tenant.id, "cart/7 ä");
    const data = readJson('{ "amount" : 1.50, "id":9007199254740993, "2":-0,"1":1e2, "__proto__":{"x":1} }');
    const event = await appendCustom({ owners: w.owners, types }, owner, { type: "order.paid", data });
    assert.equal(event.sequence, 1);
    const [text] = await w.texts();
    assert.equal(text!.slice(text!.indexOf('"data":') + 7, -1), data.text);
    assert.ok(text!.startsWith(`{"id":"${event.id}","type":"order.paid",`));
  }));

Deno.test("sequence_strictly_increases: per custom owner, across types, one and batch", () =>
  typed(async (w, types) => {
    await types.put(w.tenant.id, { ...ORDER, name: "order.sent" });
    const deps = { owners: w.owners, types };
    const one = customOwner(w.tenant.id, "one"), two = customOwner(w.tenant.id, "two");
    const paid = { type: "order.paid", data: { amount: 1 } },
      sent = { type: "order.sent", data: { amount: 1 } };
    assert.equal((await appendCustom(deps, one, paid)).sequence, 1);
    const batch = await appendCustomBatch(deps, one, [sent, paid, sent]);
    assert.deepEqual(batch.map((e) => e.sequence), [2, 3, 4]);
    assert.equal((await appendCustom(deps, two, sent)).sequence, 1);
    const all = await Promise.all(Array.from({ length: 50 }, () => appendCustom(deps, one, paid)));
    assert.deepEqual(
      all.map((e) => e.sequence).sort((a, b) => a - b),
      Array.from({ length: 50 }, (_, i) => i + 5),
    );
  }));

Deno.test("O1: a batch is all or nothing, and its errors name the element", () =>
  typed(async (w, types) => {
    const deps = { owners: w.owners, types }, owner = customOwner(w.tenant.id, "k");
    const good = { type: "order.paid", data: { amount: 1 } };
    await refused(
      appendCustomBatch(deps, owner, [good, { type: "order.paid", data: {} }]),
      /^events\.1\.data\.amount: is required/,
    );
    await refused(
      appendCustomBatch(deps, owner, [good, { type: "order.payed", data: {} }]),
      /^events\.1\.type: .*"order.paid"/,
    );
    await refused(appendCustomBatch(deps, owner, []), /^events: must hold 1 to 100/);
    await refused(appendCustomBatch(deps, owner, Array(101).fill(good)), /^events: must hold 1 to 100/);
    assert.deepEqual(await w.envelopes(), []);
    assert.equal((await appendCustomBatch(deps, owner, Array(100).fill(good))).at(-1)!.sequence, 100);
  }));

Deno.test("O1: a hundred deterministic ids are one batch, and the same batch again is no event", () =>
  typed(async (w, types) => {
    const deps = { owners: w.owners, types }, owner = customOwner(w.tenant.id, "k");
    const batch = Array.from({ length: 100 }, () => ({
      type: "order.paid",
      data: { amount: 1 },
      event_id: w.ids.next("event") as EventId,
    }));
    const first = await appendCustomBatch(deps, owner, batch);
    assert.deepEqual(first.map((e) => e.id), batch.map((e) => e.event_id));
    const second = await appendCustomBatch(deps, owner, batch);
    assert.ok(second.every((e) => e.duplicate));
    assert.deepEqual(second.map((e) => e.sequence), first.map((e) => e.sequence));
    const next = await appendCustom(deps, owner, { type: "order.paid", data: { amount: 2 } });
    assert.equal(next.sequence, 101);
    assert.equal((await w.envelopes()).length, 101);
  }));

Deno.test("a deterministic id twice in one batch is one event", () =>
  typed(async (w, types) => {
    const event = { type: "order.paid", data: { amount: 1 }, event_id: w.ids.next("event") as EventId };
    const both = await appendCustomBatch({ owners: w.owners, types }, customOwner(w.tenant.id, "k"), [
      event,
      event,
    ]);
    assert.deepEqual(both.map((e) => [e.sequence, e.duplicate]), [[1, false], [1, true]]);
    assert.equal((await w.envelopes()).length, 1);
  }));

Deno.test("built-in types cannot be forged through a custom owner, nor registered", () =>
  typed(async (w, types) => {
    const owner = customOwner(w.tenant.id, "k");
    await refused(
      appendCustom({ owners: w.owners, types }, owner, { type: "message.received", data: {} }),
      /^type: "message.received" is a built-in type/,
    );
    for (const name of ["message.received", "webhook.disabled", "erasure.completed"]) {
      await refused(types.put(w.tenant.id, { ...ORDER, name }), /^name: is the name of a built-in type/);
    }
    for (
      const name of [
        "order",
        "Order.paid",
        "order..paid",
        ".a",
        "order.paid\n",
        "ördér.paid",
        "a." + "b".repeat(130),
      ]
    ) {
      await refused(types.put(w.tenant.id, { ...ORDER, name }), /^name: must/);
    }
  }));

Deno.test("a type's example satisfies its schema, and a schema is understood or refused", () => {
  const define = (change: object) => () => defineType({ ...ORDER, ...change });
  const messages = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      return errorsOf(error).join();
    }
    return "";
  };
  assert.equal(messages(define({})), "");
  assert.match(messages(define({ example: { amount: "1" } })), /^example\.amount: must be of type number/);
  assert.match(
    messages(define({ schema: { properties: { a: { patern: "x" } } } })),
    /^schema\.properties\.a\.patern/,
  );
  assert.match(messages(define({ schema: { description: "x".repeat(40_000) } })), /^schema: must be at most/);
});

Deno.test("a changed type is judged by its new schema: here at once, elsewhere within 30 s", () =>
  typed(async (w, types) => {
    const elsewhere = makeEventTypes(w);
    await elsewhere.check(w.tenant.id, "order.paid", { amount: 1 });
    const closed = { ...ORDER, schema: { ...ORDER.schema, additionalProperties: false } };
    assert.equal((await types.put(w.tenant.id, closed)).created, false);
    await refused(types.check(w.tenant.id, "order.paid", { amount: 1, x: 1 }), /^data\.x: is not allowed/);
    await elsewhere.check(w.tenant.id, "order.paid", { amount: 1, x: 1 });
    w.clock.now += ENDPOINT_CACHE_MS;
    await refused(
      elsewhere.check(w.tenant.id, "order.paid", { amount: 1, x: 1 }),
      /^data\.x: is not allowed/,
    );
    await refused(elsewhere.check(w.tenant.id, "late.type", {}), /unknown event type/);
    await types.put(w.tenant.id, { ...ORDER, name: "late.type" });
    await elsewhere.check(w.tenant.id, "late.type", { amount: 1 });
  }));

Deno.test("a custom owner's key is 1 to 256 bytes of UTF-8", () => {
  const tenant = "ten_01K6GZ3T9QW5X8V7R2N4M6P1BD" as never;
  assert.equal(customOwner(tenant, "ä".repeat(128)).id.length, 128);
  for (const key of ["", "ä".repeat(129), "x".repeat(257), "\ud800"]) {
    assert.throws(
      () => customOwner(tenant, key),
      (error) => errorsOf(error)[0]!.startsWith("key: must be 1 to 256"),
    );
  }
});

Deno.test("O3: elements of a batch keep their text", () =>
  typed(async (w, types) => {
    const elements = elementsOf(readJson('[{"amount":1.0}, {"amount":2.00}]'))!;
    await appendCustomBatch(
      { owners: w.owners, types },
      customOwner(w.tenant.id, "k"),
      elements.map((data) => ({ type: "order.paid", data })),
    );
    assert.deepEqual((await w.texts()).map((text) => text!.match(/"data":(.*)}$/)![1]), [
      '{"amount":1.0}',
      '{"amount":2.00}',
    ]);
  }));

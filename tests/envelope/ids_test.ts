/** The id that an endpoint and an event give their first attempt. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type EndpointId, type EventKey, firstDelivery, parseId, ulidFrom, ulidTime } from "../../lib/ids.ts";

const MAX_TIME = 2 ** 48 - 1;
const ulids = fc.tuple(fc.nat(MAX_TIME), fc.uint8Array({ minLength: 10, maxLength: 10 }))
  .map(([at, random]) => ulidFrom(at, random));
const endpoints = ulids.map((ulid) => `whk_${ulid}` as EndpointId);
const events = ulids as fc.Arbitrary<EventKey>;

Deno.test("firstDelivery: an id of a delivery, of the event's time, the same each time", () =>
  fc.assert(fc.property(endpoints, events, (endpoint, event) => {
    const id = firstDelivery(endpoint, event);
    assert.equal(parseId("delivery", id), id);
    assert.equal(ulidTime(id), ulidTime(event));
    assert.equal(firstDelivery(endpoint, event), id);
  })));

Deno.test("firstDelivery: two events never share one at an endpoint: it tells which event it is of", () =>
  fc.assert(fc.property(endpoints, events, (endpoint, event) => {
    const id = firstDelivery(endpoint, event);
    assert.equal(firstDelivery(endpoint, id.slice(4) as EventKey).slice(4), event);
  })));

Deno.test("firstDelivery: two endpoints do not share one for an event", () =>
  fc.assert(fc.property(endpoints, endpoints, events, (one, other, event) => {
    fc.pre(one !== other);
    assert.notEqual(firstDelivery(one, event), firstDelivery(other, event));
  })));

Deno.test("firstDelivery: rows of a store are found under it for ever", () => {
  const id = firstDelivery(
    "whk_01K0W7Z4T0ABCDEFGHJKMNPQRS" as EndpointId,
    "01K0W7Z4T00123456789ABCDEF" as EventKey,
  );
  assert.equal(id, "dlv_01K0W7Z4T0E96Q3CYCQYFRA09T");
});

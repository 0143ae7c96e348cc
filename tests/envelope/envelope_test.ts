import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { buildEnvelope, rfc3339, webhookDisabledId } from "../../lib/envelope.ts";
import { ApiError } from "../../lib/errors.ts";
import { type EndpointId, type EventId, parseId, ulidTime } from "../../lib/ids.ts";
import { readJson } from "../../lib/json.ts";
import { MAX_ENVELOPE_BYTES } from "../../lib/limits.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const PARTS = {
  id: "evt_01JD0000000000000000000001",
  type: "order.paid",
  occurredAt: 1_790_812_800_123,
  tenant: "ten_01JD0000000000000000000002",
  identity: null,
  sequence: 7,
};

Deno.test("envelope: fields in the reference's order, nothing between them", () => {
  assert.equal(
    text(buildEnvelope({ ...PARTS, data: readJson('{"amount":1.50,"2":0,"1":-0}') })),
    '{"id":"evt_01JD0000000000000000000001","type":"order.paid","api_version":"2026-10-01",' +
      '"occurred_at":"2026-10-01T00:00:00.123Z","tenant_id":"ten_01JD0000000000000000000002","identity_id":null,' +
      '"sequence":7,"data":{"amount":1.50,"2":0,"1":-0}}',
  );
  assert.match(
    text(buildEnvelope({ ...PARTS, tenant: null, sequence: null, data: {} })),
    /"tenant_id":null,.*"sequence":null,/,
  );
});

Deno.test("envelope: any data reads back as it was given", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.nat(), (data, sequence) => {
    const read = JSON.parse(text(buildEnvelope({ ...PARTS, sequence, data })));
    assert.deepEqual(read, {
      id: PARTS.id,
      type: PARTS.type,
      api_version: "2026-10-01",
      occurred_at: "2026-10-01T00:00:00.123Z",
      tenant_id: PARTS.tenant,
      identity_id: null,
      sequence,
      data: JSON.parse(JSON.stringify(data)),
    });
  }));
});

Deno.test("envelope: over 512 KiB is the caller's mistake at data", () => {
  const rest = buildEnvelope({ ...PARTS, data: "" }).length;
  const fits = "x".repeat(MAX_ENVELOPE_BYTES - rest);
  assert.equal(buildEnvelope({ ...PARTS, data: fits }).length, MAX_ENVELOPE_BYTES);
  assert.throws(() => buildEnvelope({ ...PARTS, data: fits + "x" }), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual((error.details!.errors as { path: string }[])[0]!.path, "data");
    return true;
  });
});

Deno.test("envelope: the date is remembered, not mistaken", () => {
  assert.equal(rfc3339(0), "1970-01-01T00:00:00.000Z");
  assert.equal(rfc3339(1), "1970-01-01T00:00:00.001Z");
  assert.equal(rfc3339(0), "1970-01-01T00:00:00.000Z");
});

Deno.test("webhook.disabled: the id is the document's HMAC, the same each time", () => {
  const key = new Uint8Array(32).fill(7);
  const webhook = "whk_01JD0000000000000000000003" as EndpointId;
  const event = PARTS.id as EventId;
  const id = webhookDisabledId(key, PARTS.occurredAt, webhook, event, 13);
  assert.equal(id, webhookDisabledId(key, PARTS.occurredAt, webhook, event, 13));
  assert.notEqual(id, webhookDisabledId(key, PARTS.occurredAt, webhook, event, 12));
  assert.notEqual(id, webhookDisabledId(new Uint8Array(32), PARTS.occurredAt, webhook, event, 13));
  assert.ok(parseId("event", id));
  assert.equal(ulidTime(id), PARTS.occurredAt);
  const mac = createHmac("sha256", key).update(`webhook.disabled:${webhook}:${event}:13`).digest();
  const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const bits = [...mac.subarray(0, 10)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const tail = bits.match(/.{5}/g)!.map((five) => CROCKFORD[parseInt(five, 2)]).join("");
  assert.equal(id.slice(-16), tail);
});

/** The stored form of an event: what is read is what was written (O3), small, and the same in every later release. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { encodeEventRow, eventRowOf } from "../../lib/event_row.ts";
import { API_VERSIONS, buildEnvelope } from "../../lib/envelope.ts";
import { InvariantError } from "../../lib/errors.ts";
import { type EventId, type EventKey, type Id, ulidFrom, ulidTime } from "../../lib/ids.ts";
import { parseJson, readJson } from "../../lib/json.ts";
import { type EventRow, eventRow } from "../../lib/keys.ts";
import { MAX_CHUNK_BYTES, MAX_OWNER_KEY_BYTES, MAX_VALUE_BYTES } from "../../lib/limits.ts";
import { envelope } from "../../bench/payload.ts";

const AT = 1_790_812_800_123;
const KEY = ulidFrom(AT, new Uint8Array(10).fill(7)) as EventKey;
const TENANT = "ten_01JD0000000000000000000002" as Id<"tenant">;
const ROW: EventRow = {
  type: "order.paid",
  tenant: TENANT,
  identity: null,
  partner: null,
  kind: "custom",
  owner: "cart-1",
  seq: 7,
  at: AT,
  body: null,
};

const bodyOf = (key: EventKey, row: EventRow, data: unknown) =>
  buildEnvelope({
    id: row.id ?? `evt_${key}`,
    type: row.type,
    occurredAt: row.at,
    tenant: row.tenant,
    identity: row.identity,
    sequence: row.seq,
    data,
  });

/** A row's fields as plain data, whatever made them. */
function plain(row: EventRow) {
  const { type, tenant, identity, partner, kind, owner, seq, at } = row;
  const body = row.body instanceof Uint8Array ? Uint8Array.from(row.body) : row.body;
  return {
    ...("id" in row ? { id: row.id } : {}),
    type,
    tenant,
    identity,
    partner,
    kind,
    owner,
    seq,
    at,
    body,
  };
}

function keeps(key: EventKey, row: EventRow): Uint8Array {
  const bytes = encodeEventRow(key, row);
  const read = eventRowOf(key, bytes)!;
  assert.equal(read.erased, row.body === null);
  assert.deepEqual(plain(read), plain(row));
  assert.deepEqual(eventRow.parse(read), plain(row));
  return bytes;
}

// Every UTF-16 unit, lone surrogates and NUL among them: what a string can be.
const anyText = fc.array(fc.oneof(fc.nat(0x7f), fc.nat(0xff), fc.nat(0xffff)), { maxLength: 40 })
  .map((units) => String.fromCharCode(...units));
const ulid = fc.tuple(fc.nat(2 ** 48 - 1), fc.uint8Array({ minLength: 10, maxLength: 10 }))
  .map(([at, random]) => ulidFrom(at, random));
const anyId = (prefix: string) =>
  fc.oneof(
    ulid.map((text) => `${prefix}_${text}`),
    ulid.map((text) => `xyz_${text}`),
    fc.string({ minLength: 26, maxLength: 26, unit: "binary" }).map((text) => `${prefix}_${text}`),
    anyText,
  );
const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: null });
const fields = fc.record({
  id: fc.option(anyId("evt"), { nil: undefined }),
  type: fc.oneof(fc.constantFrom("order.paid", "webhook.disabled", "größe.geändert", "Ã©"), anyText),
  tenant: orNull(anyId("ten")),
  identity: orNull(anyId("idn")),
  partner: orNull(anyId("ptn")),
  kind: fc.constantFrom("mailbox", "domain", "job", "custom", "platform"),
  owner: anyText,
  seq: orNull(
    fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
  ),
  at: fc.nat(8.64e15),
}).map(({ id, ...rest }) => (id === undefined ? rest : { id, ...rest }) as unknown as EventRow);
const json = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom('{"amount":1.50,"2":0,"1":-0}', "1e400", '{"n":123456789012345678901}').map((t) =>
    readJson(t)
  ),
  fc.constantFrom('{"amount":1.50}', "-0", "[1e400]").map((t) => parseJson(t)),
);

Deno.test("O3: a row reads back as it was written, whatever its fields and its body", () => {
  fc.assert(
    fc.property(
      ulid,
      fields,
      fc.boolean(),
      fc.boolean(),
      json,
      fc.uint8Array({ maxLength: 400 }),
      (ulid, row, onTime, ownItself, data, noise) => {
        const key = ulid as EventKey;
        if (onTime) row = { ...row, at: ulidTime(key) };
        if (ownItself && row.identity !== null) row = { ...row, owner: row.identity };
        const own = bodyOf(key, row, data);
        const bodies: EventRow["body"][] = [
          own,
          noise as Uint8Array<ArrayBuffer>,
          own.slice(0, -1),
          new Uint8Array([...own, 0x20]),
          bodyOf(key, { ...row, seq: 1_000 }, data),
          null,
          1 + noise.length,
        ];
        for (const body of bodies) keeps(key, { ...row, body });
      },
    ),
    { numRuns: 500 },
  );
});

Deno.test("O3: an envelope with one byte changed anywhere is kept as it is", () => {
  const own = bodyOf(KEY, ROW, { n: 1, text: "é" });
  for (let i = 0; i < own.length; i++) {
    const body = own.slice();
    body[i]! ^= 1;
    keeps(KEY, { ...ROW, body });
  }
});

Deno.test("an event of 1 KB takes less than 900 bytes", () => {
  const { id, data } = JSON.parse(envelope(1));
  const row: EventRow = { ...ROW, type: "invoice.paid", seq: 1_000_000, owner: "customer-0000001" };
  const body = bodyOf(KEY, row, data);
  assert.equal(id.length, KEY.length + 4);
  assert.ok(body.length > 1_000, `${body.length} B`);
  const { length } = keeps(KEY, { ...row, body });
  assert.ok(length < 900, `${length} B`);
});

Deno.test("what the key and the other fields say is not stored twice", () => {
  const identity = "idn_01JD0000000000000000000003" as Id<"identity">;
  const size = (row: Partial<EventRow>, key = KEY) => keeps(key, { ...ROW, ...row }).length;
  const least = size({});
  assert.equal(least, 4 + 26 + 1 + ROW.type.length + 1 + ROW.owner.length + 1);
  assert.equal(size({ tenant: null }), least - 26);
  assert.equal(size({ kind: "mailbox", identity, owner: identity }), least + 26 - 1 - ROW.owner.length);
  assert.equal(size({ id: "evt_01JD0000000000000000000004" as EventId }), least + 26);
  assert.equal(size({ at: AT + 1 }), least + 6);
  assert.equal(size({ body: bodyOf(KEY, ROW, { n: 1 }) }), least + '{"n":1}'.length);
  const early = { ...ROW, at: AT - 1 }; // told by another time than its key's: a platform event's cause
  assert.equal(size({ ...early, body: bodyOf(KEY, early, { n: 1 }) }), least + 6 + '{"n":1}'.length);
});

Deno.test("the largest body that is not in chunk rows, with the longest owner, is a value the store takes", () => {
  const body = new Uint8Array(MAX_CHUNK_BYTES);
  const owner = "я".repeat(MAX_OWNER_KEY_BYTES / 2);
  assert.ok(keeps(KEY, { ...ROW, type: "t".repeat(128), owner, body }).length < MAX_VALUE_BYTES);
});

Deno.test("a row shares no memory with the next", () => {
  const first = encodeEventRow(KEY, { ...ROW, body: 3 }), kept = first.slice();
  encodeEventRow(KEY, { ...ROW, owner: "another".repeat(1_000), body: bodyOf(KEY, ROW, {}) });
  encodeEventRow(KEY, { ...ROW, type: "zzzzzzzzzz", body: 9 });
  assert.deepEqual(first, kept);
  assert.equal(first.buffer.byteLength, first.length);
});

Deno.test("O3, upgrade: bytes of format 1 read the same for good", () => {
  const stored = "0104030330314a44303030303030303030303030303030303030303030321" +
    "46f726465722e706169640c636172742d31077b226e223a317d";
  assert.equal(encodeEventRow(KEY, { ...ROW, body: bodyOf(KEY, ROW, { n: 1 }) }).toHex(), stored);
  const read = eventRowOf(KEY, Uint8Array.fromHex(stored))!;
  assert.equal(
    new TextDecoder().decode(read.body as Uint8Array),
    `{"id":"evt_${KEY}","type":"order.paid","api_version":"2026-10-01","occurred_at":"2026-10-01T00:00:00.123Z",` +
      `"tenant_id":"${TENANT}","identity_id":null,"sequence":7,"data":{"n":1}}`,
  );
});

Deno.test("upgrade: an object row of an earlier release reads as it is; none stays none; a form of a later one is refused", () => {
  const body = bodyOf(KEY, ROW, { n: 1 });
  const old = eventRowOf(KEY, { ...ROW, body })!;
  assert.deepEqual([plain(old), old.erased], [plain({ ...ROW, body }), false]);
  assert.equal(eventRowOf(KEY, ROW)!.erased, true);
  assert.equal(eventRowOf(KEY, null), null);
  const bytes = encodeEventRow(KEY, { ...ROW, body });
  assert.throws(() => eventRowOf(KEY, bytes.with(0, 2)), InvariantError);
  assert.throws(() => eventRowOf(KEY, bytes.with(3, 3 + API_VERSIONS.length)), InvariantError);
});

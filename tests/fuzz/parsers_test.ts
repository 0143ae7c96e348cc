/** What outsiders write and we read: keys, cursors, sealed values, ids, `Retry-After`. Nothing changed is taken, nothing throws. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { hashKey, keyMatches, mintKey, parseKey } from "../../lib/edge/api_keys.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { makeSealer, SealError } from "../../lib/edge/seal.ts";
import { ApiError } from "../../lib/errors.ts";
import { type IdKind, parseId, PREFIX, ulidFloor, ulidFrom, ulidTime } from "../../lib/ids.ts";
import { CURSOR_TTL_MS, DAY_MS } from "../../lib/limits.ts";
import { parseRetryAfter } from "../../lib/outcome.ts";
import { type CursorScope, makeCursor, openCursor } from "../../routes/cursor.ts";
import { mutated, runs } from "./runs.ts";

const put = fc.oneof(
  fc.constantFrom("c_", ".", "_", "=", "-", " ", "\n", "\0", "pm1.", "pmk_live_", "A", "é", "０"),
  fc.string({ unit: "binary", maxLength: 3 }),
);
/** A text and another that came of it. */
const pair = (text: fc.Arbitrary<string>) =>
  text.chain((text) => fc.tuple(fc.constant(text), mutated(fc.constant(text), put)))
    .filter(([text, other]) => text !== other);

const scope: CursorScope = {
  hashKey: new Uint8Array(32).fill(5),
  operation: "GET /v1/webhooks",
  keyId: "key_1",
};
const refusedAs = (run: () => unknown): number => {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
  return 200;
};

Deno.test("cursors: any change, any other time, operation or key is 400 or 410, never accepted and never a fault", () => {
  const position = fc.oneof(
    fc.stringMatching(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/),
    fc.string({ unit: "binary" }),
  );
  const now = 1_800_000_000_000;
  fc.assert(
    fc.property(pair(position.map((at) => makeCursor(at, now, scope))), ([cursor, other]) => {
      assert.equal(refusedAs(() => openCursor(cursor, now, scope)), 200);
      assert.equal(refusedAs(() => openCursor(other, now, scope)), 400, other);
    }),
    runs(2_000),
  );
  fc.assert(
    fc.property(
      position,
      fc.nat(2 * CURSOR_TTL_MS),
      fc.string(),
      fc.string(),
      (at, age, operation, keyId) => {
        const cursor = makeCursor(at, now, scope);
        const wanted = age < CURSOR_TTL_MS ? 200 : 410;
        assert.equal(
          refusedAs(() => assert.equal(openCursor(cursor, now + age, scope), at.toWellFormed())),
          wanted,
        );
        const elsewhere = [{ operation }, { keyId }, { operation: scope.keyId, keyId: scope.operation }];
        for (const change of elsewhere) {
          assert.equal(refusedAs(() => openCursor(cursor, now + age, { ...scope, ...change })), 400);
        }
      },
    ),
    runs(300),
  );
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      (text) => refusedAs(() => openCursor(text, now, scope)) === 400,
    ),
    runs(500),
  );
});

Deno.test("api_keys: any change of a key is no key, or one that does not match", () => {
  const pepper = new Uint8Array(32).fill(1);
  const bytes = fc.infiniteStream(fc.integer({ min: 0, max: 255 }));
  const key = fc.tuple(fc.constantFrom("live" as const, "test" as const), bytes).map(([mode, stream]) =>
    mintKey(mode, { bytes: (n) => Uint8Array.from({ length: n }, () => stream.next().value as number) }).text
  );
  fc.assert(
    fc.property(pair(key), ([text, other]) => {
      const kept = hashKey(text, pepper);
      assert.ok(parseKey(text) !== null && keyMatches(text, kept, pepper));
      assert.equal(keyMatches(other, kept, pepper), false);
      assert.equal(keyMatches(other, null, pepper), false);
      const parsed = parseKey(other);
      if (parsed !== null) {
        assert.match(other, new RegExp(`^pmk_${parsed.mode}_${parsed.lookup}_[a-z0-9]{52}$`));
      }
    }),
    runs(1_000),
  );
});

Deno.test("sealed values: any bit flipped, any text changed or parts swapped is a SealError, never a plain value", async () => {
  const sealer = makeSealer(new Uint8Array(32).fill(1), new Uint8Array(32).fill(2), realRandom);
  const refuses = (sealed: string, aad: string) =>
    assert.rejects(sealer.open(sealed, aad), (error) => error instanceof SealError, JSON.stringify(sealed));
  const plain = fc.uint8Array({ maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(
      plain,
      plain,
      fc.string(),
      fc.nat(),
      fc.nat(7),
      fc.gen(),
      async (a, b, aad, at, bit, gen) => {
        const sealed = await sealer.seal(a, aad), twin = await sealer.seal(b, aad);
        const i = at % sealed.length;
        const flipped = String.fromCharCode(sealed.charCodeAt(i) ^ (1 << bit));
        await refuses(sealed.slice(0, i) + flipped + sealed.slice(i + 1), aad);
        const changed = gen(() => mutated(fc.constant(sealed), put));
        if (changed !== sealed) await refuses(changed, aad);
        const [head, kid, nonce, text] = sealed.split("."), [, , otherNonce, otherText] = twin.split(".");
        await refuses([head, kid, otherNonce, text].join("."), aad);
        await refuses([head, kid, nonce, otherText].join("."), aad);
        await refuses(sealed, aad + "x");
        await refuses(sealed.slice(0, i), aad);
      },
    ),
    runs(200),
  );
});

Deno.test("ids: a text is an id of a kind exactly when it is the prefix and 26 characters of the alphabet below 8", () => {
  const kinds = Object.keys(PREFIX) as IdKind[];
  const ulid = fc.stringMatching(/^[0-9A-Z]{26}$/);
  const id = fc.tuple(fc.constantFrom(...kinds), ulid).map(([kind, ulid]) => `${PREFIX[kind]}_${ulid}`);
  const alphabet = new Set("0123456789ABCDEFGHJKMNPQRSTVWXYZ");
  fc.assert(
    fc.property(fc.oneof(id, mutated(id, put)), fc.constantFrom(...kinds), (text, kind) => {
      const [prefix, rest, ...more] = text.split("_");
      const good = prefix === PREFIX[kind] && rest?.length === 26 && more.length === 0 &&
        [...rest].every((c) => alphabet.has(c)) && rest[0]! < "8";
      assert.equal(parseId(kind, text), good ? text : null);
    }),
    runs(5_000),
  );
  fc.assert(
    fc.property(fc.anything(), (value) => typeof value === "string" || parseId("event", value) === null),
  );
});

Deno.test("ids: a ULID keeps its time and bytes, in the order of time then bytes, and its floor lies below all of it", () => {
  const ms = fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    random = fc.uint8Array({ minLength: 10, maxLength: 10 });
  fc.assert(
    fc.property(ms, ms, random, random, (t1, t2, r1, r2) => {
      const a = ulidFrom(t1, r1), b = ulidFrom(t2, r2);
      assert.equal(ulidTime(a), t1);
      assert.equal(ulidTime("evt_" + a), t1);
      assert.notEqual(parseId("event", "evt_" + a), null);
      assert.ok(ulidFloor(t1) <= a && (t1 === 0 || ulidFloor(t1) > ulidFrom(t1 - 1, r2)));
      const order = t1 - t2 || r1.map((x, i) => x - r2[i]!).findIndex((d) => d !== 0);
      if (t1 !== t2) assert.equal(a < b, t1 < t2);
      else if (order === -1) assert.equal(a, b);
      else assert.equal(a < b, r1[order]! < r2[order]!);
    }),
    runs(500),
  );
});

function inZone(zone: string, run: () => void): void {
  const home = Deno.env.get("TZ");
  Deno.env.set("TZ", zone);
  try {
    run();
  } finally {
    if (home === undefined) Deno.env.delete("TZ");
    else Deno.env.set("TZ", home);
  }
}

Deno.test("Retry-After: seconds and every HTTP date mean what they say; any other text is null; never over a day", () => {
  const now = Date.UTC(2026, 9, 9, 12);
  const day = (of: Date, length: "long" | "short") =>
    of.toLocaleDateString("en", { weekday: length, timeZone: "UTC" });
  /** The three forms of RFC 9110 §5.6.7: all of them are UTC. */
  const forms = (ms: number): string[] => {
    const imf = new Date(ms).toUTCString(), [, date, month, year, time] = imf.split(" ");
    return [
      imf,
      `${day(new Date(ms), "long")}, ${date}-${month}-${year!.slice(2)} ${time} GMT`,
      `${day(new Date(ms), "short")} ${month} ${String(Number(date)).padStart(2)} ${time} ${year}`,
    ];
  };
  const seconds = fc.integer({ min: -3 * 86_400, max: 3 * 86_400 });
  const wanted = (ms: number) => ms > 0 ? Math.min(ms, DAY_MS) : null;
  // Where the host is does not matter.
  for (const zone of ["America/St_Johns", "Asia/Kolkata", "UTC"]) {
    inZone(zone, () =>
      fc.assert(
        fc.property(seconds, (s) => {
          if (s >= 0) assert.equal(parseRetryAfter(String(s), now), wanted(s * 1_000));
          for (const form of forms(now + s * 1_000)) {
            assert.equal(parseRetryAfter(form, now), wanted(s * 1_000), form);
          }
        }),
        runs(150),
      ));
  }
  const written = fc.oneof(
    seconds.map(String),
    seconds.map((s) => forms(now + s * 1_000)[0]!),
    fc.double().map(String),
  );
  fc.assert(
    fc.property(fc.oneof(mutated(written, put), fc.string({ unit: "binary" })), (text) => {
      const ms = parseRetryAfter(text, now);
      assert.ok(ms === null || Number.isFinite(ms) && ms > 0 && ms <= DAY_MS, `${text}: ${ms}`);
    }),
    runs(3_000),
  );
});

/** The signature header against the `standardwebhooks` package: what it takes, and that it takes nothing else. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import {
  formatSecret,
  parseSecret,
  SECRET_BYTES,
  signatureHeader,
  signV1a,
  v1aSigner,
  v1Signer,
} from "../../lib/signing.ts";
import { mutated, runs } from "./runs.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const secret = fc.uint8Array({ minLength: 24, maxLength: 64 });
const body = fc.oneof(
  fc.json(),
  fc.json({ stringUnit: "binary" }),
  fc.constant('{"a":"\u{1f600} é\\u0000"}'),
);
const id = fc.stringMatching(/^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
/** The package refuses times that are not its own. */
const now = () => Math.floor(Date.now() / 1_000);

const verifies = (secret: Uint8Array, body: string, headers: Record<string, string>): boolean => {
  try {
    new Webhook(formatSecret(secret)).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};
const headersOf = (id: string, timestamp: number, signature: string) => ({
  "webhook-id": id,
  "webhook-timestamp": String(timestamp),
  "webhook-signature": signature,
});

Deno.test("rotation_two_signatures: both secrets verify in an overlap, the old one alone no more, a third one never", () => {
  fc.assert(
    fc.property(secret, secret, secret, body, id, (current, previous, third, body, id) => {
      const at = now();
      const both = headersOf(
        id,
        at,
        signatureHeader([current, previous].map(v1Signer), id, at, bytesOf(body)),
      );
      const one = headersOf(id, at, signatureHeader([v1Signer(current)], id, at, bytesOf(body)));
      const same = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((x, i) => x === b[i]);
      assert.ok(
        verifies(current, body, both) && verifies(previous, body, both) && verifies(current, body, one),
      );
      assert.equal(verifies(previous, body, one), same(current, previous));
      assert.equal(verifies(third, body, both), same(third, current) || same(third, previous));
      // Receivers split at single spaces: nothing else may be there.
      assert.match(both["webhook-signature"], /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
    }),
    runs(100),
  );
});

Deno.test("standard_webhooks: any change of body, id, time or signature is refused", () => {
  const change = fc.constantFrom("body", "id", "time", "signature");
  const put = fc.oneof(
    fc.constantFrom(" ", "v1,", "=", ".", "0", "a"),
    fc.string({ unit: "binary", maxLength: 2 }),
  );
  const changed = (text: string) => mutated(fc.constant(text), put).filter((other) => other !== text);
  fc.assert(
    fc.property(secret, body, id, change, fc.gen(), (secret, body, id, change, gen) => {
      const at = now(), signature = signatureHeader([v1Signer(secret)], id, at, bytesOf(body));
      const headers = headersOf(id, at, signature);
      if (change === "body") {
        const other = gen(() => changed(body)).toWellFormed();
        if (other !== body.toWellFormed()) assert.equal(verifies(secret, other, headers), false);
      } else if (change === "id") {
        assert.equal(verifies(secret, body, { ...headers, "webhook-id": gen(() => changed(id)) }), false);
      } else if (change === "time") {
        assert.equal(verifies(secret, body, headersOf(id, at - 1 - gen(fc.nat, 200), signature)), false);
      } else {
        const other = gen(() => changed(signature));
        // What a receiver finds in any of the parts is enough for it.
        const still = other.split(" ").some((part) => part.split(",", 2).join() === signature);
        assert.equal(verifies(secret, body, { ...headers, "webhook-signature": other }), still, other);
      }
    }),
    runs(300),
  );
});

Deno.test("signing: a secret string has one spelling; any change of it is another secret or none", () => {
  const put = fc.constantFrom("=", "+", "/", "-", "_", " ", "A", "B", "whsec_", "\n");
  const text = secret.map((bytes) => formatSecret(bytes));
  fc.assert(
    fc.property(
      text.chain((text) => fc.tuple(fc.constant(text), mutated(fc.constant(text), put))),
      ([a, b]) => {
        const parsed = parseSecret(b);
        if (parsed !== null) assert.equal(formatSecret(parsed), b);
        if (a !== b && parsed !== null) assert.notDeepEqual(parsed, parseSecret(a));
      },
    ),
    runs(1_000),
  );
});

Deno.test("signing: secrets made here have 32 bytes, those read have 24 to 64, both ends included", () => {
  assert.equal(SECRET_BYTES, 32);
  for (const [length, ok] of [[23, false], [24, true], [32, true], [64, true], [65, false]] as const) {
    assert.equal(parseSecret(formatSecret(new Uint8Array(length).fill(7))) !== null, ok, String(length));
  }
});

Deno.test("v1a: a key of any other length, or under any other name, signs nothing", () => {
  for (const length of [0, 32, 63, 65, 96]) {
    assert.throws(() => v1aSigner(new Uint8Array(length)), TypeError, String(length));
  }
  const key = new Uint8Array(64).fill(7).toBase64();
  assert.match(signV1a("whsk_" + key, "evt_1", 1, bytesOf("{}")), /^v1a,/);
  for (const name of ["whpk_", "whsec", "WHSK_"]) {
    assert.throws(() => signV1a(name + key, "evt_1", 1, bytesOf("{}")), TypeError, name);
  }
});

/** Signatures against the published vectors and against the `standardwebhooks` package as an independent verifier. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import {
  formatSecret,
  parseSecret,
  signatureHeader,
  signedContent,
  signV1,
  signV1a,
  v1Signer,
} from "../../lib/signing.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** Reference §11. */
const VECTORS = [
  {
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: 1614265330,
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    payload: `{"test": 2432232314}`,
    signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  },
  {
    id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
    timestamp: 1649367553,
    secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    payload: `{"email":"test@example.com","username":"test_user"}`,
    signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
  },
];
const WHSK = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
const V1A = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";

Deno.test("standard_webhooks_vectors: both published v1 vectors, byte for byte", () => {
  for (const { id, timestamp, secret, payload, signature } of VECTORS) {
    assert.equal(signV1(parseSecret(secret)!, id, timestamp, encode(payload)), signature);
    assert.equal(
      signatureHeader([v1Signer(parseSecret(secret)!)], id, timestamp, encode(payload)),
      signature,
    );
  }
});

Deno.test("standard_webhooks_vectors: the published ed25519 vector", () => {
  const { id, timestamp, payload } = VECTORS[0]!;
  assert.equal(signV1a(WHSK, id, timestamp, encode(payload)), V1A);
  for (const bad of ["whsec_AAAA", "whsk_AAAA", WHSK.replace("whsk_", "")]) {
    assert.throws(() => signV1a(bad, id, timestamp, encode(payload)), TypeError);
  }
});

Deno.test("standard_webhooks_vectors: the signed content is id, timestamp and body, joined by dots", () => {
  assert.equal(new TextDecoder().decode(signedContent("evt_1", 5, encode(`{"a":"é"}`))), `evt_1.5.{"a":"é"}`);
});

Deno.test("rotation_two_signatures: both during the overlap, new first, one space; one after", () => {
  const [current, previous] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const body = encode("{}");
  const both = signatureHeader([current, previous].map(v1Signer), "evt_1", 1, body);
  assert.equal(both, `${signV1(current, "evt_1", 1, body)} ${signV1(previous, "evt_1", 1, body)}`);
  assert.equal(both.split(" ").length, 2);
  assert.equal(signatureHeader([v1Signer(current)], "evt_1", 1, body), signV1(current, "evt_1", 1, body));
});

Deno.test("standard_webhooks: an independent verifier takes any body under any secret, and nothing changed", () => {
  const secret = fc.uint8Array({ minLength: 24, maxLength: 64 });
  // The package refuses old timestamps: signed as of the verifier's own clock.
  const timestamp = Math.floor(Date.now() / 1000);
  fc.assert(
    fc.property(secret, secret, fc.json(), fc.uuid(), (current, previous, payload, uuid) => {
      const id = "evt_" + uuid;
      const headers = (signature: string, webhookId = id) => ({
        "webhook-id": webhookId,
        "webhook-timestamp": String(timestamp),
        "webhook-signature": signature,
      });
      const signature = signatureHeader([current, previous].map(v1Signer), id, timestamp, encode(payload));
      for (const key of [current, previous]) {
        assert.deepEqual(
          new Webhook(formatSecret(key)).verify(payload, headers(signature)),
          JSON.parse(payload),
        );
      }
      const verifier = new Webhook(formatSecret(current));
      assert.throws(() => verifier.verify(payload + " ", headers(signature)));
      assert.throws(() => verifier.verify(payload, headers(signature, id + "x")));
    }),
    { numRuns: 50 },
  );
});

Deno.test("signing: a body that is part of a larger buffer is signed as that part", () => {
  const whole = encode("xx{}yy"), secret = new Uint8Array(32);
  assert.equal(signV1(secret, "evt_1", 1, whole.subarray(2, 4)), signV1(secret, "evt_1", 1, encode("{}")));
});

Deno.test("signing: one signer signs message after message, each as HMAC-SHA256 of node:crypto does, of a secret of any length", () => {
  for (const length of [24, 32, 63, 64]) {
    const secret = new Uint8Array(length).map((_, i) => 255 - i * 3), sign = v1Signer(secret);
    for (const body of ["{}", "", "é".repeat(600)]) {
      const wanted = createHmac("sha256", secret).update(`evt_1.7.${body}`).digest("base64");
      assert.equal(sign("evt_1", 7, encode(body)), `v1,${wanted}`, `${length} bytes, ${body.length} letters`);
    }
  }
  assert.throws(() => v1Signer(new Uint8Array(65)), TypeError);
});

Deno.test("signing: a secret goes out and comes back, and what is none is refused", () => {
  fc.assert(fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), (bytes) => {
    assert.deepEqual(parseSecret(formatSecret(bytes)), new Uint8Array(bytes));
  }));
  const good = formatSecret(new Uint8Array(32));
  const bad: [string, string][] = [
    [good.slice(6), "no prefix"],
    ["whsec_" + "A".repeat(28), "21 bytes"],
    [formatSecret(new Uint8Array(65)), "65 bytes"],
    [good.replace("=", ""), "no padding"],
    [good.replace("AAA=", "AAB="), "spare bits set"],
    [good + " ", "white space"],
    [good.replace("A", "-"), "base64url"],
    ["", "empty"],
  ];
  for (const [text, reason] of bad) assert.equal(parseSecret(text), null, reason);
});

/** The library's signer and verifier, against the published vectors and the `standardwebhooks` package. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { v1aKeyPair } from "../../lib/signing.ts";
import { sign, verify, type VerifyFault, WebhookVerificationError } from "../../mod.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const WHSK = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
const WHPK = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
const BODY = '{"test": 2432232314}';
const AT = new Date(1_614_265_330_000);
const MESSAGE = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: BODY, at: AT };
const after = (seconds: number) => ({ now: new Date(AT.getTime() + seconds * 1_000) });

Deno.test("standard_webhooks_vectors: the library signs and verifies them, v1 and v1a", () => {
  const headers = sign([SECRET, WHSK], MESSAGE);
  assert.deepEqual(headers["webhook-signature"].split(" "), [
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
  ]);
  assert.deepEqual(verify(SECRET, { ...headers }, BODY, after(0)), {
    id: MESSAGE.id,
    signedAt: AT,
    scheme: "v1",
  });
  assert.equal(
    verify(WHPK, new Headers({ ...headers }), new TextEncoder().encode(BODY), after(0)).scheme,
    "v1a",
  );
});

Deno.test("verify: each fault has its code", () => {
  const headers = { ...sign(SECRET, MESSAGE) };
  const changed = (change: Record<string, string>) => ({ ...headers, ...change });
  const cases: [VerifyFault, Parameters<typeof verify>, string][] = [
    ["missing_header", [SECRET, {}, BODY], "no headers at all"],
    ["missing_header", [SECRET, changed({ "webhook-id": "" }), BODY, after(0)], "an empty id"],
    [
      "malformed_timestamp",
      [SECRET, changed({ "webhook-timestamp": "2021-02-25" }), BODY, after(0)],
      "a date",
    ],
    ["malformed_timestamp", [SECRET, changed({ "webhook-timestamp": "-5" }), BODY, after(0)], "negative"],
    ["too_old", [SECRET, headers, BODY, after(301)], "a replayed request"],
    ["too_new", [SECRET, headers, BODY, after(-301)], "a clock that is wrong"],
    ["too_old", [SECRET, headers, BODY, { ...after(11), toleranceSeconds: 10 }], "a tolerance of its own"],
    ["malformed_secret", ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", headers, BODY, after(0)], "no prefix"],
    ["malformed_secret", ["whpk_AAAA", headers, BODY, after(0)], "a short public key"],
    ["no_usable_signature", [WHPK, headers, BODY, after(0)], "v1 alone, and a v1a key"],
    [
      "no_usable_signature",
      [SECRET, changed({ "webhook-signature": "v2,abc nonsense" }), BODY, after(0)],
      "v2",
    ],
    ["signature_mismatch", [OTHER, headers, BODY, after(0)], "another secret"],
    ["signature_mismatch", [SECRET, headers, BODY + " ", after(0)], "another body"],
    ["signature_mismatch", [SECRET, changed({ "webhook-id": "msg_2" }), BODY, after(0)], "another id"],
    [
      "signature_mismatch",
      [SECRET, changed({ "webhook-signature": "v1,AAAA" }), BODY, after(0)],
      "a short one",
    ],
    [
      "signature_mismatch",
      [SECRET, changed({ "webhook-timestamp": "1614265331" }), BODY, after(0)],
      "another time",
    ],
  ];
  for (const [fault, args, why] of cases) {
    assert.throws(
      () => verify(...args),
      (error) => error instanceof WebhookVerificationError && (assert.equal(error.fault, fault, why), true),
    );
  }
  assert.ok(
    verify(SECRET, headers, BODY, after(300)) && verify(SECRET, headers, BODY, after(-300)),
    "the edges hold",
  );
});

Deno.test("rotation_two_signatures: one of several signatures under one of several secrets is enough", () => {
  const both = { ...sign([OTHER, SECRET], MESSAGE) }, one = { ...sign(SECRET, MESSAGE) };
  for (const secret of [SECRET, OTHER]) assert.ok(verify(secret, both, BODY, after(0)));
  assert.ok(verify([OTHER, SECRET], one, BODY, after(0)), "the receiver rotates");
  assert.throws(() => sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", MESSAGE), TypeError);
});

Deno.test("verify: what the library signs, the standardwebhooks package verifies, and the other way round", () => {
  fc.assert(fc.property(
    fc.uint8Array({ minLength: 24, maxLength: 64 }),
    fc.json(),
    fc.uuid(),
    (bytes, body, id) => {
      const secret = `whsec_${btoa(String.fromCharCode(...bytes))}`, at = new Date();
      new Webhook(secret).verify(body, { ...sign(secret, { id, body }) });
      const signature = new Webhook(secret).sign(id, at, body);
      const headers = {
        "webhook-id": id,
        "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
        "webhook-signature": signature,
      };
      assert.equal(verify(secret, headers, body).id, id);
    },
  ));
});

Deno.test("verify: a key pair of the service's own kind signs and verifies v1a, and no other key does", () => {
  const pair = (n: number) => v1aKeyPair(new Uint8Array(32).fill(n));
  const { key, publicKey } = pair(1), other = pair(2).publicKey;
  const headers = { ...sign(`whsk_${btoa(String.fromCharCode(...key))}`, MESSAGE) };
  assert.equal(verify(publicKey, headers, BODY, after(0)).scheme, "v1a");
  assert.throws(() => verify(other, headers, BODY, after(0)), { fault: "signature_mismatch" });
});

import fc from "fast-check";
import assert from "node:assert/strict";
import { createDecipheriv } from "node:crypto";
import { kidOf, makeSealer, sealAad, SealError, type SealFault } from "../../lib/edge/seal.ts";
import { realRandom } from "../../lib/edge/ports.ts";

const [OLD, NEW, OTHER] = [1, 2, 3].map((n) => new Uint8Array(32).fill(n)) as [
  Uint8Array<ArrayBuffer>,
  Uint8Array<ArrayBuffer>,
  Uint8Array<ArrayBuffer>,
];
const SECRET = new Uint8Array(32).fill(7);
const AAD = sealAad("webhook_endpoints", "secret_enc", "whk_01J00000000000000000000000");
const sealer = makeSealer(OLD, null, realRandom);

const refusedAs = (code: SealFault) => (error: unknown) => error instanceof SealError && error.code === code;

Deno.test("aes_gcm_round_trip_and_aad: what is sealed opens, in the envelope of §7", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), fc.string(), async (plain, aad) => {
      const sealed = await sealer.seal(plain, aad);
      assert.match(sealed, /^pm1\.[0-9a-f]{16}\.[\w-]{16}\.[\w-]{22,}$/);
      assert.deepEqual(await sealer.open(sealed, aad), new Uint8Array(plain));
    }),
    { numRuns: 50 },
  );
  assert.equal(AAD, "pm1|webhook_endpoints|secret_enc|whk_01J00000000000000000000000");
});

Deno.test("aes_gcm_round_trip_and_aad: a ciphertext moved to another row or column fails", async () => {
  const sealed = await sealer.seal(SECRET, AAD);
  const elsewhere = [
    sealAad("webhook_endpoints", "prev_secret_enc", "whk_01J00000000000000000000000"),
    sealAad("webhook_endpoints", "secret_enc", "whk_01J00000000000000000000001"),
    sealAad("other_table", "secret_enc", "whk_01J00000000000000000000000"),
    "",
  ];
  for (const aad of elsewhere) await assert.rejects(sealer.open(sealed, aad), refusedAs("not_authentic"));
});

Deno.test("aes_gcm_round_trip_and_aad: any changed character fails, and the error holds nothing of the value", async () => {
  const sealed = await sealer.seal(SECRET, AAD);
  for (let i = 0; i < sealed.length; i++) {
    const changed = sealed.slice(0, i) + (sealed[i] === "A" ? "B" : "A") + sealed.slice(i + 1);
    await assert.rejects(sealer.open(changed, AAD), (error) => {
      assert.ok(error instanceof SealError, changed);
      return !error.message.includes(changed.slice(-20));
    });
  }
  for (const bad of ["", "pm1", "pm2" + sealed.slice(3), sealed + ".", sealed.slice(0, 50)]) {
    await assert.rejects(sealer.open(bad, AAD), refusedAs("malformed"), bad);
  }
});

Deno.test("aes_gcm: an independent implementation opens it", async () => {
  const [, kid, nonce, ciphertext] = (await sealer.seal(SECRET, AAD)).split(".");
  assert.equal(kid, kidOf(OLD));
  const bytes = new Uint8Array(Uint8Array.fromBase64(ciphertext!, { alphabet: "base64url" }));
  const decipher = createDecipheriv(
    "aes-256-gcm",
    OLD,
    Uint8Array.fromBase64(nonce!, { alphabet: "base64url" }),
  );
  decipher.setAAD(new TextEncoder().encode(AAD));
  decipher.setAuthTag(bytes.subarray(-16));
  const plain = [...decipher.update(bytes.subarray(0, -16)), ...decipher.final()];
  assert.deepEqual(plain, [...SECRET]);
});

Deno.test("master key rotation: old and new open, new ones are sealed under the next key, the rest can be told", async () => {
  const before = await sealer.seal(SECRET, AAD);
  const rotating = makeSealer(OLD, NEW, realRandom);
  const resealed = await rotating.seal(await rotating.open(before, AAD), AAD);
  assert.deepEqual([rotating.isCurrent(before), rotating.isCurrent(resealed)], [false, true]);
  const after = makeSealer(NEW, null, realRandom);
  assert.deepEqual(await after.open(resealed, AAD), SECRET);
  await assert.rejects(after.open(before, AAD), refusedAs("unknown_key"));
  await assert.rejects(makeSealer(OTHER, null, realRandom).open(before, AAD), refusedAs("unknown_key"));
});

Deno.test("aes_gcm: a fresh nonce for every seal, and keys of 32 bytes only", async () => {
  const sealed = await Promise.all(Array.from({ length: 20 }, () => sealer.seal(SECRET, AAD)));
  assert.equal(new Set(sealed.map((s) => s.split(".")[2])).size, 20);
  assert.throws(() => makeSealer(new Uint8Array(31), null, realRandom), RangeError);
});

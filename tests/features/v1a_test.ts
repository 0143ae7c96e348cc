/** `v1a`: an Ed25519 signature beside `v1`, as an endpoint's option. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createPublicKey, verify } from "node:crypto";
import { rotateSecret, updateEndpoint } from "../../actors/endpoints.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { signedContent, v1aKeyPair, v1aSigner } from "../../lib/signing.ts";
import { refused, URL_OK, withApi } from "../routes/support.ts";
import type { Received } from "../support/network.ts";
import { endpointRow } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
/** Reference §11. */
const KEY = Buffer.from(
  "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
  "base64",
);
const PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
const SIGNATURE =
  "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";

/** As a receiver does it, with nothing but the public key. */
function verifies(publicKey: string, signature: string, { id, timestamp, body }: Received): boolean {
  const x = Buffer.from(publicKey.replace("whpk_", ""), "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const content = signedContent(id, timestamp, new TextEncoder().encode(body));
  return verify(null, content, key, Buffer.from(signature.replace("v1a,", ""), "base64"));
}

Deno.test("v1a: the published vector, from its seed to public key and signature", () => {
  const { key, publicKey } = v1aKeyPair(KEY.subarray(0, 32));
  assert.deepEqual(Buffer.from(key), KEY);
  assert.equal(publicKey, PUBLIC);
  const body = new TextEncoder().encode(`{"test": 2432232314}`);
  assert.equal(v1aSigner(key)("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body), SIGNATURE);
});

Deno.test("v1a: the header carries v1 first and v1a behind it, afresh at every attempt; others carry v1 alone", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const { v1a_public } = await w.endpoint(tenant, URL, { signature_versions: ["v1", "v1a"] });
    await w.endpoint(tenant, "https://plain.example.com/");
    w.net.at(URL, (_, nth) => nth === 1 ? 500 : 200);
    await w.append(tenant);
    await w.advance(40_000);
    assert.equal(w.net.to(URL).length, 2);
    for (const request of w.net.to(URL)) {
      const [v1, v1a, ...rest] = request.signature.split(" ");
      assert.deepEqual([v1!.slice(0, 3), v1a!.slice(0, 4), rest], ["v1,", "v1a,", []]);
      assert.ok(verifies(v1a_public!, v1a!, request));
    }
    assert.match(w.net.to("https://plain.example.com/")[0]!.signature, /^v1,[^ ]+$/);
  }));

Deno.test("v1a: a rotation makes a new key too; both keys sign during the overlap, the new one after", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const before = await w.endpoint(tenant, URL, { signature_versions: ["v1", "v1a"] });
    const { row: after, secret } = await w.done(rotateSecret(w.first.endpoints, before.id, 24, null));
    assert.notEqual(after.v1a_public, before.v1a_public);
    await w.append(tenant);
    await w.settle();
    const request = w.net.to(URL)[0]!;
    const [v1, oldV1, v1a, oldV1a, ...rest] = request.signature.split(" ");
    assert.deepEqual([v1, oldV1].map((s) => s!.slice(0, 3)), ["v1,", "v1,"]);
    assert.ok(verifies(after.v1a_public!, v1a!, request));
    assert.ok(verifies(before.v1a_public!, oldV1a!, request));
    assert.deepEqual(rest, []);
    w.secrets.set(before.id, secret);
    await w.jump(25 * HOUR_MS);
    await w.append(tenant);
    await w.settle();
    const last = w.net.to(URL).at(-1)!;
    const versions = last.signature.split(" ").map((part) => part.split(",")[0]);
    assert.deepEqual(versions, ["v1", "v1a"]);
    assert.ok(verifies(after.v1a_public!, last.signature.split(" ")[1]!, last));
  }));

Deno.test("v1a: taken away, the key is gone from the row; asked for again it stays, or a new one is made", () =>
  world(async (w) => {
    const { id, v1a_public } = await w.endpoint(null, URL, { signature_versions: ["v1", "v1a"] });
    const versions = (signature_versions: ("v1" | "v1a")[]) =>
      w.done(updateEndpoint(w.first.endpoints, id, { signature_versions }, null));
    assert.equal((await versions(["v1", "v1a"])).v1a_public, v1a_public);
    await versions(["v1"]);
    assert.deepEqual(Object.keys(await endpointRow(w, id)).filter((name) => name.includes("v1a")), []);
    assert.notEqual((await versions(["v1", "v1a"])).v1a_public, v1a_public);
  }));

Deno.test(
  "v1a: the API shows the public key and never the private one; v1 cannot be left out",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const body = { url: URL_OK, events: ["*"], signature_versions: ["v1", "v1a"] };
    const created = await api.call("POST", "/v1/webhooks", { key, body });
    assert.equal(created.status, 201, created.text);
    assert.match(created.body.public_key, /^whpk_[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(created.body.signature_versions, ["v1", "v1a"]);
    assert.ok(!created.text.includes("whsk_") && !created.text.includes("v1a_enc"));
    const path = `/v1/webhooks/${created.body.id}`;
    const plain = await api.call("PATCH", path, { key, body: { signature_versions: ["v1"] } });
    assert.deepEqual([plain.body.public_key, plain.body.signature_versions], [null, ["v1"]]);
    for (const signature_versions of [["v1a"], [], ["v1", "v1"], ["v2"]]) {
      const answer = await api.call("PATCH", path, { key, body: { signature_versions } });
      refused(answer, 400, "invalid_request");
    }
  }),
);

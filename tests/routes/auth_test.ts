/** Keys, permissions, rates (reference §2). */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import { HOUR_MS, KEY_CACHE_MS, MINUTE_MS } from "../../lib/limits.ts";
import { refused, sameBytes, withApi } from "./support.ts";

const PATH = "/v1/webhooks";

Deno.test(
  "401: unknown, wrong, malformed and absent keys answer the same bytes",
  withApi(async (api) => {
    const { secret } = await api.key();
    const other = secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");
    const unknown = secret.replace(/_test_.{16}_/, "_test_0000000000000000_");
    const table: [reason: string, authorization: string | undefined][] = [
      ["absent", undefined],
      ["wrong secret part", `Bearer ${other}`],
      ["unknown look-up part", `Bearer ${unknown}`],
      ["the other mode", `Bearer ${secret.replace("test", "live")}`],
      ["malformed", "Bearer pmk_test_x"],
      ["upper case", `Bearer ${secret.toUpperCase()}`],
      ["no scheme", secret],
      ["basic", `Basic ${btoa(`x:${secret}`)}`],
      ["empty", "Bearer "],
      ["a list", `Bearer ${secret}, Bearer ${secret}`],
    ];
    const seen = new Set<string>();
    for (const [reason, authorization] of table) {
      const answer = await api.call("GET", PATH, { headers: authorization ? { authorization } : {} });
      assert.equal(answer.status, 401, reason);
      refused(answer, 401, "unauthenticated");
      assert.equal(answer.headers.get("www-authenticate"), "Bearer");
      const headers = [...answer.headers].filter(([name]) => name !== "request-id");
      seen.add(sameBytes(answer) + JSON.stringify(headers));
    }
    assert.equal(seen.size, 1);
    assert.equal((await api.call("GET", PATH, { key: secret })).status, 200);
    assert.equal(
      (await api.call("GET", PATH, { headers: { authorization: `bearer ${secret}` } })).status,
      200,
    );
  }),
);

Deno.test(
  "a revoked key is key_revoked at once in this isolate, an expired one key_expired",
  withApi(async (api) => {
    const admin = (await api.key()).secret;
    const short = await api.key({ expires_at: api.now + HOUR_MS });
    assert.equal((await api.call("GET", PATH, { key: short.secret })).status, 200);
    api.now += HOUR_MS;
    refused(await api.call("GET", PATH, { key: short.secret }), 401, "key_expired");
    const other = await api.key();
    assert.equal((await api.call("GET", PATH, { key: other.secret })).status, 200);
    assert.equal((await api.call("DELETE", `/v1/keys/${other.row.id}`, { key: admin })).status, 204);
    refused(await api.call("GET", PATH, { key: other.secret }), 401, "key_revoked");
  }),
);

Deno.test(
  "a key revoked in another isolate is refused within five seconds here",
  withApi(async (api) => {
    const { secret, row } = await api.key();
    assert.equal((await api.call("GET", PATH, { key: secret })).status, 200);
    await api.kv.set(keys.apiKey(secret.split("_")[2]!), { ...row, revoked_at: api.now });
    api.now += KEY_CACHE_MS - 1;
    assert.equal((await api.call("GET", PATH, { key: secret })).status, 200);
    api.now += 1;
    refused(await api.call("GET", PATH, { key: secret }), 401, "key_revoked");
  }),
);

Deno.test(
  "permissions: each route demands its own; manage includes read",
  withApi(async (api) => {
    const none = (await api.key({ permissions: ["audit:read"] })).secret;
    for (const row of api.rows) {
      if (row.permission === "public") continue;
      if (row.permission === "audit:read") continue;
      const path = row.path.replace(/\{[a-z_]+\}/g, "x"); // refused before its ids are looked at
      const answer = await api.call(row.method, path, { key: none });
      refused(answer, 403, "permission_denied");
      assert.deepEqual(answer.body.error.details, { required: row.permission });
    }
    const manage = (await api.key({ permissions: ["webhooks:manage"] })).secret;
    assert.equal((await api.call("GET", PATH, { key: manage })).status, 200);
    const read = (await api.key({ permissions: ["webhooks:read"] })).secret;
    refused(await api.call("POST", PATH, { key: read, body: {} }), 403, "permission_denied");
  }),
);

Deno.test(
  "rates: 600 a minute a key with RateLimit-Limit, then 429 with Retry-After, and a token a tenth of a second later",
  withApi(async (api) => {
    const { secret } = await api.key({ permissions: ["webhooks:read"] });
    for (let i = 0; i < 600; i++) {
      const { status, headers } = await api.call("GET", "/v1/keys", { key: secret });
      assert.equal(status, 403);
      assert.equal(headers.get("ratelimit-limit"), "600");
      assert.equal(headers.get("ratelimit-remaining"), String(599 - i));
    }
    const limited = await api.call("GET", PATH, { key: secret });
    refused(limited, 429, "rate_limited");
    assert.equal(limited.headers.get("retry-after"), "1");
    assert.equal(limited.headers.get("ratelimit-limit"), "600");
    api.now += 100;
    assert.equal((await api.call("GET", PATH, { key: secret })).status, 200);
    refused(await api.call("GET", PATH, { key: secret }), 429, "rate_limited");
    assert.equal((await api.call("GET", PATH, { key: (await api.key()).secret })).status, 200);
    assert.match(api.services.metrics.render(), /rate_limited_total\{bucket="key"\} 2/);
  }),
);

Deno.test(
  "rates: 1,800 a minute a tenant over all its keys",
  withApi(async (api) => {
    const platform = (await api.key()).secret;
    const tenant = await api.tenant(platform, "busy"), other = await api.tenant(platform, "calm");
    const spend = async (count: number) => {
      const { secret } = await api.key({ level: "tenant", tenant_id: tenant });
      for (let i = 0; i < count; i++) {
        assert.equal((await api.call("GET", `/v1/tenants/${tenant}`, { key: secret })).status, 200);
      }
      return secret;
    };
    await spend(600);
    await spend(600);
    await spend(600);
    const { secret } = await api.key({ level: "tenant", tenant_id: tenant });
    const limited = await api.call("GET", `/v1/tenants/${tenant}`, { key: secret });
    refused(limited, 429, "rate_limited");
    assert.deepEqual(limited.body.error.details, { bucket: "tenant", limit: 1_800 });
    assert.equal(limited.headers.get("ratelimit-limit"), "1800");
    assert.equal((await api.call("GET", `/v1/tenants/${other}`, { key: platform })).status, 200);
  }),
);

Deno.test(
  "rates: failed authentications are limited per client address, which is never logged; a valid key goes on",
  withApi(async (api) => {
    const { secret } = await api.key();
    const address = "2001:db8:1:2:3:4:5:6", neighbour = "2001:db8:1:2::9", far = "2001:db8:1:3::9";
    for (let i = 0; i < 60; i++) {
      assert.equal((await api.call("GET", PATH, { key: "pmk_test_guess", address })).status, 401);
    }
    const limited = await api.call("GET", PATH, { key: "pmk_test_guess", address: neighbour });
    refused(limited, 429, "rate_limited");
    assert.ok(Number(limited.headers.get("retry-after")) >= 1);
    assert.equal((await api.call("GET", PATH, { key: "pmk_test_guess", address: far })).status, 401);
    assert.equal((await api.call("GET", PATH, { key: secret, address })).status, 200);
    api.now += MINUTE_MS;
    assert.equal((await api.call("GET", PATH, { key: "pmk_test_guess", address })).status, 401);
    const said = api.lines.join("\n") + api.services.metrics.render();
    assert.ok(!said.includes("2001:db8") && !said.includes("pmk_test"));
  }),
);

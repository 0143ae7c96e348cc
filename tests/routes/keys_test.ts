/** API keys over HTTP: no key mints a wider one (reference §2). */
import assert from "node:assert/strict";
import { keys as kvKeys } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS } from "../../lib/limits.ts";
import { ALL, type Json, refused, withApi, world } from "./support.ts";

const spec = (level: string, more: Json = {}) => ({
  name: "k",
  level,
  permissions: ["webhooks:read"],
  ...more,
});

Deno.test(
  "keys: create shows the key once, stores its hash alone, and it works",
  withApi(async (api) => {
    const { p } = await world(api);
    const made = await api.call("POST", "/v1/keys", {
      key: p.key,
      body: spec("tenant", { tenant_id: p.tenant }),
    });
    assert.equal(made.status, 201, made.text);
    const { secret, ...shown } = made.body;
    assert.match(secret, /^pmk_test_/);
    assert.deepEqual(shown, {
      id: shown.id,
      name: "k",
      level: "tenant",
      partner_id: null,
      tenant_id: p.tenant,
      identity_id: null,
      permissions: ["webhooks:read"],
      expires_at: null,
      revoked_at: null,
      created_at: "2026-10-09T12:00:00.000Z",
    });
    assert.deepEqual((await api.call("GET", `/v1/keys/${shown.id}`, { key: p.key })).body, shown);
    assert.equal((await api.call("GET", `/v1/tenants/${p.tenant}/webhooks`, { key: secret })).status, 200);
    let stored = "";
    for await (const entry of api.kv.list({ prefix: [] })) stored += JSON.stringify([entry.key, entry.value]);
    assert.ok(!stored.includes(secret.split("_")[3]!));
    assert.ok(kvKeys.apiKeyById(shown.id).length === 2);
  }),
);

Deno.test(
  "keys: what would be wider is refused, what is out of reach is not there",
  withApi(async (api) => {
    const w = await world(api);
    const narrow = (await api.key({
      level: "tenant",
      tenant_id: w.p.tenant,
      permissions: ["keys:manage", "webhooks:manage"],
      expires_at: api.now + DAY_MS,
    })).secret;
    const soon = new Date(api.now + HOUR_MS).toISOString();
    const later = new Date(api.now + 2 * DAY_MS).toISOString();
    const table: [reason: string, key: string, body: Json, status: number, code: string, paths?: string[]][] =
      [
        [
          "tenant → partner",
          w.p.tenantKey,
          spec("partner", { partner_id: w.p.id }),
          403,
          "key_scope_exceeded",
        ],
        ["tenant → platform", w.p.tenantKey, spec("platform"), 403, "key_scope_exceeded"],
        ["partner → platform", w.p.key, spec("platform"), 403, "key_scope_exceeded"],
        ["identity → tenant", w.identityKey, spec("tenant"), 403, "key_scope_exceeded"],
        [
          "another permission",
          narrow,
          spec("tenant", { permissions: ["events:read"], expires_at: soon }),
          403,
          "key_scope_exceeded",
        ],
        ["outlives", narrow, spec("tenant", { expires_at: later }), 403, "key_scope_exceeded"],
        ["never expires", narrow, spec("tenant"), 403, "key_scope_exceeded"],
        ["another tenant", w.p.tenantKey, spec("tenant", { tenant_id: w.q.tenant }), 404, "tenant_not_found"],
        [
          "another partner's tenant",
          w.p.key,
          spec("tenant", { tenant_id: w.q.tenant }),
          404,
          "tenant_not_found",
        ],
        ["another partner", w.p.key, spec("partner", { partner_id: w.q.id }), 404, "partner_not_found"],
        [
          "another tenant's identity",
          w.loneKey,
          spec("identity", { identity_id: w.identity }),
          404,
          "identity_not_found",
        ],
        [
          "in the past",
          w.p.key,
          spec("partner", { expires_at: "2020-01-01T00:00:00Z" }),
          400,
          "invalid_request",
          ["expires_at"],
        ],
        ["no permission", w.p.key, spec("partner", { permissions: [] }), 400, "invalid_request", [
          "permissions",
        ]],
        ["unknown permission", w.p.key, spec("partner", { permissions: ["all"] }), 400, "invalid_request", [
          "permissions.0",
        ]],
        ["an id too many", w.platform, spec("platform", { tenant_id: w.lone }), 400, "invalid_request", [
          "tenant_id",
        ]],
        ["an id too few", w.platform, spec("tenant"), 400, "invalid_request", ["tenant_id"]],
        ["not a time", w.platform, spec("platform", { expires_at: "tomorrow" }), 400, "invalid_request", [
          "expires_at",
        ]],
      ];
    for (const [reason, key, body, status, code, paths] of table) {
      const answer = await api.call("POST", "/v1/keys", { key, body });
      try {
        refused(answer, status, code, paths);
      } catch (error) {
        throw new Error(reason, { cause: error });
      }
    }
    const within = await api.call("POST", "/v1/keys", {
      key: narrow,
      body: spec("tenant", { expires_at: soon }),
    });
    assert.equal(within.status, 201, "manage includes read, and it ends before its maker");
    const identity = await api.call("POST", "/v1/keys", { key: w.identityKey, body: spec("identity") });
    assert.deepEqual([identity.status, identity.body.identity_id], [201, w.identity]);
  }),
);

Deno.test(
  "keys: rotation makes a new key like the old one, which ends with the overlap",
  withApi(async (api) => {
    const { p } = await world(api);
    const old = await api.call("POST", "/v1/keys", {
      key: p.key,
      body: spec("tenant", { tenant_id: p.tenant }),
    });
    const use = (key: string) => api.call("GET", `/v1/tenants/${p.tenant}/webhooks`, { key });
    assert.equal((await use(old.body.secret)).status, 200);
    const path = `/v1/keys/${old.body.id}/rotate`;
    const fresh = await api.call("POST", path, { key: p.key, body: { overlap_hours: 1 } });
    assert.equal(fresh.status, 201, fresh.text);
    assert.notEqual(fresh.body.id, old.body.id);
    assert.deepEqual([(await use(old.body.secret)).status, (await use(fresh.body.secret)).status], [
      200,
      200,
    ]);
    api.now += HOUR_MS;
    refused(await use(old.body.secret), 401, "key_expired");
    assert.equal((await use(fresh.body.secret)).status, 200);
    refused(await api.call("POST", path, { key: p.key }), 409, "invalid_state");
    const at = `/v1/keys/${fresh.body.id}/rotate`;
    const last = await api.call("POST", at, { key: p.key, body: { overlap_hours: 0 } });
    refused(await use(fresh.body.secret), 401, "key_revoked");
    assert.equal((await use(last.body.secret)).status, 200);
    const weak =
      (await api.key({ level: "tenant", tenant_id: p.tenant, permissions: ["keys:manage"] })).secret;
    refused(
      await api.call("POST", `/v1/keys/${last.body.id}/rotate`, { key: weak }),
      403,
      "key_scope_exceeded",
    );
  }),
);

Deno.test(
  "keys: a list shows its scope's keys within reach; revoking twice changes nothing",
  withApi(async (api) => {
    const w = await world(api);
    const names = async (key: string, query = "") => {
      const { body } = await api.call("GET", `/v1/keys${query}`, { key });
      return body.data.map((row: Json) => row.level).sort();
    };
    assert.deepEqual(await names(w.platform), ["platform"]);
    assert.deepEqual(await names(w.p.key), ["partner"]);
    assert.deepEqual(await names(w.p.key, `?tenant_id=${w.p.tenant}`), ["identity", "tenant"]);
    assert.deepEqual(await names(w.p.tenantKey), ["identity", "tenant"]);
    assert.deepEqual(await names(w.identityKey), ["identity"]);
    assert.deepEqual(await names(w.platform, `?partner_id=${w.q.id}`), ["partner"]);
    refused(
      await api.call("GET", `/v1/keys?tenant_id=${w.q.tenant}`, { key: w.p.key }),
      404,
      "tenant_not_found",
    );
    refused(
      await api.call("GET", `/v1/keys?tenant_id=${w.q.tenant}&partner_id=${w.q.id}`, { key: w.platform }),
      400,
      "invalid_request",
      ["partner_id"],
    );
    const { row } = await api.key({ level: "tenant", tenant_id: w.p.tenant, permissions: ALL });
    for (let i = 0; i < 2; i++) {
      assert.equal((await api.call("DELETE", `/v1/keys/${row.id}`, { key: w.p.tenantKey })).status, 204);
    }
    const shown = await api.call("GET", `/v1/keys/${row.id}`, { key: w.p.tenantKey });
    assert.equal(shown.body.revoked_at, "2026-10-09T12:00:00.000Z");
  }),
);

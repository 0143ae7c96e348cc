/** Isolation: what is out of a key's reach answers the same bytes as what does not exist (reference §2). From the table. */
import assert from "node:assert/strict";
import { keys as kvKeys } from "../../lib/keys.ts";
import type { ScopeRule } from "../../routes/table.ts";
import { type Api, refused, sameBytes, URL_OK, withApi, world } from "./support.ts";

/** A well-formed value for every parameter a path may have, which names nothing. */
const ULID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
const PREFIXES: Record<string, string> = {
  tenant_id: "ten",
  partner_id: "ptn",
  webhook_id: "whk",
  event_id: "evt",
  key_id: "key",
  delivery_id: "dlv",
  dead_letter_id: "dlq",
  identity_id: "idn",
  message_id: "msg",
  address_id: "adr",
  domain_id: "dom",
  erasure_request_id: "era",
  export_id: "exp",
};
const TEXTS: Record<string, string> = {
  key: "cart-1",
  name: "order.placed",
  user: `usr_${ULID}`,
  user_id: `usr_${ULID}`,
};

function missing(param: string): string {
  const prefix = PREFIXES[param];
  const value = prefix === undefined ? TEXTS[param] : `${prefix}_${ULID}`;
  assert.ok(value !== undefined, `say here what {${param}} looks like`);
  return value;
}

/** What the rows that name their tenant in the body need beside it. */
const BODIES: Record<string, Record<string, unknown>> = {
  "/v1/erasure-requests": { scope: "identity", identity_id: `idn_${ULID}`, reason: "asked" },
  "/v1/exports": {},
};

const namedBy = (scope: ScopeRule) => typeof scope === "object" && "param" in scope ? scope : null;

/** Something of partner q's tenant for every kind of id a path can name. */
async function foreign(api: Api, q: { key: string; tenant: string; id: string }) {
  const made = await api.call("POST", `/v1/tenants/${q.tenant}/webhooks`, {
    key: q.key,
    body: { url: URL_OK, events: ["*"] },
  });
  assert.equal(made.status, 201, made.text);
  await api.call("PATCH", `/v1/tenants/${q.tenant}`, {
    key: q.key,
    body: { policy: { webhook_text_bytes: 1 } },
  });
  const events = await api.call("GET", `/v1/tenants/${q.tenant}/events`, { key: q.key });
  const keys = await api.call("GET", `/v1/keys?tenant_id=${q.tenant}`, { key: q.key });
  const owned = async (prefix: string, kind: string) => {
    const id = `${prefix}_${api.services.ids.ulid()}`;
    await api.kv.set(kvKeys.ownerOf(id), { kind, tenant: q.tenant, id });
    return id;
  };
  const ids: Record<string, string> = {
    identity_id: await owned("idn", "mailbox"),
    domain_id: await owned("dom", "domain"),
    erasure_request_id: await owned("era", "job"),
    export_id: await owned("exp", "job"),
    tenant_id: q.tenant,
    partner_id: q.id,
    webhook_id: made.body.id,
    event_id: events.body.data[0].id,
    key_id: keys.body.data[0].id,
  };
  return ids;
}

Deno.test(
  "isolation: every route that names a thing answers a foreign one as a missing one, for every level of key",
  withApi(async (api) => {
    const w = await world(api);
    const ids = await foreign(api, w.q);
    let compared = 0;
    for (const row of api.rows) {
      const scope = namedBy(row.scope);
      if (scope === null) continue;
      const inBody = scope.by === "tenant" && scope.in === "body";
      const ask = (key: string, id: string) => {
        const path = row.path.replace(inBody ? "" : `{${scope.param}}`, inBody ? "" : id)
          .replace(/\{([a-z_]+)\}/g, (_, name) => missing(name));
        if (row.method === "GET" || row.method === "DELETE") return api.call(row.method, path, { key });
        return api.call(row.method, path, {
          key,
          body: inBody ? { ...BODIES[row.path]!, [scope.param]: id } : {},
        });
      };
      const what = `${row.method} ${row.path}`;
      assert.equal((await ask(w.platform, missing(scope.param))).status, 404, what);
      for (const key of [w.p.key, w.p.tenantKey, w.loneKey, w.identityKey]) {
        const out = await ask(key, ids[scope.param]!), none = await ask(key, missing(scope.param));
        assert.equal(out.status, 404, `${what}: ${out.text}`);
        assert.equal(sameBytes(out), sameBytes(none), what);
        compared++;
      }
    }
    assert.ok(compared >= 60, `${compared} compared`);
  }),
);

Deno.test(
  "isolation: platform routes refuse every narrower key",
  withApi(async (api) => {
    const w = await world(api);
    for (const row of api.rows) {
      if (row.scope !== "platform") continue;
      const path = row.path.replace(/\{([a-z_]+)\}/g, (_, name) => missing(name));
      for (const key of [w.p.key, w.p.tenantKey, w.identityKey]) {
        refused(await api.call(row.method, path, { key }), 403, "scope_denied");
      }
    }
  }),
);

Deno.test(
  "isolation: what is within reach answers",
  withApi(async (api) => {
    const w = await world(api);
    const made = await api.call("POST", `/v1/tenants/${w.p.tenant}/webhooks`, {
      key: w.p.tenantKey,
      body: { url: URL_OK, events: ["*"] },
    });
    const ofPartner = await api.call("POST", "/v1/webhooks", {
      key: w.p.key,
      body: { url: URL_OK, events: ["*"] },
    });
    const ofPlatform = await api.call("POST", "/v1/webhooks", {
      key: w.platform,
      body: { url: URL_OK, events: ["*"] },
    });
    assert.deepEqual(
      [made, ofPartner, ofPlatform].map(({ body }) => [body.scope, body.tenant_id, body.partner_id]),
      [["tenant", w.p.tenant, null], ["partner", null, w.p.id], ["platform", null, null]],
    );
    const table: [reason: string, key: string, endpoint: string, status: number][] = [
      ["platform sees a tenant's", w.platform, made.body.id, 200],
      ["platform sees a partner's", w.platform, ofPartner.body.id, 200],
      ["a partner sees its tenant's", w.p.key, made.body.id, 200],
      ["a partner sees its own", w.p.key, ofPartner.body.id, 200],
      ["a partner never sees the platform's", w.p.key, ofPlatform.body.id, 404],
      ["another partner sees neither", w.q.key, ofPartner.body.id, 404],
      ["a tenant sees its own", w.p.tenantKey, made.body.id, 200],
      ["a tenant never sees its partner's", w.p.tenantKey, ofPartner.body.id, 404],
      ["an identity reads its tenant's", w.identityKey, made.body.id, 200],
      ["an identity never sees its partner's", w.identityKey, ofPartner.body.id, 404],
    ];
    for (const [reason, key, endpoint, status] of table) {
      assert.equal((await api.call("GET", `/v1/webhooks/${endpoint}`, { key })).status, status, reason);
    }
    const path = `/v1/webhooks/${made.body.id}`;
    refused(await api.call("DELETE", path, { key: w.identityKey }), 403, "scope_denied");
    refused(await api.call("PATCH", path, { key: w.identityKey, body: {} }), 403, "scope_denied");
    const tenants = async (key: string) => (await api.call("GET", "/v1/tenants", { key })).body.data.length;
    assert.deepEqual([await tenants(w.platform), await tenants(w.p.key), await tenants(w.q.key)], [3, 1, 1]);
    refused(
      await api.call("POST", "/v1/webhooks", { key: w.p.tenantKey, body: { url: URL_OK, events: ["*"] } }),
      403,
      "scope_denied",
    );
    refused(
      await api.call("POST", "/v1/tenants", { key: w.p.tenantKey, body: { slug: "x", name: "x" } }),
      403,
      "scope_denied",
    );
  }),
);

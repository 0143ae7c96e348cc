/** Isolation: on every page, what is out of a visitor's reach is the same bytes as what does not exist. From the table. */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import { consoleRows } from "../../routes/console/rows.ts";
import { type Api, withApi, world } from "../routes/support.ts";
import { seed } from "./seed.ts";
import { samePage, signedIn } from "./support.ts";

const ULID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
/** What each parameter names in a tenant of partner q, and a well-formed value that names nothing. */
async function things(api: Api, q: { key: string; tenant: string }) {
  const made = await api.call("POST", `/v1/tenants/${q.tenant}/webhooks`, {
    key: q.key,
    body: { url: "https://hooks.acme.dev/q", events: ["*"] },
  });
  const { body: sent } = await api.call("POST", `/v1/webhooks/${made.body.id}/test`, { key: q.key });
  await api.kv.set(keys.replayRun(made.body.id, ULID), {
    endpoint: made.body.id,
    events: [],
    created_at: api.now,
  });
  return {
    foreign: {
      scope: q.tenant,
      webhook_id: made.body.id,
      delivery_id: sent.id,
      event_id: sent.event_id,
      run: ULID,
    } as Record<string, string>,
    missing: {
      scope: `ten_${ULID}`,
      webhook_id: `whk_${ULID}`,
      delivery_id: `dlv_${ULID}`,
      event_id: `evt_${ULID}`,
      run: ULID,
    } as Record<string, string>,
  };
}

const fill = (path: string, values: Record<string, string>) =>
  path.replace(/\{([a-z_]+)\}/g, (_, name) => values[name] ?? "message.received");

Deno.test(
  "console isolation: every page and form answers a foreign thing as a missing one, for every level of key",
  withApi(async (api) => {
    const w = await world(api);
    const { foreign, missing } = await things(api, w.q);
    const link = await api.call("POST", `/v1/tenants/${w.p.tenant}/portal-links`, {
      key: w.p.tenantKey,
      body: { mode: "manage" },
    });
    const visitors = [w.p.key, w.p.tenantKey, w.loneKey, w.identityKey].map((key) => signedIn(api, key));
    const portal = signedIn(api, w.p.tenantKey).then(async (visitor) => {
      visitor.cookies.clear();
      assert.equal((await visitor.enter(link.body.url)).status, 303);
      return visitor;
    });
    let compared = 0;
    for (const visitor of await Promise.all([...visitors, portal])) {
      for (const { method, path, needs } of consoleRows) {
        if (!/\{(scope|webhook_id|event_id)\}/.test(path)) continue;
        const ask = (values: Record<string, string>) =>
          method === "GET"
            ? visitor.get(fill(path, values))
            : visitor.post(fill(path, values), { once: ULID, overlap_hours: "0" });
        const theirs = await ask(foreign), none = await ask(missing);
        const expected = needs === "audit:read" && visitor === await portal ? 403 : 404;
        assert.equal(theirs.status, expected, `${method} ${path}`);
        assert.equal(samePage(theirs), samePage(none), `${method} ${path}`);
        compared++;
        api.now += 500; // the rate of one key
      }
    }
    assert.ok(compared >= 120, `${compared} compared`);
  }),
);

Deno.test(
  "console isolation: a tenant's pages, lists and live tail hold nothing of another tenant",
  withApi(async (api) => {
    const { acme, birch, foreign } = await seed(api.services);
    const visitor = await signedIn(api, (await api.key({ level: "tenant", tenant_id: birch.id })).secret);
    const own = await visitor.get(`/console/${birch.id}/endpoints`);
    assert.ok(own.text.includes(foreign.url));
    for (const part of ["", "/endpoints", "/events", "/live", "/catalogue", "/audit", "/access"]) {
      const { status, text } = await visitor.get(`/console/${birch.id}${part}`);
      assert.equal(status, 200, part);
      for (const word of ["acme", acme.id, "order.paid", "Operation", "nordlicht"]) {
        assert.ok(!text.includes(word), `${part} shows ${word}`);
      }
    }
  }),
);

Deno.test(
  "console isolation: pages of the whole service are for platform keys",
  withApi(async (api) => {
    const w = await world(api);
    for (const [key, status] of [[w.platform, 200], [w.p.key, 403], [w.p.tenantKey, 403]] as const) {
      const visitor = await signedIn(api, key);
      assert.equal((await visitor.get("/console/dead-letters")).status, status);
      assert.equal((await visitor.get("/console/platform")).status, status === 200 ? 200 : 404);
    }
  }),
);

Deno.test(
  "console isolation: an identity-level key reads its tenant's endpoints and changes none",
  withApi(async (api) => {
    const w = await world(api);
    const made = await api.call("POST", `/v1/tenants/${w.p.tenant}/webhooks`, {
      key: w.p.key,
      body: { url: "https://hooks.acme.dev/p", events: ["*"] },
    });
    const visitor = await signedIn(api, w.identityKey), base = `/console/endpoints/${made.body.id}`;
    const page = await visitor.get(base);
    assert.equal(page.status, 200);
    assert.ok(!/Send a test|Rotate|Delete for good/.test(page.text));
    for (const action of ["disable", "test", "delete", "rotate-secret", "edit", "replay"]) {
      assert.equal(
        (await visitor.post(`${base}/${action}`, { overlap_hours: "0", url: "https://a.acme.dev" })).status,
        403,
        action,
      );
    }
  }),
);

/** Portal links: one use, no wider than who made them, gone with their maker's key. */
import assert from "node:assert/strict";
import { revokeKey } from "../../actors/key_admin.ts";
import { PORTAL_SESSION_MS } from "../../actors/portal.ts";
import { type Api, refused, URL_OK, withApi, world } from "../routes/support.ts";
import { ORIGIN, signedIn, Visitor } from "./support.ts";

async function link(
  api: Api,
  key: string,
  tenant: string,
  body: Record<string, unknown> = { mode: "manage" },
) {
  const answer = await api.call("POST", `/v1/tenants/${tenant}/portal-links`, { key, body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body as { id: string; url: string; expires_at: string };
}

Deno.test(
  "portal link: signs one browser in to its tenant, once; looking at it does not use it up",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const made = await link(api, loneKey, lone);
    assert.match(made.url, new RegExp(`^${ORIGIN}/console/portal\\?token=[\\w-]{43}$`));
    assert.equal(made.expires_at, new Date(api.now + 3_600_000).toISOString());
    const { pathname, search } = new URL(made.url);
    const preview = new Visitor(api);
    for (let i = 0; i < 3; i++) assert.equal((await preview.get(pathname + search)).status, 200);
    const visitor = new Visitor(api);
    assert.equal((await visitor.enter(made.url)).location, "/console");
    assert.equal((await visitor.get("/console")).location, `/console/${lone}`);
    assert.equal((await visitor.get(`/console/${lone}`)).status, 200);
    const second = await new Visitor(api).enter(made.url);
    assert.equal(second.status, 403);
    assert.match(second.text, /This link is over/);
    assert.equal(second.headers.getSetCookie().some((line) => line.includes("session")), false);
  }),
);

Deno.test(
  "portal link: of two browsers at once one gets in",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const { url } = await link(api, loneKey, lone);
    const answers = await Promise.all([1, 2, 3, 4].map(() => new Visitor(api).enter(url)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 403, 403, 403]);
  }),
);

Deno.test(
  "portal link: expires unused, and its session ends after 8 hours",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const short = await link(api, loneKey, lone, { mode: "read", expires_in_minutes: 1 });
    const long = await link(api, loneKey, lone, { mode: "read", expires_in_minutes: 7 * 24 * 60 });
    api.now += 60_000;
    assert.equal((await new Visitor(api).enter(short.url)).status, 403);
    const visitor = new Visitor(api);
    assert.equal((await visitor.enter(long.url)).status, 303);
    api.now += PORTAL_SESSION_MS - 1;
    assert.equal((await visitor.get(`/console/${lone}`)).status, 200);
    api.now += 1;
    assert.equal((await visitor.get(`/console/${lone}`)).status, 303);
  }),
);

Deno.test(
  "portal link: read reads, manage manages, and neither makes links or sees the audit trail",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const made = await api.call("POST", `/v1/tenants/${lone}/webhooks`, {
      key: loneKey,
      body: { url: URL_OK, events: ["*"] },
    });
    const base = `/console/endpoints/${made.body.id}`;
    for (const mode of ["read", "manage"]) {
      const visitor = new Visitor(api);
      await visitor.enter((await link(api, loneKey, lone, { mode })).url);
      for (const path of [`/console/${lone}`, base, `/console/${lone}/events`, `/console/${lone}/live`]) {
        assert.equal((await visitor.get(path)).status, 200, `${mode} ${path}`);
      }
      for (const action of ["disable", "enable", "test"]) {
        assert.equal(
          (await visitor.post(`${base}/${action}`)).status,
          mode === "read" ? 403 : 303,
          `${mode} ${action}`,
        );
      }
      const form = { url: URL_OK, all: "1", once: api.services.ids.ulid() };
      assert.equal(
        (await visitor.post(`/console/${lone}/endpoints/new`, form)).status,
        mode === "read" ? 403 : 200,
      );
      assert.equal(
        (await visitor.post(`/console/${lone}/access`, { mode, minutes: "15" })).status,
        403,
        mode,
      );
      assert.equal((await visitor.get(`/console/${lone}/audit`)).status, 403);
      assert.ok(!(await visitor.get(`/console/${lone}`)).text.includes("Customer access"));
    }
  }),
);

Deno.test(
  "portal link: grants nothing its maker lacks, and nothing outside its maker's reach",
  withApi(async (api) => {
    const { lone, p, q, identityKey } = await world(api);
    const narrow = await api.key({ level: "tenant", tenant_id: lone, permissions: ["webhooks:manage"] });
    const visitor = new Visitor(api);
    await visitor.enter((await link(api, narrow.secret, lone)).url);
    assert.equal((await visitor.get(`/console/${lone}`)).status, 200);
    assert.equal((await visitor.get(`/console/${lone}/events`)).status, 403, "no events:read to give");

    const ask = (key: string, tenant: string, body: unknown = { mode: "read" }) =>
      api.call("POST", `/v1/tenants/${tenant}/portal-links`, { key, body });
    refused(await ask(p.key, q.tenant), 404, "tenant_not_found");
    refused(await ask(identityKey, p.tenant), 403, "scope_denied");
    const reader =
      (await api.key({ level: "tenant", tenant_id: lone, permissions: ["webhooks:read"] })).secret;
    refused(await ask(reader, lone), 403, "permission_denied");
    refused(await ask(narrow.secret, lone, { mode: "own" }), 400, "invalid_request", ["mode"]);
    refused(await ask(narrow.secret, lone, { mode: "read", expires_in_minutes: 0 }), 400, "invalid_request", [
      "expires_in_minutes",
    ]);
    refused(
      await ask(narrow.secret, lone, { mode: "read", expires_in_minutes: 10_081 }),
      400,
      "invalid_request",
      ["expires_in_minutes"],
    );
  }),
);

Deno.test(
  "portal link: revoking the maker's key ends its links and its sessions",
  withApi(async (api) => {
    const { lone } = await world(api);
    const maker = await api.key({ level: "tenant", tenant_id: lone });
    const used = await link(api, maker.secret, lone), unused = await link(api, maker.secret, lone);
    const visitor = new Visitor(api);
    await visitor.enter(used.url);
    assert.equal((await visitor.get(`/console/${lone}`)).status, 200);
    const { services } = api;
    const deps = { ...services, pepper: services.config.keyPepper, mode: "test" as const };
    services.keyCache.forget((await revokeKey(deps, maker.row.id, null)).lookup);
    assert.equal((await visitor.get(`/console/${lone}`)).status, 303);
    assert.equal((await new Visitor(api).enter(unused.url)).status, 403);
  }),
);

Deno.test(
  "portal link: is stored as a hash, audited when made and used, and what is done through it names it",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const made = await link(api, loneKey, lone);
    const token = new URL(made.url).searchParams.get("token")!;
    for await (const entry of api.kv.list({ prefix: [] })) {
      assert.ok(!Deno.inspect(entry, { depth: 9 }).includes(token), String(entry.key));
    }
    const visitor = new Visitor(api);
    await visitor.enter(made.url);
    await visitor.post(`/console/${lone}/endpoints/new`, {
      url: URL_OK,
      all: "1",
      once: api.services.ids.ulid(),
    });
    const { body } = await api.call("GET", "/v1/audit-events", { key: loneKey });
    const told = body.data.slice(0, 3).map((
      row: { action: string; key_id: string },
    ) => [row.action, row.key_id.slice(0, 3)]);
    assert.deepEqual(told, [["webhook.created", "plk"], ["portal_link.used", "plk"], [
      "portal_link.created",
      "key",
    ]]);
    assert.ok(!api.lines.join("\n").includes(token));
  }),
);

Deno.test(
  "portal link: PM_CONSOLE_HOST decides where links lead, whatever host was asked",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    Object.assign(api.services.config, { consoleHost: "console.pylota.dev" });
    assert.ok(
      (await link(api, loneKey, lone)).url.startsWith("https://console.pylota.dev/console/portal?token="),
    );
  }),
);

Deno.test(
  "portal link: a form sent twice makes one link and shows it once",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = await signedIn(api, loneKey), once = api.services.ids.ulid();
    const first = await visitor.post(`/console/${lone}/access`, { mode: "read", minutes: "60", once });
    assert.match(first.text, /console\/portal\?token=/);
    const second = await visitor.post(`/console/${lone}/access`, { mode: "read", minutes: "60", once });
    assert.ok(!second.text.includes("token="));
    assert.match(second.text, /the link was shown then/);
  }),
);

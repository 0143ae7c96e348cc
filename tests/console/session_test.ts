/** Sessions: how one gets in, what the cookie is, and everything that ends it. */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import { FAILED_AUTH_PER_MINUTE } from "../../lib/limits.ts";
import { SESSION_MS } from "../../routes/console/session.ts";
import { revokeKey } from "../../actors/key_admin.ts";
import { withApi, world } from "../routes/support.ts";
import { signedIn, Visitor } from "./support.ts";

Deno.test(
  "console session: a key signs in; the cookie is HttpOnly and Lax, and no page shows the key",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = new Visitor(api);
    const first = await visitor.get("/console");
    assert.deepEqual([first.status, first.location], [303, "/console/sign-in"]);
    const got = await visitor.signIn(loneKey);
    assert.equal(got.location, "/console");
    assert.match(
      got.headers.getSetCookie().join("\n"),
      /^pm_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/m,
    );
    assert.equal((await visitor.get("/console")).location, `/console/${lone}`);
    const page = await visitor.get(`/console/${lone}`);
    assert.equal(page.status, 200);
    assert.ok(!page.text.includes(loneKey));
  }),
);

Deno.test(
  "console session: in production and over TLS the cookie is __Host- and Secure",
  withApi(async (api) => {
    const { loneKey } = await world(api);
    const overTls = new Visitor(api, "https://console.pylota.dev");
    const got = await overTls.signIn(loneKey);
    assert.match(got.headers.getSetCookie().join("\n"), /^__Host-pm_session=[^;]+; Path=\/; .*; Secure$/m);
    Object.assign(api.services.config, { keyMode: "live" });
    const production = new Visitor(api);
    assert.match(
      (await production.signIn(loneKey)).headers.getSetCookie().join("\n"),
      /^__Host-pm_session=.*; Secure$/m,
    );
  }),
);

Deno.test(
  "console session: a cookie given twice, or under the other name, is none",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = await signedIn(api, loneKey);
    const token = visitor.cookies.get("pm_session")!;
    const bare = new Visitor(api);
    for (
      const cookie of [
        `pm_session=${token}; pm_session=${token}`,
        `__Host-pm_session=${token}`,
        `pm_session="${token}"`,
      ]
    ) {
      assert.equal((await bare.get(`/console/${lone}`, { cookie })).status, 303, cookie);
    }
    assert.equal((await bare.get(`/console/${lone}`, { cookie: `pm_session=${token}` })).status, 200);
  }),
);

Deno.test(
  "console session: unknown, wrong and malformed keys get the same page, and too many of them 429",
  withApi(async (api) => {
    const { loneKey } = await world(api);
    const visitor = new Visitor(api);
    await visitor.get("/console/sign-in");
    const wrong = [
      `${loneKey.slice(0, -1)}${loneKey.endsWith("0") ? "1" : "0"}`,
      `pmk_test_${"0".repeat(16)}_${"0".repeat(52)}`,
      "",
      "x y",
      "é\n",
    ];
    const pages = new Set<string>();
    for (const key of wrong) {
      const got = await visitor.post("/console/sign-in", { key });
      assert.equal(got.status, 401);
      pages.add(got.text);
    }
    assert.equal(pages.size, 1);
    for (let i = wrong.length; i < FAILED_AUTH_PER_MINUTE; i++) {
      await visitor.post("/console/sign-in", { key: "no" });
    }
    const refused = await visitor.post("/console/sign-in", { key: "no" });
    assert.equal(refused.status, 429);
    assert.match(refused.text, /Too many failed sign-ins/);
    assert.equal(
      (await visitor.post("/console/sign-in", { key: loneKey })).status,
      303,
      "a good key still works",
    );
  }),
);

Deno.test(
  "console session: signing out, expiry, a revoked key and an expired key end it",
  withApi(async (api) => {
    const { lone, platform } = await world(api);
    const ended = async (visitor: Visitor, why: string) => {
      const got = await visitor.get(`/console/${lone}`);
      assert.deepEqual(
        [got.status, new URL(got.location!, "http://x").searchParams.get("ended")],
        [303, "1"],
        why,
      );
    };
    const key = async (expires_at: number | null = null) =>
      await api.key({ level: "tenant", tenant_id: lone, expires_at });

    const out = await signedIn(api, (await key()).secret);
    const cookie = `pm_session=${out.cookies.get("pm_session")}`;
    assert.equal((await out.post("/console/sign-out")).location, "/console/sign-in");
    assert.equal(out.cookies.has("pm_session"), false);
    assert.equal(
      (await out.get(`/console/${lone}`, { cookie })).status,
      303,
      "the token is worth nothing any more",
    );

    const made = await key(), revoked = await signedIn(api, made.secret);
    const { services } = api;
    const deps = { ...services, pepper: services.config.keyPepper, mode: "test" as const };
    services.keyCache.forget((await revokeKey(deps, made.row.id, null)).lookup);
    await ended(revoked, "revoked");

    const short = await signedIn(api, (await key(api.now + 60_000)).secret);
    const long = await signedIn(api, platform);
    api.now += 60_000;
    await ended(short, "the key expired");
    api.now += SESSION_MS - 60_001;
    assert.equal((await long.get(`/console/${lone}`)).status, 200);
    api.now += 1;
    await ended(long, "the session expired");
  }),
);

Deno.test(
  "console session: only a keyed hash of the token is stored, and rows go with their time",
  withApi(async (api) => {
    const { loneKey } = await world(api);
    const visitor = await signedIn(api, loneKey);
    const token = visitor.cookies.get("pm_session")!;
    let rows = 0;
    for await (const entry of api.kv.list({ prefix: [] })) {
      const shown = Deno.inspect(entry, { depth: 9 });
      assert.ok(!shown.includes(token) && !shown.includes(loneKey), String(entry.key));
      if (entry.key[0] === keys.session("")[0]) rows++;
    }
    assert.equal(rows, 1);
  }),
);

Deno.test(
  "console session: after signing in one comes back to where one was, and nowhere else",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = new Visitor(api);
    const asked = await visitor.get(`/console/${lone}/events?type=a.b`);
    const page = await visitor.get(asked.location!);
    assert.ok(page.text.includes(`value="/console/${lone}/events?type=a.b"`));
    const table: [next: string, to: string][] = [
      [`/console/${lone}/events?type=a.b`, `/console/${lone}/events?type=a.b`],
      ["https://evil.example.com/console", "/console"],
      ["//evil.example.com", "/console"],
      ["/console\\evil", "/console"],
      ["/consolex", "/console"],
      ["/v1/webhooks", "/console"],
      ["/console/\r\nset-cookie: a=b", "/console"],
    ];
    for (const [next, to] of table) {
      const fresh = new Visitor(api);
      await fresh.get("/console/sign-in");
      assert.equal((await fresh.post("/console/sign-in", { key: loneKey, next })).location, to, next);
    }
  }),
);

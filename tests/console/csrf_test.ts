/** Forged requests: every form needs the session's own token and must come from here. From the table. */
import assert from "node:assert/strict";
import { consoleRows, openRows } from "../../routes/console/rows.ts";
import { type Api, URL_OK, withApi, world } from "../routes/support.ts";
import { signedIn, Visitor } from "./support.ts";

const ULID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
const VALUES: Record<string, string> = {
  webhook_id: `whk_${ULID}`,
  delivery_id: `dlv_${ULID}`,
  dead_letter_id: `dlq_${ULID}`,
  scope: `ten_${ULID}`,
};
const pathOf = (path: string) => path.replace(/\{([a-z_]+)\}/g, (_, name) => VALUES[name]!);

async function endpointOf(api: Api, key: string, tenant: string) {
  const { body } = await api.call("POST", `/v1/tenants/${tenant}/webhooks`, {
    key,
    body: { url: URL_OK, events: ["*"] },
  });
  return body.id as string;
}

Deno.test(
  "console csrf: every form is refused without its token, with another session's, and from another site",
  withApi(async (api) => {
    const { loneKey, platform } = await world(api);
    const visitor = await signedIn(api, loneKey), other = await signedIn(api, platform);
    const posts = consoleRows.filter(({ method }) => method === "POST");
    assert.ok(posts.length >= 10);
    for (const { path } of posts) {
      const at = pathOf(path);
      const attempts: [why: string, fields: Record<string, string>, headers: Record<string, string>][] = [
        ["no token", { csrf: "" }, {}],
        ["another's token", { csrf: other.csrf }, {}],
        ["another site", {}, { origin: "https://evil.example.com", "sec-fetch-site": "cross-site" }],
        ["a sibling site", {}, { "sec-fetch-site": "same-site" }],
        ["an opaque origin", {}, { origin: "null", "sec-fetch-site": "" }],
      ];
      for (const [why, fields, headers] of attempts) {
        const got = await visitor.post(at, fields, headers);
        assert.equal(got.status, 403, `${path}, ${why}: ${got.status}`);
        assert.match(got.text, /the form is not from this session/, why);
      }
    }
    assert.equal((await visitor.get("/console/scopes")).status, 404, "still signed in");
  }),
);

Deno.test(
  "console csrf: forms before signing in are bound to the browser that got them",
  withApi(async (api) => {
    const { loneKey } = await world(api);
    for (const { path, method } of openRows.filter(({ method }) => method === "POST")) {
      const bare = new Visitor(api);
      assert.equal(
        (await bare.send(method, path, {
          "content-type": "application/x-www-form-urlencoded",
          origin: bare.origin,
        }, `key=${loneKey}`)).status,
        403,
        path,
      );
      const victim = new Visitor(api), thief = new Visitor(api);
      await victim.get("/console/sign-in");
      await thief.get("/console/sign-in");
      assert.equal((await victim.post(path, { csrf: thief.csrf, key: loneKey })).status, 403, path);
    }
  }),
);

Deno.test(
  "console csrf: the browser's word counts first, then the Origin's host; without either a form is refused",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    Object.assign(api.services.config, { consoleHost: "console.pylota.dev" });
    const id = await endpointOf(api, loneKey, lone), visitor = await signedIn(api, loneKey);
    const table: [reason: string, headers: Record<string, string>, status: number][] = [
      ["neither", {}, 403],
      ["the browser says so", { "sec-fetch-site": "same-origin" }, 303],
      ["… behind a proxy that changes the Host", {
        "sec-fetch-site": "same-origin",
        origin: "https://seen.pylota.dev",
      }, 303],
      ["typed into the address bar", { "sec-fetch-site": "none", origin: visitor.origin }, 403],
      ["our host", { origin: visitor.origin }, 303],
      ["our host behind a proxy that ends TLS", { origin: visitor.origin.replace("http:", "https:") }, 303],
      ["the console's own host", { origin: "https://console.pylota.dev" }, 303],
      ["another port", { origin: `${visitor.origin}:81` }, 403],
      ["another host", { origin: "https://evil.example.com" }, 403],
      ["no address", { origin: "null" }, 403],
    ];
    for (const [reason, headers, status] of table) {
      const sent = { "content-type": "application/x-www-form-urlencoded", ...headers };
      const got = await visitor.send(
        "POST",
        `/console/endpoints/${id}/disable`,
        sent,
        `csrf=${visitor.csrf}`,
      );
      assert.equal(got.status, status, reason);
    }
  }),
);

Deno.test(
  "console csrf: a GET changes nothing and other methods are refused",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const id = await endpointOf(api, loneKey, lone), visitor = await signedIn(api, loneKey);
    for (const action of ["disable", "delete", "rotate-secret", "test"]) {
      const got = await visitor.get(`/console/endpoints/${id}/${action}`);
      assert.deepEqual([got.status, got.headers.get("allow")], [405, "POST"], action);
    }
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      assert.equal((await visitor.send(method, `/console/endpoints/${id}`, {})).status, 405, method);
    }
    assert.equal((await api.call("GET", `/v1/webhooks/${id}`, { key: loneKey })).body.enabled, true);
  }),
);

Deno.test(
  "console csrf: a body that is no form is refused",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const id = await endpointOf(api, loneKey, lone), visitor = await signedIn(api, loneKey);
    const path = `/console/endpoints/${id}/disable`, headers = { origin: visitor.origin };
    const json = { ...headers, "content-type": "application/json" };
    assert.equal(
      (await visitor.send("POST", path, json, JSON.stringify({ csrf: visitor.csrf }))).status,
      403,
    );
    const text = { ...headers, "content-type": "text/plain" };
    assert.equal((await visitor.send("POST", path, text, `csrf=${visitor.csrf}`)).status, 415);
  }),
);

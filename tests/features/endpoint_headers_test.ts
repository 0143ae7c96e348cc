/** Static headers of an endpoint: what may be set, how they are kept, and that they go out with every attempt. */
import assert from "node:assert/strict";
import { updateEndpoint } from "../../actors/endpoints.ts";
import { checkHeaders, isDenied, MAX_ENDPOINT_HEADERS } from "../../lib/endpoint_headers.ts";
import { keys } from "../../lib/keys.ts";
import { SECRET_CACHE_MS } from "../../lib/limits.ts";
import { refused, URL_OK, withApi } from "../routes/support.ts";
import { attempts, endpointRow } from "../support/rows.ts";
import { world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

Deno.test("headers: what frames the request, names another host or passes for a signature is refused", () => {
  const denied =
    "host content-length transfer-encoding connection expect te trailer upgrade proxy-authorization " +
    "proxy-x webhook-id webhook-signature webhook-x content-type content-encoding user-agent cookie Keep-Alive";
  for (const name of denied.split(" ")) {
    assert.ok(isDenied(name), name);
    assert.equal(checkHeaders({ [name]: "x" })[0]?.path, `headers.${name}`);
  }
  for (const name of ["authorization", "x-tenant", "X-Api-Key", "hosting", "accept"]) {
    assert.deepEqual(checkHeaders({ [name]: "x" }), [], name);
  }
});

Deno.test("headers: values are visible ASCII, names are plain, and all of it is small", () => {
  const table: [reason: string, headers: Record<string, string>, path: string][] = [
    ["a line break starts another header", { "x-a": "1\r\nx-b: 2" }, "headers.x-a"],
    ["a bare line feed, too", { "x-a": "1\nx-b: 2" }, "headers.x-a"],
    ["NUL", { "x-a": "1\u00002" }, "headers.x-a"],
    ["not ASCII", { "x-a": "naïve" }, "headers.x-a"],
    ["a space at its edge is cut on the way", { "x-a": " 1" }, "headers.x-a"],
    ["empty", { "x-a": "" }, "headers.x-a"],
    ["too long", { "x-a": "x".repeat(1_025) }, "headers.x-a"],
    ["a name with a space", { "x a": "1" }, "headers.x a"],
    ["a name with a colon", { "x:a": "1" }, "headers.x:a"],
    ["a name with a line break", { "x\r\ny": "1" }, "headers.x\r\ny"],
    ["an empty name", { "": "1" }, "headers."],
    ["no header, but the prototype's", JSON.parse('{"__proto__":"1"}'), "headers.__proto__"],
    ["the same in two cases", { "x-a": "1", "X-A": "2" }, "headers.X-A"],
    [
      "too many",
      Object.fromEntries(Array.from({ length: MAX_ENDPOINT_HEADERS + 1 }, (_, i) => [`x-${i}`, "1"])),
      "headers",
    ],
    [
      "too much in all",
      Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`x-${i}`, "x".repeat(1_000)])),
      "headers",
    ],
  ];
  for (const [reason, headers, path] of table) {
    const errors = checkHeaders(headers);
    assert.deepEqual(errors.map((error) => error.path), [path], reason);
    for (const value of Object.values(headers)) {
      if (value.length > 2) assert.ok(!errors[0]!.message.includes(value), "values are not repeated");
    }
  }
});

Deno.test("headers: go out with every attempt, in lower case, and never replace one of ours", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const headers = { "X-Tenant": "acme", Authorization: "Bearer of-the-receiver" };
    const { id } = await w.endpoint(tenant, URL, { headers });
    await w.endpoint(tenant, "https://plain.example.com/");
    w.net.at(URL, (_, nth) => nth === 1 ? 500 : 200);
    await w.append(tenant);
    await w.advance(40_000);
    await w.done(w.first.system.deliveries.test(id));
    const sent = w.net.to(URL);
    assert.equal(sent.length, 3);
    for (const { headers } of sent) {
      assert.equal(headers["x-tenant"], "acme");
      assert.equal(headers["authorization"], "Bearer of-the-receiver");
      assert.equal(headers["content-type"], "application/json");
    }
    const plain = w.net.to("https://plain.example.com/")[0]!;
    assert.deepEqual(Object.keys(plain.headers).sort(), [
      "content-type",
      "user-agent",
      "webhook-id",
      "webhook-signature",
      "webhook-timestamp",
    ]);
    await w.done(updateEndpoint(w.first.endpoints, id, { headers: { "x-tenant": "other" } }, null));
    w.first.system.directory.invalidate();
    await w.append(tenant);
    await w.settle();
    const last = w.net.to(URL).at(-1)!;
    assert.deepEqual([last.headers["x-tenant"], last.headers["authorization"]], ["other", undefined]);
  }));

Deno.test("headers: the row holds them sealed; moved to another row they do not open and the attempt fails", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const one = await w.endpoint(tenant, URL, { headers: { "x-key": "tell-nobody" } });
    const two = await w.endpoint(tenant, "https://two.example.com/", { headers: { "x-key": "other" } });
    assert.ok(!JSON.stringify(one).includes("tell-nobody"));
    assert.match(one.headers_enc!, /^pm1\./);
    await w.store.set(keys.endpoint(two.id), {
      ...await endpointRow(w, two.id),
      headers_enc: one.headers_enc,
    });
    w.first.system.directory.invalidate();
    w.expected.add("secret");
    await w.append(tenant);
    await w.advance(SECRET_CACHE_MS / 60);
    assert.equal((await attempts(w, two.id))[0]?.error, "secret_unavailable");
    assert.equal(w.net.to("https://two.example.com/").length, 0);
  }));

Deno.test(
  "headers: the API shows names and never a value; a patch gives all of them anew, null takes them away",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const events = ["*"], headers = { Authorization: "Bearer tell-nobody", "x-a": "1" };
    const created = await api.call("POST", "/v1/webhooks", { key, body: { url: URL_OK, events, headers } });
    assert.equal(created.status, 201, created.text);
    const path = `/v1/webhooks/${created.body.id}`;
    assert.deepEqual(created.body.headers, { authorization: "***", "x-a": "***" });
    const read = await api.call("GET", path, { key });
    const listed = await api.call("GET", "/v1/webhooks", { key });
    for (const answer of [created, read, listed]) assert.ok(!answer.text.includes("tell-nobody"));
    const other = await api.call("PATCH", path, { key, body: { description: "d" } });
    assert.deepEqual(other.body.headers, { authorization: "***", "x-a": "***" });
    const fewer = await api.call("PATCH", path, { key, body: { headers: { "x-b": "2" } } });
    assert.deepEqual(fewer.body.headers, { "x-b": "***" });
    const none = await api.call("PATCH", path, { key, body: { headers: null } });
    assert.deepEqual(none.body.headers, {});
    const bad = await api.call("PATCH", path, {
      key,
      body: { headers: { Host: "x", "x-c": "tell\r\nnobody" } },
    });
    refused(bad, 400, "invalid_request", ["headers.Host", "headers.x-c"]);
    assert.ok(!bad.text.includes("nobody"));
    const proto = await api.call("PATCH", path, { key, body: '{"headers":{"__proto__":"x"}}' });
    assert.deepEqual([proto.status === 200 ? proto.body.headers : {}], [{}], "nothing is set by it");
    assert.equal(api.lines.some((line) => line.includes("tell-nobody")), false);
  }),
);

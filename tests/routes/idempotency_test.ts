/** `Idempotency-Key` (reference §1). */
import assert from "node:assert/strict";
import * as z from "zod";
import { IDEMPOTENCY_RUNNING_MS, IDEMPOTENCY_TTL_MS } from "../../lib/limits.ts";
import { idOf, route } from "../../routes/table.ts";
import { refused, URL_OK, withApi, world } from "./support.ts";

const endpoint = { url: URL_OK, events: ["*"] };
const withKey = (key: string) => ({ "idempotency-key": key });

Deno.test(
  "idempotency: the same request answers the first response again, without its secret, which is stored nowhere",
  withApi(async (api) => {
    const { platform } = await world(api);
    const call = { key: platform, body: endpoint, headers: withKey("a b~") };
    const first = await api.call("POST", "/v1/webhooks", call);
    assert.equal(first.status, 201);
    assert.equal(first.headers.get("idempotent-replayed"), null);
    const again = await api.call("POST", "/v1/webhooks", call);
    assert.equal(again.status, 201);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    const { secret, ...rest } = first.body;
    assert.deepEqual(again.body, { ...rest, secret_replayed: false });
    const list = await api.call("GET", "/v1/webhooks", { key: platform });
    assert.equal(list.body.data.length, 1);
    let stored = "";
    for await (const entry of api.kv.list({ prefix: [] })) stored += JSON.stringify(entry.value);
    assert.ok(!stored.includes(secret) && !stored.includes(secret.slice(6)));
  }),
);

Deno.test(
  "idempotency: another request under the key is a conflict; another key, scope or time is not",
  withApi(async (api) => {
    const { platform, p } = await world(api);
    const headers = withKey("one");
    const path = `/v1/tenants/${p.tenant}/webhooks`;
    assert.equal((await api.call("POST", path, { key: platform, body: endpoint, headers })).status, 201);
    const other = { ...endpoint, description: "x" };
    refused(
      await api.call("POST", path, { key: platform, body: other, headers }),
      409,
      "idempotency_conflict",
    );
    refused(
      await api.call("POST", `/v1/tenants/${p.tenant}/webhooks?x=1`, {
        key: platform,
        body: endpoint,
        headers,
      }),
      400,
      "invalid_request",
    );
    const free = async (key: string, at: string) =>
      (await api.call("POST", at, { key, body: other, headers })).status;
    assert.equal(await free(p.tenantKey, path), 201, "another calling key");
    assert.equal(await free(platform, "/v1/webhooks"), 201, "another scope");
    api.now += IDEMPOTENCY_TTL_MS;
    assert.equal(await free(platform, path), 201, "30 days later");
  }),
);

Deno.test("idempotency: a first request still running is 409, and one that died may be taken over", () => {
  const gates: PromiseWithResolvers<void>[] = [];
  const slow = route({
    method: "POST",
    path: "/v1/slow",
    permission: "events:write",
    scope: "platform",
    summary: "Slow.",
    status: 202,
    handler: async () => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      started?.resolve();
      await gate.promise;
      return { body: { ran: gates.length } };
    },
  });
  let started: PromiseWithResolvers<void> | null = null;
  return withApi(async (api) => {
    const { secret: key } = await api.key();
    const call = { key, headers: withKey("k") };
    started = Promise.withResolvers();
    const first = api.call("POST", "/v1/slow", call);
    await started.promise;
    const second = await api.call("POST", "/v1/slow", call);
    refused(second, 409, "request_in_progress");
    assert.equal(second.body.error.retryable, true);
    assert.equal(second.headers.get("retry-after"), "1");
    api.now += IDEMPOTENCY_RUNNING_MS;
    started = Promise.withResolvers();
    const third = api.call("POST", "/v1/slow", call);
    await started.promise;
    gates.forEach((gate) => gate.resolve());
    assert.equal((await first).status, 202);
    assert.equal((await third).status, 202);
    const replayed = await api.call("POST", "/v1/slow", call);
    assert.deepEqual([replayed.headers.get("idempotent-replayed"), replayed.text], [
      "true",
      (await third).text,
    ]);
  }, { extra: [slow] })();
});

Deno.test(
  "idempotency: a refusal or a fault frees the key; a malformed key is refused; a key on another method is nothing",
  withApi(async (api) => {
    const { platform } = await world(api);
    const headers = withKey("k");
    const bad = await api.call("POST", "/v1/webhooks", {
      key: platform,
      body: { ...endpoint, events: ["x.y"] },
      headers,
    });
    refused(bad, 400, "invalid_request", ["events.0"]);
    assert.equal(
      (await api.call("POST", "/v1/webhooks", { key: platform, body: endpoint, headers })).status,
      201,
    );
    for (
      const [reason, text] of [["empty", ""], ["too long", "x".repeat(256)], [
        "not ASCII",
        "caf\u00e9",
      ]] as const
    ) {
      const answer = await api.call("POST", "/v1/webhooks", {
        key: platform,
        body: endpoint,
        headers: withKey(text),
      });
      assert.equal(answer.status, 400, reason);
      refused(answer, 400, "invalid_request", ["Idempotency-Key"]);
    }
    const longest = { key: platform, body: endpoint, headers: withKey("x".repeat(255)) };
    assert.equal((await api.call("POST", "/v1/webhooks", longest)).status, 201);
    assert.equal(
      (await api.call("GET", "/v1/webhooks", { key: platform, headers: withKey("\u00e9") })).status,
      200,
    );
  }),
);

Deno.test("idempotency: an answer over a value's size is kept whole", () => {
  const big = route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/big",
    permission: "events:write",
    scope: { by: "tenant", param: "tenant_id" },
    summary: "Big.",
    params: { tenant_id: idOf("tenant") },
    body: z.strictObject({ n: z.int() }),
    status: 200,
    handler: ({ body }) => ({ body: { text: "\u{1f9ea}x".repeat(body.n) } }),
  });
  return withApi(async (api) => {
    const { lone, loneKey: key } = await world(api);
    const call = { key, body: { n: 40_000 }, headers: withKey("k") };
    const first = await api.call("POST", `/v1/tenants/${lone}/big`, call);
    const again = await api.call("POST", `/v1/tenants/${lone}/big`, call);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.ok(again.text === first.text);
  }, { extra: [big] })();
});

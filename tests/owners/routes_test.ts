/** The owner routes over the whole API: custom owners, event types, domains, erasure and exports (reference §3). */
import assert from "node:assert/strict";
import { createIdentity } from "../../actors/mailbox/identity.ts";
import type { IdentityId, TenantId } from "../../lib/ids.ts";
import { domainRoutes } from "../../routes/domains.ts";
import { eventTypeRoutes } from "../../routes/event_types.ts";
import { jobRoutes } from "../../routes/jobs.ts";
import { ownerRoutes } from "../../routes/owners.ts";
import { type Api, refused, withApi, world } from "../routes/support.ts";

const options = { extra: [...ownerRoutes, ...eventTypeRoutes, ...domainRoutes, ...jobRoutes] };
const api = (body: (api: Api) => Promise<void>) => withApi(body, options);

const ORDER = {
  schema: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
  example: { amount: 1 },
  description: "An order was paid.",
};

async function ready(api: Api) {
  const w = await world(api);
  const at = `/v1/tenants/${w.lone}`, key = w.loneKey;
  const put = await api.call("PUT", `${at}/event-types/order.paid`, { key, body: ORDER });
  assert.equal(put.status, 201, put.text);
  return { ...w, at, key, events: `${at}/owners/cart%2F7%20%C3%A4/events` };
}

Deno.test(
  "a custom event: answered with its owner and event, sent as written, twice by its id is once",
  api(async (api) => {
    const { key, events } = await ready(api);
    const event_id = api.services.ids.next("event");
    const body = `{"data": { "amount":1.50, "2":1e2,"1":-0 },"type":"order.paid","event_id":"${event_id}"}`;
    const first = await api.call("POST", events, { key, body });
    assert.equal(first.status, 201, first.text);
    assert.equal(first.body.owner.key, "cart/7 ä");
    assert.deepEqual(first.body.event, { id: event_id, type: "order.paid", sequence: 1 });
    const read = await api.call("GET", `/v1/events/${event_id}`, { key });
    assert.ok(read.text.endsWith('"sequence":1,"data":{ "amount":1.50, "2":1e2,"1":-0 }}'), read.text);
    const again = await api.call("POST", events, { key, body });
    assert.deepEqual([again.status, again.body.duplicate, again.body.event], [200, true, first.body.event]);
    const keyed = {
      key,
      body: { type: "order.paid", data: { amount: 2 } },
      headers: { "idempotency-key": "k" },
    };
    const once = await api.call("POST", events, keyed), replayed = await api.call("POST", events, keyed);
    assert.equal(once.body.event.sequence, 2);
    assert.equal(replayed.text, once.text);
  }),
);

Deno.test(
  "a custom event that is refused says where and what is nearest",
  api(async (api) => {
    const { key, events } = await ready(api);
    const post = (body: unknown) => api.call("POST", events, { key, body });
    const unknown = await post({ type: "order.payed", data: {} });
    refused(unknown, 400, "invalid_request", ["type"]);
    assert.match(unknown.text, /the nearest is \\"order\.paid\\"/);
    refused(await post({ type: "message.received", data: {} }), 400, "invalid_request", ["type"]);
    refused(await post({ type: "order.paid", data: { amount: "1" } }), 400, "invalid_request", [
      "data.amount",
    ]);
    refused(await post({ type: "order.paid" }), 400, "invalid_request", ["data"]);
    refused(await post({ type: "order.paid", data: {}, x: 1 }), 400, "invalid_request");
    refused(await post({ type: "order.paid", data: {}, event_id: "whk_1" }), 400, "invalid_request", [
      "event_id",
    ]);
    refused(await post('{"type":"order.paid","data":{"amount":1,"amount":2}}'), 400, "invalid_request", [
      "body",
    ]);
    const long = events.replace("cart", "%C3%A4".repeat(130));
    refused(
      await api.call("POST", long, { key, body: { type: "order.paid", data: { amount: 1 } } }),
      400,
      "invalid_request",
      [
        "key",
      ],
    );
  }),
);

Deno.test(
  "a batch is answered in order, and one bad event refuses all",
  api(async (api) => {
    const { key, events, at } = await ready(api);
    const post = (body: unknown) => api.call("POST", `${events}/batch`, { key, body });
    const answer = await post(
      '{"events":[{"type":"order.paid","data":{"amount":1.0}},{"data":{"amount":2.0},"type":"order.paid"}]}',
    );
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual(answer.body.data.map((item: { event: { sequence: number } }) => item.event.sequence), [
      1,
      2,
    ]);
    assert.equal(answer.body.owner.sequence, 2);
    const second = await api.call("GET", `/v1/events/${answer.body.data[1].event.id}`, { key });
    assert.ok(second.text.endsWith('"data":{"amount":2.0}}'));
    const bad = await post({
      events: [{ type: "order.paid", data: { amount: 1 } }, { type: "order.paid", data: {} }],
    });
    refused(bad, 400, "invalid_request", ["events.1.data.amount"]);
    refused(await post({ events: [] }), 400, "invalid_request", ["events"]);
    assert.equal((await api.call("GET", `${at}/events`, { key })).body.data.length, 2);
  }),
);

Deno.test(
  "event types: registered, replaced, read, listed and audited",
  api(async (api) => {
    const { key, at, platform } = await ready(api);
    const put = (name: string, change = {}) =>
      api.call("PUT", `${at}/event-types/${name}`, { key, body: { ...ORDER, ...change } });
    assert.equal((await put("order.paid", { description: "New." })).status, 200);
    assert.equal((await put("order.sent")).status, 201);
    refused(await put("message.received"), 400, "invalid_request", ["name"]);
    refused(await put("nope"), 400, "invalid_request", ["name"]);
    refused(await put("order.x", { schema: { typo: 1 } }), 400, "invalid_request", ["schema.typo"]);
    refused(await put("order.x", { example: {} }), 400, "invalid_request", ["example.amount"]);
    const read = await api.call("GET", `${at}/event-types/order.paid`, { key });
    assert.deepEqual(read.body.schema, ORDER.schema);
    assert.equal(read.body.description, "New.");
    refused(await api.call("GET", `${at}/event-types/order.x`, { key }), 404, "event_type_not_found");
    const list = await api.call("GET", `${at}/event-types?limit=1`, { key });
    assert.deepEqual(list.body.data.map((row: { name: string }) => row.name), ["order.sent"]);
    const rest = await api.call("GET", `${at}/event-types?limit=1&cursor=${list.body.next_cursor}`, { key });
    assert.deepEqual(rest.body.data.map((row: { name: string }) => row.name), ["order.paid"]);
    const audit = await api.call("GET", "/v1/audit-events", { key: platform });
    assert.ok(audit.text.includes("event_type.put"));
  }),
);

Deno.test(
  "domains: each command answers the new state and its event",
  api(async (api) => {
    const { key, at, platform } = await ready(api);
    const added = await api.call("POST", `${at}/domains`, { key, body: { name: "Mail.Acme.dev" } });
    assert.equal(added.status, 201, added.text);
    const { domain } = added.body;
    assert.deepEqual([domain.name, domain.state, added.body.event.type], [
      "mail.acme.dev",
      "pending",
      "domain.created",
    ]);
    const check = (body: unknown) => api.call("POST", `/v1/domains/${domain.id}/checks`, { key, body });
    assert.equal((await check({ result: "verifying" })).body.event, null);
    const verified = await check({ result: "healthy" });
    assert.deepEqual([verified.body.domain.state, verified.body.event.type], ["healthy", "domain.verified"]);
    const issues = [{ code: "spf_missing", record: "TXT", fix: "Add it." }];
    assert.deepEqual((await check({ result: "degraded", issues })).body.domain.issues, issues);
    refused(await check({ result: "verifying" }), 409, "invalid_state");
    refused(await check({ result: "fine" }), 400, "invalid_request", ["result"]);
    refused(
      await api.call("POST", `${at}/domains`, { key, body: { name: "mail.acme.dev" } }),
      409,
      "already_exists",
    );
    refused(
      await api.call("POST", `${at}/domains`, { key, body: { name: "localhost" } }),
      400,
      "invalid_request",
      ["name"],
    );
    const list = await api.call("GET", `${at}/domains`, { key });
    assert.deepEqual(list.body.data, [(await api.call("GET", `/v1/domains/${domain.id}`, { key })).body]);
    refused(
      await api.call("DELETE", `/v1/domains/${domain.id}?reason=evicted`, { key }),
      403,
      "scope_denied",
    );
    const removed = await api.call("DELETE", `/v1/domains/${domain.id}?reason=evicted`, { key: platform });
    assert.deepEqual([removed.body.domain.removed_reason, removed.body.event.type], [
      "evicted",
      "domain.removed",
    ]);
  }),
);

async function identity(api: Api, tenant: TenantId): Promise<IdentityId> {
  const id = api.services.ids.next("identity");
  await api.services.owners.run(
    { kind: "mailbox", tenant, id },
    (tx) => createIdentity(tx, { display_name: "canary" }),
  );
  return id;
}

Deno.test(
  "an erasure answers its receipt, and an export never shows what was erased",
  api(async (api) => {
    const { key, lone, events } = await ready(api);
    const identity_id = await identity(api, lone);
    await api.call("POST", events, { key, body: '{"type":"order.paid","data":{"amount":1.0}}' });
    const exported = await api.call("POST", "/v1/exports", { key, body: { tenant_id: lone } });
    assert.equal(exported.status, 202, exported.text);
    assert.deepEqual([exported.body.export.status, exported.body.export.events], ["completed", 2]);
    assert.equal(exported.body.event.type, "export.completed");
    const pages = `/v1/exports/${exported.body.export.id}/events`;
    const before = await api.call("GET", pages, { key });
    assert.deepEqual(before.body.data.map((e: { type: string }) => e.type), [
      "order.paid",
      "identity.created",
    ]);
    assert.ok(before.text.includes('"data":{"amount":1.0}'));

    const request = { tenant_id: lone, scope: "identity", identity_id, reason: "closed by its owner" };
    const erased = await api.call("POST", "/v1/erasure-requests", { key, body: request });
    assert.equal(erased.status, 202, erased.text);
    const shown = erased.body.erasure_request;
    assert.deepEqual([shown.status, shown.receipt.events, shown.reason], [
      "completed",
      1,
      "closed by its owner",
    ]);
    assert.equal(erased.body.event.type, "erasure.completed");
    const read = await api.call("GET", `/v1/erasure-requests/${shown.id}`, { key });
    assert.deepEqual(read.body, shown);
    const after = await api.call("GET", pages, { key });
    assert.deepEqual(after.body.data.map((e: { type: string }) => e.type), ["order.paid"]);
    api.now += 7 * 86_400_000;
    refused(await api.call("GET", pages, { key }), 404, "job_not_found");
    refused(
      await api.call("GET", `/v1/exports/${shown.id.replace("era", "exp")}`, { key }),
      404,
      "job_not_found",
    );
    assert.ok(!api.lines.join().includes("canary") && !api.lines.join().includes("closed by"));
  }),
);

Deno.test(
  "S1: another tenant's owners answer as if they were not there",
  api(async (api) => {
    const { p, q, lone, loneKey, key, at, identityKey } = await ready(api);
    const { body } = await api.call("POST", `${at}/domains`, { key, body: { name: "a.dev" } });
    const exported = (await api.call("POST", "/v1/exports", { key, body: { tenant_id: lone } })).body.export;
    const type = { key: p.tenantKey, body: ORDER };
    assert.equal((await api.call("PUT", `/v1/tenants/${p.tenant}/event-types/order.paid`, type)).status, 201);
    for (const stranger of [p.key, q.tenantKey, identityKey]) {
      const get = (path: string) => api.call("GET", path, { key: stranger });
      const post = (path: string, body: unknown) => api.call("POST", path, { key: stranger, body });
      refused(await get(`/v1/domains/${body.domain.id}`), 404, "domain_not_found");
      refused(
        await post(`/v1/domains/${body.domain.id}/checks`, { result: "healthy" }),
        404,
        "domain_not_found",
      );
      refused(await get(`/v1/exports/${exported.id}/events`), 404, "job_not_found");
      refused(await get(`${at}/event-types/order.paid`), 404, "tenant_not_found");
      refused(
        await post(`${at}/owners/k/events`, { type: "order.paid", data: { amount: 1 } }),
        404,
        "tenant_not_found",
      );
      const erasure = {
        tenant_id: lone,
        scope: "identity",
        identity_id: api.services.ids.next("identity"),
        reason: "x",
      };
      refused(await post("/v1/erasure-requests", erasure), 404, "tenant_not_found");
      refused(await post("/v1/exports", { tenant_id: lone }), 404, "tenant_not_found");
    }
    const mine = await identity(api, p.tenant);
    const theirs = { tenant_id: lone, scope: "identity", identity_id: mine, reason: "x" };
    refused(
      await api.call("POST", "/v1/erasure-requests", { key: loneKey, body: theirs }),
      404,
      "identity_not_found",
    );
  }),
);

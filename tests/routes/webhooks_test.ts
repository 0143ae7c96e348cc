/** Endpoints over HTTP (reference §3). */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { secretAad } from "../../actors/secrets.ts";
import type { EndpointId } from "../../lib/ids.ts";
import { type EndpointRow, type HealthRow, keys } from "../../lib/keys.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { type Api, type Json, refused, URL_OK, withApi, world } from "./support.ts";

const good = { url: URL_OK, events: ["*"] };

async function rowOf(api: Api, id: EndpointId): Promise<EndpointRow> {
  return (await api.kv.get<EndpointRow>(keys.endpoint(id))).value!;
}

const open = async (api: Api, sealed: string, column: "secret_enc" | "prev_secret_enc", id: string) =>
  `whsec_${Buffer.from(await api.services.sealer.open(sealed, secretAad(column, id))).toString("base64")}`;

Deno.test(
  "webhooks: create answers the endpoint with its secret once; reading never shows it; the row holds it sealed",
  withApi(async (api) => {
    const { p } = await world(api);
    const made = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.tenantKey,
      body: { ...good, events: ["message.received", "domain.verified"], description: "main" },
    });
    assert.equal(made.status, 201, made.text);
    const { secret, ...shown } = made.body;
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(shown, {
      id: shown.id,
      scope: "tenant",
      tenant_id: p.tenant,
      partner_id: null,
      url: URL_OK,
      events: ["message.received", "domain.verified"],
      identity_ids: null,
      description: "main",
      enabled: true,
      disabled_reason: null,
      consecutive_failures: 0,
      last_success_at: null,
      last_failure_at: null,
      previous_secret_expires_at: null,
      headers: {},
      public_key: null,
      signature_versions: ["v1"],
      created_at: "2026-10-09T12:00:00.000Z",
      updated_at: "2026-10-09T12:00:00.000Z",
    });
    const read = await api.call("GET", `/v1/webhooks/${shown.id}`, { key: p.tenantKey });
    assert.deepEqual(read.body, shown);
    const list = await api.call("GET", `/v1/tenants/${p.tenant}/webhooks`, { key: p.tenantKey });
    assert.deepEqual(list.body, { data: [shown], next_cursor: null });
    const row = await rowOf(api, shown.id);
    assert.equal(await open(api, row.secret_enc, "secret_enc", shown.id), secret);
    assert.ok(!JSON.stringify(row).includes(secret.slice(6)));
  }),
);

Deno.test(
  "webhooks: every refused input names its path",
  withApi(async (api) => {
    const { p, q } = await world(api);
    api.dns.set("inside.acme.dev", { a: ["10.0.0.1"], aaaa: [] });
    api.dns.set("mixed.acme.dev", { a: ["1.1.1.1"], aaaa: ["::1"] });
    const foreign = await api.identity(q.tenant), own = await api.identity(p.tenant);
    const table: [reason: string, body: Json, paths: string[]][] = [
      ["nothing", {}, ["url", "events"]],
      ["unknown field", { ...good, secret: "whsec_x" }, ["secret"]],
      ["http", { ...good, url: "http://hooks.acme.dev/" }, ["url"]],
      ["not a URL", { ...good, url: "hooks" }, ["url"]],
      ["user information", { ...good, url: "https://a:b@hooks.acme.dev/" }, ["url"]],
      ["fragment", { ...good, url: "https://hooks.acme.dev/#x" }, ["url"]],
      ["IP literal", { ...good, url: "https://1.1.1.1/" }, ["url"]],
      ["our own host", { ...good, url: "https://api.pylota.dev/" }, ["url"]],
      ["under the platform domain", { ...good, url: "https://x.pylota.dev/" }, ["url"]],
      ["private answer", { ...good, url: "https://inside.acme.dev/" }, ["url"]],
      ["one bad answer of two", { ...good, url: "https://mixed.acme.dev/" }, ["url"]],
      ["too long", { ...good, url: `https://hooks.acme.dev/${"x".repeat(2_048)}` }, ["url"]],
      ["no events", { ...good, events: [] }, ["events"]],
      ["star beside another", { ...good, events: ["*", "message.sent"] }, ["events.0"]],
      ["a type twice", { ...good, events: ["message.sent", "message.sent"] }, ["events.1"]],
      ["unknown type", { ...good, events: ["message.sent", "message.recieved"] }, ["events.1"]],
      ["a foreign identity", { ...good, identity_ids: [own, foreign] }, ["identity_ids.1"]],
      ["no identity", { ...good, identity_ids: [] }, ["identity_ids"]],
      ["not an identity's id", { ...good, identity_ids: [p.tenant] }, ["identity_ids.0"]],
      ["an identity twice", { ...good, identity_ids: [own, own] }, ["identity_ids.1"]],
      ["control characters", { ...good, description: "a\u0000b" }, ["description"]],
      ["three faults at once", { url: "x", events: ["a.b"], identity_ids: [foreign] }, [
        "events.0",
        "identity_ids.0",
        "url",
      ]],
    ];
    for (const [reason, body, paths] of table) {
      const answer = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, { key: p.tenantKey, body });
      try {
        refused(answer, 400, "invalid_request", paths);
      } catch (error) {
        throw new Error(reason, { cause: error });
      }
    }
    const near = await api.call("POST", "/v1/webhooks", {
      key: p.key,
      body: { ...good, events: ["message.recieved"] },
    });
    assert.match(near.body.error.message, /the nearest is "message\.received"/);
    assert.equal(
      (await api.call("GET", `/v1/tenants/${p.tenant}/webhooks`, { key: p.key })).body.data.length,
      0,
    );
  }),
);

Deno.test(
  "webhooks: a tenant's own event types may be asked for, another tenant's may not",
  withApi(async (api) => {
    const { p, q } = await world(api);
    await api.services.eventTypes.put(p.tenant, {
      name: "order.placed",
      description: "",
      schema: { type: "object" },
      example: {},
    });
    const body = { ...good, events: ["order.placed"] };
    const ask = (t: { tenant: string; key: string }) =>
      api.call("POST", `/v1/tenants/${t.tenant}/webhooks`, { key: t.key, body });
    assert.equal((await ask(p)).status, 201);
    refused(await ask(q), 400, "invalid_request", ["events.0"]);
    const typo = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.key,
      body: { ...good, events: ["order.plaecd"] },
    });
    assert.match(typo.body.error.message, /the nearest is "order\.placed"/);
  }),
);

Deno.test(
  "webhooks: at most 20 a scope owner, also when 30 ask at once; a deleted one frees its place",
  withApi(async (api) => {
    const { p, platform } = await world(api);
    const path = `/v1/tenants/${p.tenant}/webhooks`;
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => api.call("POST", path, { key: p.tenantKey, body: good })),
    );
    const made = answers.filter(({ status }) => status === 201);
    assert.deepEqual([made.length, answers.filter(({ status }) => status === 422).length], [20, 10]);
    const over = await api.call("POST", path, { key: p.tenantKey, body: good });
    refused(over, 422, "webhook_limit_reached");
    assert.deepEqual(over.body.error.details, { limit: 20 });
    assert.equal(
      (await api.call("POST", "/v1/webhooks", { key: p.key, body: good })).status,
      201,
      "its partner",
    );
    assert.equal(
      (await api.call("POST", "/v1/webhooks", { key: platform, body: good })).status,
      201,
      "the platform",
    );
    const one = `/v1/webhooks/${made[0]!.body.id}`;
    assert.equal((await api.call("DELETE", one, { key: p.tenantKey })).status, 204);
    refused(await api.call("DELETE", one, { key: p.tenantKey }), 404, "webhook_not_found");
    refused(await api.call("GET", one, { key: p.tenantKey }), 404, "webhook_not_found");
    assert.equal((await api.call("POST", path, { key: p.tenantKey, body: good })).status, 201);
    refused(await api.call("POST", path, { key: p.tenantKey, body: good }), 422, "webhook_limit_reached");
  }),
);

Deno.test(
  "webhooks: PATCH changes what is given and nothing else; enabling resets the streak and the reason",
  withApi(async (api) => {
    const { p } = await world(api);
    const { body: made } = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.key,
      body: good,
    });
    const path = `/v1/webhooks/${made.id}`;
    const patch = (body: Json) => api.call("PATCH", path, { key: p.key, body });
    api.now += 1_000;
    const changed = await patch({ events: ["message.sent"], description: "x" });
    assert.deepEqual([changed.body.events, changed.body.url], [["message.sent"], URL_OK]);
    assert.equal(changed.body.updated_at, "2026-10-09T12:00:01.000Z");
    assert.equal((await patch({ description: null })).body.description, null);
    assert.equal((await patch({ enabled: false })).body.disabled_reason, "manual");

    const health: HealthRow = {
      consecutive_failures: 7,
      failing_since: 1,
      last_success_at: 2,
      last_failure_at: 3,
    };
    await api.kv.set(keys.health(made.id), health);
    const row = await rowOf(api, made.id);
    await api.kv.set(keys.endpoint(made.id), { ...row, enabled: false, disabled_reason: "failing" });
    const shown = await api.call("GET", path, { key: p.key });
    assert.deepEqual(
      [shown.body.consecutive_failures, shown.body.disabled_reason, shown.body.last_failure_at],
      [7, "failing", "1970-01-01T00:00:00.003Z"],
    );
    const enabled = await patch({ enabled: true });
    assert.deepEqual(
      [enabled.body.enabled, enabled.body.disabled_reason, enabled.body.consecutive_failures],
      [true, null, 0],
    );
    assert.deepEqual((await api.kv.get(keys.health(made.id))).value, {
      ...health,
      consecutive_failures: 0,
      failing_since: null,
    });
    for (
      const [body, paths] of [
        [{ url: "http://x" }, ["url"]],
        [{ events: null }, ["events"]],
        [{ enabled: "yes" }, ["enabled"]],
        [{ tenant_id: p.tenant }, ["tenant_id"]],
      ] as [Json, string[]][]
    ) refused(await patch(body), 400, "invalid_request", paths);
  }),
);

Deno.test(
  "webhooks: rotation keeps the old secret for the overlap, sealed for its own column; 0 drops it",
  withApi(async (api) => {
    const { p } = await world(api);
    const { body: made } = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.key,
      body: good,
    });
    const rotate = (body?: Json) =>
      api.call("POST", `/v1/webhooks/${made.id}/rotate-secret`, { key: p.key, body });
    const first = await rotate();
    assert.equal(first.status, 200, first.text);
    assert.notEqual(first.body.secret, made.secret);
    assert.equal(first.body.previous_secret_expires_at, "2026-10-10T12:00:00.000Z");
    const row = await rowOf(api, made.id);
    assert.equal(await open(api, row.secret_enc, "secret_enc", made.id), first.body.secret);
    assert.equal(await open(api, row.prev_secret_enc!, "prev_secret_enc", made.id), made.secret);
    await assert.rejects(open(api, row.prev_secret_enc!, "secret_enc", made.id));
    const second = await rotate({ overlap_hours: 168 });
    assert.equal((await rowOf(api, made.id)).prev_secret_expires_at, api.now + 168 * HOUR_MS);
    const third = await rotate({ overlap_hours: 0 });
    assert.equal(third.body.previous_secret_expires_at, null);
    const last = await rowOf(api, made.id);
    assert.deepEqual([last.prev_secret_enc, last.prev_secret_expires_at], [null, null]);
    assert.notEqual(second.body.secret, third.body.secret);
    for (const hours of [-1, 169, 1.5, "24"]) {
      refused(await rotate({ overlap_hours: hours }), 400, "invalid_request", ["overlap_hours"]);
    }
  }),
);

Deno.test(
  "webhooks: every change writes the revision and an audit row in the same commit",
  withApi(async (api) => {
    const { p } = await world(api);
    const revision = async () => (await api.kv.get(keys.endpointsRevision())).value;
    const seen = [await revision()];
    const { body: made } = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.key,
      body: good,
    });
    seen.push(await revision());
    const path = `/v1/webhooks/${made.id}`;
    await api.call("PATCH", path, { key: p.key, body: { enabled: false } });
    seen.push(await revision());
    await api.call("POST", `${path}/rotate-secret`, { key: p.key });
    seen.push(await revision());
    await api.call("DELETE", path, { key: p.key });
    seen.push(await revision());
    assert.equal(new Set(seen).size, 5);
    const table: [key: string, query: string][] = [[p.tenantKey, ""], [p.key, `?tenant_id=${p.tenant}`], [
      p.key,
      "",
    ]];
    for (const [key, query] of table) {
      const { body } = await api.call("GET", `/v1/audit-events${query}`, { key });
      const about = body.data.filter((row: Json) => row.subject === made.id);
      assert.deepEqual(
        about.map((row: Json) => row.action),
        ["webhook.deleted", "webhook.secret_rotated", "webhook.updated", "webhook.created"],
      );
      assert.equal(about[0].tenant_id, p.tenant);
      assert.match(about[0].key_id, /^key_/);
    }
  }),
);

Deno.test(
  "webhooks: test sends one signed attempt now, also to a disabled endpoint, and answers its row",
  withApi(async (api) => {
    const { p } = await world(api);
    const { body: made } = await api.call("POST", `/v1/tenants/${p.tenant}/webhooks`, {
      key: p.key,
      body: good,
    });
    await api.call("PATCH", `/v1/webhooks/${made.id}`, { key: p.key, body: { enabled: false } });
    const sent = await api.call("POST", `/v1/webhooks/${made.id}/test`, { key: p.key });
    assert.equal(sent.status, 200, sent.text);
    assert.deepEqual(
      [
        sent.body.status,
        sent.body.event_type,
        sent.body.attempt,
        sent.body.webhook_id,
        sent.body.http_status,
      ],
      ["succeeded", "webhook.test", 1, made.id, 204],
    );
    assert.equal(api.dialled.length, 1);
    assert.match(api.dialled[0]!.headers["webhook-signature"] ?? "", /^v1,/);
    const log = await api.call("GET", `/v1/webhooks/${made.id}/deliveries`, { key: p.key });
    assert.deepEqual(log.body.data, [sent.body]);
    const one = await api.call("GET", `/v1/webhooks/${made.id}/deliveries/${sent.body.id}`, { key: p.key });
    assert.deepEqual(one.body, sent.body);
    const event = await api.call("GET", `/v1/events/${sent.body.event_id}`, { key: p.key });
    assert.deepEqual(event.body.data, { message: "hello" });
    refused(
      await api.call("POST", `/v1/webhooks/${made.id}/test`, { key: p.key, body: { n: 1 } }),
      400,
      "invalid_request",
      ["n"],
    );
  }),
);

/** Partners and tenants over HTTP (reference §3). */
import assert from "node:assert/strict";
import { type Job, keys } from "../../lib/keys.ts";
import { type Json, refused, withApi, world } from "./support.ts";

Deno.test(
  "tenants: a partner key's tenants get its partner_id, a platform key's none; the policy has its defaults",
  withApi(async (api) => {
    const { p, platform, lone } = await world(api);
    const mine = await api.call("GET", `/v1/tenants/${p.tenant}`, { key: p.tenantKey });
    assert.equal(mine.body.partner_id, p.id);
    const other = await api.call("GET", `/v1/tenants/${lone}`, { key: platform });
    assert.deepEqual(other.body, {
      id: lone,
      partner_id: null,
      slug: "lone",
      name: "lone",
      policy: { webhook_text_bytes: 16_384, retention: { events_days: 30 } },
      created_at: "2026-10-09T12:00:00.000Z",
      updated_at: "2026-10-09T12:00:00.000Z",
    });
  }),
);

Deno.test(
  "tenants: refused inputs, and a slug is unique, also when two ask at once",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const table: [reason: string, body: Json, paths: string[]][] = [
      ["nothing", {}, ["slug", "name"]],
      ["capitals", { slug: "Acme", name: "a" }, ["slug"]],
      ["ends in a hyphen", { slug: "acme-", name: "a" }, ["slug"]],
      ["too long", { slug: "a".repeat(64), name: "a" }, ["slug"]],
      ["its partner is not the caller's to say", { slug: "a", name: "a", partner_id: "ptn_x" }, [
        "partner_id",
      ]],
      ["text over the cap", { slug: "a", name: "a", policy: { webhook_text_bytes: 65_537 } }, [
        "policy.webhook_text_bytes",
      ]],
      ["no day", { slug: "a", name: "a", policy: { retention: { events_days: 0 } } }, [
        "policy.retention.events_days",
      ]],
      ["unknown policy", { slug: "a", name: "a", policy: { retention: { days: 1 } } }, [
        "policy.retention.days",
      ]],
      ["line break", { slug: "a", name: "a\nb" }, ["name"]],
    ];
    for (const [, body, paths] of table) {
      refused(await api.call("POST", "/v1/tenants", { key, body }), 400, "invalid_request", paths);
    }
    const twice = await Promise.all(
      [1, 2].map(() => api.call("POST", "/v1/tenants", { key, body: { slug: "acme", name: "a" } })),
    );
    assert.deepEqual(twice.map(({ status }) => status).sort(), [201, 409]);
    refused(twice.find(({ status }) => status === 409)!, 409, "already_exists");
  }),
);

Deno.test(
  "tenants: a changed policy sends tenant.policy_updated in the same commit; a changed name does not",
  withApi(async (api) => {
    const { p } = await world(api);
    const path = `/v1/tenants/${p.tenant}`;
    await api.call("PATCH", path, { key: p.tenantKey, body: { name: "New" } });
    await api.call("PATCH", path, { key: p.tenantKey, body: { policy: { webhook_text_bytes: 16_384 } } });
    const events = () => api.call("GET", `${path}/events`, { key: p.tenantKey });
    assert.equal((await events()).body.data.length, 0);
    const changed = await api.call("PATCH", path, {
      key: p.tenantKey,
      body: { policy: { webhook_text_bytes: 0, retention: { events_days: 7 } } },
    });
    assert.deepEqual(changed.body.policy, { webhook_text_bytes: 0, retention: { events_days: 7 } });
    const [event] = (await events()).body.data;
    assert.deepEqual([event.type, event.owner_kind, event.sequence], [
      "tenant.policy_updated",
      "platform",
      null,
    ]);
    const { body } = await api.call("GET", `/v1/events/${event.id}`, { key: p.tenantKey });
    assert.deepEqual(body.data.fields, ["webhook_text_bytes", "retention.events_days"]);
    assert.deepEqual([body.data.by, body.data.policy_version], ["key", 2]);
    const jobs: Job[] = [];
    for await (const { value } of api.kv.list<Job>({ prefix: keys.jobs() })) jobs.push(value);
    assert.deepEqual(jobs, [{ v: 1, kind: "fanout", events: [event.id.slice(4)] }]);
  }),
);

Deno.test(
  "partners: suspending writes the revision, reactivating moves what is parked back to the job rows",
  withApi(async (api) => {
    const { p, platform: key } = await world(api);
    const path = `/v1/partners/${p.id}`;
    const revision = async () => (await api.kv.get(keys.endpointsRevision())).value;
    const before = await revision();
    const suspended = await api.call("PATCH", path, { key, body: { status: "suspended" } });
    assert.equal(suspended.body.status, "suspended");
    assert.notEqual(await revision(), before);
    const parked: Job = { v: 1, kind: "deliver", endpoint: "whk_x" as never, items: [] };
    await api.kv.set(keys.parked(p.id, "01JD8T4Y0Z3M5Q7R9S1V2W4X6Y" as never), parked);
    await api.call("PATCH", path, { key, body: { name: "Still suspended" } });
    const count = async (prefix: Deno.KvKey) => (await Array.fromAsync(api.kv.list({ prefix }))).length;
    assert.deepEqual([await count(keys.parkedAll()), await count(keys.jobs())], [1, 0]);
    await api.call("PATCH", path, { key, body: { status: "active" } });
    assert.deepEqual([await count(keys.parkedAll()), await count(keys.jobs())], [0, 1]);
  }),
);

Deno.test(
  "partners: refused inputs; a partner reads itself and does not lift its own suspension",
  withApi(async (api) => {
    const { p, q, platform: key } = await world(api);
    refused(await api.call("POST", "/v1/partners", { key, body: {} }), 400, "invalid_request", ["name"]);
    refused(
      await api.call("PATCH", `/v1/partners/${p.id}`, { key, body: { status: "gone" } }),
      400,
      "invalid_request",
      ["status"],
    );
    assert.equal((await api.call("GET", `/v1/partners/${p.id}`, { key: p.key })).body.name, "pp");
    refused(await api.call("GET", `/v1/partners/${q.id}`, { key: p.key }), 404, "partner_not_found");
    refused(
      await api.call("PATCH", `/v1/partners/${p.id}`, { key: p.key, body: { status: "active" } }),
      403,
      "scope_denied",
    );
    const list = await api.call("GET", "/v1/partners", { key });
    assert.deepEqual(list.body.data.map((row: Json) => row.id), [q.id, p.id], "newest first");
  }),
);

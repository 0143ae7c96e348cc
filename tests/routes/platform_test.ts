/** Health, readiness, metrics, dead letters, and the OpenAPI document (reference §3, §8). */
import assert from "node:assert/strict";
import { catalogue } from "../../lib/catalogue.ts";
import { type DeadLetter, keys } from "../../lib/keys.ts";
import { type Json, refused, withApi, world } from "./support.ts";

Deno.test(
  "health and readiness are public; a failed check is 503 unavailable with the check",
  withApi(async (api) => {
    const health = await api.call("GET", "/health");
    assert.deepEqual(health.body, { status: "ok", version: "0.0.0", transport: "socket", notes: [] });
    const ready = await api.call("GET", "/ready");
    refused(ready, 503, "unavailable");
    assert.equal(ready.body.error.message, "Cannot take work now: It stops.");
    assert.deepEqual(ready.body.error.details.checks, [{ name: "store", ok: true }, {
      name: "work",
      ok: false,
      message: "It stops.",
    }]);
  }, {
    ready: () =>
      Promise.resolve([{ name: "store", ok: true }, { name: "work", ok: false, message: "It stops." }]),
  }),
);

Deno.test(
  "metrics need platform:ops, count requests by pattern, and gauge the dead letters",
  withApi(async (api) => {
    const w = await world(api);
    refused(await api.call("GET", "/metrics"), 401, "unauthenticated");
    refused(await api.call("GET", "/metrics", { key: w.p.key }), 403, "scope_denied");
    const letter: DeadLetter = {
      id: api.services.ids.next("deadLetter"),
      job: { v: 1, kind: "fanout", events: [] },
      error: "TypeError",
      created_at: api.now,
    };
    await api.kv.set(keys.deadLetter(letter.id), letter);
    await api.call("GET", `/v1/webhooks/whk_7ZZZZZZZZZZZZZZZZZZZZZZZZZ`, { key: w.platform });
    const { text, headers } = await api.call("GET", "/metrics", { key: w.platform });
    assert.match(headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
    assert.match(text, /^dlq_items 1$/m);
    assert.match(text, /^jobs_oldest_due_age_ms 0$/m);
    const { writes } = api.services.jobs.write({ v: 1, kind: "fanout", events: [] }, api.now - 5_000);
    await api.services.committer.commit({ checks: [], writes });
    assert.match(
      (await api.call("GET", "/metrics", { key: w.platform })).text,
      /^jobs_oldest_due_age_ms 5000$/m,
    );
    const line = text.split("\n").find((row) =>
      row.startsWith("http_requests_total") && row.includes("webhook_not_found")
    );
    assert.match(line ?? "", /route="\/v1\/webhooks\/\{webhook_id\}"/);
    assert.ok(!text.includes("7ZZZ"));
  }),
);

Deno.test(
  "metrics are open with PM_METRICS=open",
  withApi(async (api) => {
    assert.equal((await api.call("GET", "/metrics")).status, 200);
  }, { metricsOpen: true }),
);

Deno.test(
  "dead letters are listed newest first and redriven once",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const made: DeadLetter[] = [];
    for (const error of ["A", "B"]) {
      const id = api.services.ids.next("deadLetter");
      const letter: DeadLetter = {
        id,
        job: { v: 1, kind: "fanout", events: [] },
        error,
        created_at: api.now,
      };
      await api.kv.set(keys.deadLetter(id), letter);
      made.push(letter);
    }
    const list = await api.call("GET", "/v1/platform/dlq", { key });
    assert.deepEqual(list.body.data.map((row: Json) => row.error), ["B", "A"]);
    const path = `/v1/platform/dlq/${made[0]!.id}/redrive`;
    const redriven = await api.call("POST", path, { key });
    assert.deepEqual([redriven.status, redriven.body.id], [202, made[0]!.id]);
    refused(await api.call("POST", path, { key }), 404, "dead_letter_not_found");
    assert.equal((await Array.fromAsync(api.kv.list({ prefix: keys.jobs() }))).length, 1);
  }),
);

Deno.test(
  "openapi: 3.1, every row with its schemas, every event type as a webhook, no schema left out",
  withApi(async (api) => {
    const { status, body: doc } = await api.call("GET", "/openapi.json");
    assert.equal(status, 200);
    assert.equal(doc.openapi, "3.1.0");
    const operations = new Set<string>();
    for (const row of api.rows) {
      const operation = doc.paths[row.path]?.[row.method.toLowerCase()];
      assert.ok(operation, `${row.method} ${row.path}`);
      assert.ok(!operations.has(operation.operationId), operation.operationId);
      operations.add(operation.operationId);
      const named = [...row.path.matchAll(/\{([a-z_]+)\}/g)].map((match) => match[1]);
      const inPath = operation.parameters.filter((p: Json) => p.in === "path").map((p: Json) => p.name);
      assert.deepEqual(inPath, named);
      assert.equal(operation["x-permission"] ?? "public", row.permission);
      assert.equal(operation.requestBody !== undefined, row.body !== null);
      assert.ok(operation.responses[row.status]);
    }
    assert.deepEqual(Object.keys(doc.webhooks), [...catalogue.keys()]);
    const received = doc.webhooks["message.received"].post.requestBody.content["application/json"].schema;
    assert.deepEqual(received.properties.type, { const: "message.received" });
    assert.ok(received.properties.data.properties.message.properties.subject);
    const disabled = doc.webhooks["webhook.disabled"].post.requestBody.content["application/json"].schema;
    assert.deepEqual(disabled.properties.sequence, { type: "null" });
    const bad: string[] = [];
    walk(doc, (node, path) => {
      if (typeof node.$ref === "string" && !node.$ref.startsWith("#/components/")) bad.push(path);
      if (typeof node.pattern === "string") new RegExp(node.pattern, "u");
    });
    assert.deepEqual(bad, []);
  }),
);

function walk(value: Json, visit: (node: Json, path: string) => void, path = ""): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) visit(value, path);
  for (const [key, inner] of Object.entries(value)) walk(inner, visit, `${path}/${key}`);
}

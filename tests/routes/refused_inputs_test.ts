/**
 * What each row refuses, with the exact error: a table a row for what is particular to it, and from the route table itself what every
 * row of its kind refuses. A refused request changes nothing. A new row fails here until it says what it refuses.
 */
import assert from "node:assert/strict";
import * as z from "zod";
import { MAX_BODY_BYTES } from "../../lib/limits.ts";
import type { Route } from "../../routes/table.ts";
import { type Answer, type Api, type Json, refused, withApi } from "./support.ts";
import { type Good, goodRequest, nameOf, type Things, things } from "./things.ts";

/** What is laid over the good body (undefined takes a field away), or a query. */
type Change = Record<string, unknown> | string;
type Case = [reason: string, change: Change, errors: Record<string, string>];

const NOBODY = "idn_7ZZZZZZZZZZZZZZZZZZZZZZZZZ";

const TABLE: Record<string, Case[]> = {
  "POST /v1/tenants": [
    ["nothing", { slug: undefined, name: undefined }, { slug: "is required", name: "is required" }],
    ["a slug in capitals", { slug: "Acme" }, {
      slug: "must be 1 to 63 lower-case letters, digits or inner hyphens",
    }],
    ["a name that is no text", { name: 1 }, { name: "must be a string" }],
    ["an empty name", { name: "" }, { name: "must not be empty" }],
    ["a cap over the largest", { policy: { webhook_text_bytes: 65537 } }, {
      "policy.webhook_text_bytes": "must be at most 65536",
    }],
    ["no day of retention", { policy: { retention: { events_days: 0 } } }, {
      "policy.retention.events_days": "must be at least 1",
    }],
    ["an unknown field deep down", { policy: { retention: { days: 1 } } }, {
      "policy.retention.days": "is not a known field",
    }],
  ],
  "PATCH /v1/tenants/{tenant_id}": [
    ["a slug cannot change", { slug: "new" }, { slug: "is not a known field" }],
    ["half a byte", { policy: { webhook_text_bytes: 1.5 } }, {
      "policy.webhook_text_bytes": "must be a whole number",
    }],
  ],
  "POST /v1/partners": [
    ["no name", { name: undefined }, { name: "is required" }],
  ],
  "PATCH /v1/partners/{partner_id}": [
    ["an unknown status", { status: "gone" }, { status: "must be one of: active, suspended" }],
  ],
  "POST /v1/keys": [
    ["nothing", { name: undefined, level: undefined, permissions: undefined, identity_id: undefined }, {
      name: "is required",
      level: "is required",
      permissions: "is required",
    }],
    ["an unknown level", { level: "root" }, { level: "must be one of: platform, partner, tenant, identity" }],
    ["no permission", { permissions: [] }, { permissions: "must not be empty" }],
    ["an unknown permission", { permissions: ["everything"] }, {
      "permissions.0":
        "must be one of: webhooks:read, webhooks:manage, events:read, events:write, tenants:manage, partners:manage, keys:manage, erasure:manage, audit:read, platform:ops",
    }],
    ["an id that does not go with the level", { level: "platform" }, {
      identity_id: "does not go with the level platform",
    }],
    ["an id the level needs", { level: "tenant", identity_id: undefined }, {
      tenant_id: "is needed for this level",
    }],
    ["an expiry in the past", { expires_at: "2020-01-01T00:00:00Z" }, {
      expires_at: "must be in the future",
    }],
    ["an expiry that is no time", { expires_at: "tomorrow" }, { expires_at: "must be an RFC 3339 time" }],
  ],
  "GET /v1/keys": [
    ["two scopes", "partner_id=ptn_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", { partner_id: "does not go with tenant_id" }],
  ],
  "POST /v1/keys/{key_id}/rotate": [
    ["an overlap over a week", { overlap_hours: 169 }, { overlap_hours: "must be at most 168" }],
  ],
  "POST /v1/webhooks": [
    ["nothing", { url: undefined, events: undefined }, { url: "is required", events: "is required" }],
    ["a type of one tenant", { events: ["order.paid"] }, {
      "events.0": 'unknown event type "order.paid"; the nearest is "erasure.failed"',
    }],
  ],
  "POST /v1/tenants/{tenant_id}/webhooks": [
    ["http", { url: "http://hooks.acme.dev/" }, { url: "must use https (scheme)" }],
    ["an address", { url: "https://203.0.113.9/" }, {
      url: "must name its host, not give an IP address (ip_literal)",
    }],
    ["an inner name", { url: "https://db.internal/" }, {
      url: "must not lead to db.internal, which is not a public host (refused_name)",
    }],
    ["the service itself", { url: "https://api.pylota.dev/" }, {
      url: "must not lead to api.pylota.dev, which is not a public host (refused_name)",
    }],
    ["no URL at all", { url: "hooks" }, { url: "must start with https:// and a host name (scheme)" }],
    ["a misspelt type", { events: ["message.recieved"] }, {
      "events.0": 'unknown event type "message.recieved"; the nearest is "message.received"',
    }],
    ["a star among others", { events: ["*", "message.sent"] }, { "events.0": '"*" stands alone' }],
    ["a type twice", { events: ["message.sent", "message.sent"] }, { "events.1": "is listed twice" }],
    ["no type", { events: [] }, { events: "must not be empty" }],
    ["an identity that is not there", { identity_ids: [NOBODY] }, {
      "identity_ids.0": "is not an identity this endpoint can see",
    }],
    ["an empty identity filter", { identity_ids: [] }, { identity_ids: "must not be empty" }],
    ["a header of ours", { headers: { "Webhook-Id": "x" } }, {
      "headers.Webhook-Id": "is set by the delivery itself and cannot be changed",
    }],
    ["no v1", { signature_versions: ["v1a"] }, { signature_versions: "must hold v1" }],
  ],
  "PATCH /v1/webhooks/{webhook_id}": [
    ["the secret", { secret: "whsec_x" }, { secret: "is not a known field" }],
    ["a word for a switch", { enabled: "yes" }, { enabled: "must be true or false" }],
    ["a URL that is refused", { url: "https://localhost/" }, {
      url: "must have a host name of two labels or more (single_label)",
    }],
  ],
  "POST /v1/webhooks/{webhook_id}/rotate-secret": [
    ["an overlap over a week", { overlap_hours: 169 }, { overlap_hours: "must be at most 168" }],
    ["an overlap below none", { overlap_hours: -1 }, { overlap_hours: "must be at least 0" }],
  ],
  "GET /v1/webhooks/{webhook_id}/deliveries": [
    ["an unknown status", "status=late", { status: "must be one of: succeeded, failed, dead" }],
    ["no time", "after=yesterday", { after: "must be an RFC 3339 time" }],
    ["an id of another kind", "event_id=msg_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", {
      event_id: "must be an event id (evt_ and a ULID)",
    }],
  ],
  "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": [
    ["a field", { force: true }, { force: "is not a known field" }],
  ],
  "POST /v1/webhooks/{webhook_id}/replay": [
    ["neither ids nor a window", { event_ids: undefined }, { event_ids: "is required" }],
    ["no ids", { event_ids: [] }, { event_ids: "must not be empty" }],
    ["an id that is none", { event_ids: ["evt_1"] }, {
      "event_ids.0": "must be an event id (evt_ and a ULID)",
    }],
    ["a window that ends before it begins", {
      event_ids: undefined,
      since: "2026-10-02T00:00:00Z",
      until: "2026-10-01T00:00:00Z",
    }, { until: "must be after since" }],
    ["a status nothing has", {
      event_ids: undefined,
      since: "2026-10-01T00:00:00Z",
      until: "2026-10-02T00:00:00Z",
      status: "late",
    }, { status: "must be one of: succeeded, failed, dead" }],
  ],
  "POST /v1/webhooks/{webhook_id}/test": [
    ["a field", { message: "hi" }, { message: "is not a known field" }],
  ],
  "GET /v1/tenants/{tenant_id}/events": [
    ["no time", "since=1", { since: "must be an RFC 3339 time" }],
    ["an owner with no name", "owner_id=", { owner_id: "must not be empty" }],
  ],
  "PUT /v1/tenants/{tenant_id}/notification-preferences/{user_id}": [
    ["nothing", { kind: undefined, mode: undefined }, { kind: "is required", mode: "is required" }],
    ["an unknown mode", { mode: "loud" }, { mode: "must be one of: off, on" }],
  ],
  "POST /v1/tenants/{tenant_id}/identities": [
    ["no name", { display_name: undefined }, { display_name: "is required" }],
    ["an address that is none", { address: "ada" }, { address: "must be a mail address" }],
  ],
  "PATCH /v1/identities/{identity_id}": [
    ["a status", { status: "paused" }, { status: "is not a known field" }],
  ],
  "DELETE /v1/identities/{identity_id}": [
    ["an unknown parameter", "now=1", { now: "is not a known parameter" }],
  ],
  "POST /v1/identities/{identity_id}/pause": [
    ["abuse without its metrics", { reason: "abuse_threshold" }, {
      metrics: "go with the reason abuse_threshold, and only with it",
    }],
    ["metrics without abuse", { metrics: { x: 1 } }, {
      metrics: "go with the reason abuse_threshold, and only with it",
    }],
  ],
  "POST /v1/identities/{identity_id}/resume": [
    ["a field", { now: true }, { now: "is not a known field" }],
  ],
  "POST /v1/identities/{identity_id}/addresses": [
    ["an address that is none", { address: "second at acme.dev" }, { address: "must be a mail address" }],
  ],
  "POST /v1/identities/{identity_id}/addresses/{address_id}/activate": [
    ["a field", { now: true }, { now: "is not a known field" }],
  ],
  "POST /v1/identities/{identity_id}/addresses/{address_id}/retire": [
    ["a field", { now: true }, { now: "is not a known field" }],
  ],
  "POST /v1/identities/{identity_id}/addresses/{address_id}/promote": [
    ["years", { retire_after_days: 100000 }, { retire_after_days: "must be at most 365" }],
  ],
  "POST /v1/identities/{identity_id}/messages": [
    ["no sender", { from: undefined }, { from: "is required" }],
    ["a recipient without an address", { to: [{ name: "x" }] }, { "to.0.address": "is required" }],
    ["a secret copy on the way in", { bcc: ["x@y.dev"] }, { bcc: "goes with outbound messages only" }],
    ["a message id that is none", { message_id: "1" }, {
      message_id: "must be a message id in angle brackets",
    }],
    ["a verification's value", { verification: { kind: "code", value: "123456" } }, {
      "verification.value": "is not a known field",
    }],
    ["a sender of somebody else", { direction: "outbound" }, {
      "from.address": "is no active address of this identity",
    }],
  ],
  "POST /v1/identities/{identity_id}/messages/{message_id}/release": [
    ["a reason that is no text", { reason: 1 }, { reason: "must be a string" }],
  ],
  "POST /v1/identities/{identity_id}/messages/{message_id}/triage": [
    ["nothing", { needs_reply: undefined, priority: undefined, category: undefined }, {
      needs_reply: "is required",
      priority: "is required",
      category: "is required",
    }],
    ["an unknown priority", { priority: "top" }, { priority: "must be one of: low, normal, high" }],
  ],
  "POST /v1/identities/{identity_id}/messages/{message_id}/reprocess": [
    ["a field", { now: true }, { now: "is not a known field" }],
  ],
  "POST /v1/identities/{identity_id}/messages/{message_id}/outcomes": [
    ["an unknown outcome", { outcome: "lost" }, {
      outcome:
        "must be one of: sent, delivered, deferred, bounced, complained, rejected, failed, uncertain, reconciled, suppressed, canceled",
    }],
    ["a field of another outcome", { recipient: "x@y.dev" }, { recipient: "is not a known field" }],
    ["no provider", { provider: undefined }, { provider: "is required" }],
  ],
  "POST /v1/identities/{identity_id}/suppressions": [
    ["no address", { address: undefined }, { address: "is required" }],
    ["an unknown reason", { reason: "why" }, { reason: "must be one of: hard_bounce, complaint, manual" }],
  ],
  "POST /v1/identities/{identity_id}/events": [
    ["a type that is the effect of a command", { type: "message.received" }, {
      type:
        "must be one of: identity.key_created, identity.key_rotated, identity.key_revoked, quota.warning, verification.received",
    }],
    ["another identity's key", { data: { identity_id: NOBODY, kid: "k" } }, {
      "data.identity_id": "is not the identity of the path",
    }],
    ["an id that is none", { event_id: "1" }, { event_id: "must be an event id (evt_ and a ULID)" }],
  ],
  "POST /v1/tenants/{tenant_id}/domains": [
    ["no name", { name: undefined }, { name: "is required" }],
    ["a name that is none", { name: "no spaces.dev" }, {
      name: "must be a domain name of two labels or more",
    }],
  ],
  "POST /v1/domains/{domain_id}/checks": [
    ["an unknown result", { result: "fine" }, {
      result:
        "must be one of: unverified, verifying, healthy, degraded, failing, nameservers_changed, ownership_record_missing, registration_changed, zone_expired",
    }],
    ["an issue without a fix", { result: "degraded", issues: [{ code: "spf", record: "TXT" }] }, {
      "issues.0.fix": "is required",
    }],
  ],
  "DELETE /v1/domains/{domain_id}": [
    ["an unknown reason", "reason=bored", { reason: "must be one of: requested, evicted" }],
  ],
  "PUT /v1/tenants/{tenant_id}/event-types/{name}": [
    ["no schema", { schema: undefined }, { schema: "is required" }],
    ["a keyword that is not understood", { schema: { "$dynamicRef": "#x" } }, {
      "schema.$dynamicRef": "is a keyword that is not supported here",
    }],
    ["an example its schema refuses", { schema: { type: "string" } }, { example: "must be of type string" }],
  ],
  "POST /v1/erasure-requests": [
    ["no reason", { reason: undefined }, { reason: "is required" }],
    ["an id of another scope", { thread_id: "thr_7ZZZZZZZZZZZZZZZZZZZZZZZZZ" }, {
      thread_id: "does not go with scope message",
    }],
    ["an unknown scope", { scope: "everything" }, { scope: "must be one of: message, thread, identity" }],
  ],
  "POST /v1/exports": [
    ["no tenant", { tenant_id: undefined }, { tenant_id: "is required" }],
    ["an identity that is none", { identity_id: "x" }, {
      identity_id: "must be an identity id (idn_ and a ULID)",
    }],
  ],
  "POST /v1/tenants/{tenant_id}/owners/{key}/events": [
    ["no type, no data", { type: undefined, data: undefined }, { type: "is required", data: "is required" }],
    ["no data", { data: undefined }, { data: "is required" }],
    ["a misspelt type", { type: "order.payd" }, {
      type: 'unknown event type "order.payd"; the nearest is "order.paid"',
    }],
    ["a built-in type", { type: "message.received" }, {
      type: '"message.received" is a built-in type, which custom owners cannot append',
    }],
  ],
  "POST /v1/tenants/{tenant_id}/owners/{key}/events/batch": [
    ["no event", { events: [] }, { events: "must not be empty" }],
    ["one without data", { events: [{ type: "order.paid", data: 1 }, { type: "order.paid" }] }, {
      "events.1.data": "is required",
    }],
  ],
  "GET /v1/audit-events": [
    ["no time", "until=now", { until: "must be an RFC 3339 time" }],
  ],
  "POST /v1/tenants/{tenant_id}/portal-links": [
    ["an unknown mode", { mode: "own" }, { mode: "must be one of: read, manage" }],
    ["over a week", { expires_in_minutes: 10081 }, { expires_in_minutes: "must be at most 10080" }],
  ],
  "POST /v1/platform/dlq/{dead_letter_id}/redrive": [
    ["a field", { now: true }, { now: "is not a known field" }],
  ],
};

/** Sends a request that must be refused, and holds the store to being as it was. */
async function refuse(
  api: Api,
  request: Good,
  headers: Record<string, string>,
  key: string,
): Promise<Answer> {
  const before = await rowsOf(api);
  const { method, path, body } = request;
  const answer = await api.call(method, path, { key, headers, ...(body === undefined ? {} : { body }) });
  assert.equal(await rowsOf(api), before, `${method} ${path} was refused and has an effect`);
  return answer;
}

async function rowsOf(api: Api): Promise<string> {
  let rows = "";
  for await (const { key, versionstamp } of api.kv.list({ prefix: [] }, { batchSize: 500 })) {
    rows += `${JSON.stringify(key)} ${versionstamp}\n`;
  }
  return rows;
}

const errorsOf = (answer: Answer): Record<string, string> =>
  Object.fromEntries(answer.body.error.details.errors.map(({ path, message }: Json) => [path, message]));

function changed(good: Good, change: Change): Good {
  if (typeof change !== "string") return { ...good, body: { ...good.body, ...change } };
  return { ...good, path: `${good.path}${good.path.includes("?") ? "&" : "?"}${change}` };
}

Deno.test(
  "refused inputs: each row's own, with the exact errors, and none has an effect",
  withApi(async (api) => {
    const t = await things(api), key = t.keys.platform!, left = new Set(Object.keys(TABLE));
    for (const row of api.rows) {
      const name = nameOf(row), cases = TABLE[name];
      left.delete(name);
      if (cases === undefined) {
        assert.ok(!takesMore(row), `say here what ${name} refuses`);
        continue;
      }
      for (const [reason, change, errors] of cases) {
        api.now += 200; // room in every rate limit
        const answer = await refuse(api, changed(goodRequest(row, t.ids), change), {}, key);
        refused(answer, 400, "invalid_request");
        assert.deepEqual(errorsOf(answer), errors, `${name}: ${reason}`);
      }
    }
    assert.deepEqual([...left], [], "rows that are no more");
  }),
);

/** Whether a row takes more than its path and a list's parameters. */
function takesMore(row: Route): boolean {
  const own = Object.keys(row.query).filter((name) => name !== "limit" && name !== "cursor");
  return row.body !== null || row.permission !== "public" && row.method === "POST" || own.length > 0;
}

interface General {
  reason: string;
  on: (row: Route) => boolean;
  request: (good: Good, row: Route, t: Things) => Good;
  headers?: Record<string, string>;
  status: number;
  code: string;
  errors?: (row: Route) => Record<string, string>;
}

const bodied = (row: Route): boolean => ["POST", "PUT", "PATCH"].includes(row.method);
const listed = (row: Route): boolean => Object.hasOwn(row.query, "limit");
const withQuery = (query: string) => (good: Good) => changed(good, query);
const withBody = (body: unknown) => (good: Good): Good => ({ ...good, body });

const GENERAL: General[] = [
  {
    reason: "an unknown parameter",
    on: () => true,
    request: withQuery("zz=1"),
    status: 400,
    code: "invalid_request",
    errors: () => ({ zz: "is not a known parameter" }),
  },
  {
    reason: "a parameter twice",
    on: listed,
    request: withQuery("limit=1&limit=1"),
    status: 400,
    code: "invalid_request",
    errors: () => ({ limit: "is given twice" }),
  },
  ...["0", "101", "-1", "1.5", "x", ""].map((limit): General => ({
    reason: `a limit of "${limit}"`,
    on: listed,
    request: withQuery(`limit=${limit}`),
    status: 400,
    code: "invalid_request",
    errors: () => ({ limit: "must be a whole number from 1 to 100" }),
  })),
  ...["x", "c_", "c_x.y"].map((cursor): General => ({
    reason: `a cursor of "${cursor}"`,
    on: listed,
    request: withQuery(`cursor=${cursor}`),
    status: 400,
    code: "invalid_request",
    errors: () => ({ cursor: "is not a cursor of this list, its filters and this key" }),
  })),
  {
    reason: "an unknown field",
    on: bodied,
    request: (good) => ({ ...good, body: { ...good.body, zz: 1 } }),
    status: 400,
    code: "invalid_request",
    errors: () => ({ zz: "is not a known field" }),
  },
  {
    reason: "a list for a body",
    on: bodied,
    request: withBody([]),
    status: 400,
    code: "invalid_request",
    errors: (row) => ({ body: row.body === null ? "must be an object or absent" : "must be an object" }),
  },
  {
    reason: "JSON that ends early",
    on: bodied,
    request: withBody('{"a":'),
    status: 400,
    code: "invalid_request",
  },
  {
    reason: "a member twice",
    on: bodied,
    request: withBody('{"a":1,"a":2}'),
    status: 400,
    code: "invalid_request",
  },
  {
    reason: "a body that is no JSON",
    on: bodied,
    request: withBody("a=1"),
    headers: { "content-type": "application/x-www-form-urlencoded" },
    status: 415,
    code: "unsupported_media_type",
  },
  {
    reason: "a body over the cap",
    on: bodied,
    request: withBody(`"${"x".repeat(MAX_BODY_BYTES)}"`),
    status: 413,
    code: "payload_too_large",
  },
  {
    reason: "an Idempotency-Key that is none",
    on: (row) => row.idempotent,
    request: (good) => good,
    headers: { "idempotency-key": "x".repeat(256) },
    status: 400,
    code: "invalid_request",
    errors: () => ({ "Idempotency-Key": "must be 1 to 255 printable ASCII characters" }),
  },
];

Deno.test("refused inputs: what every row of its kind refuses, and none has an effect", async (step) => {
  for (const { reason, on, request, headers = {}, status, code, errors } of GENERAL) {
    await step.step(
      reason,
      withApi(async (api) => {
        const t = await things(api), key = t.keys.platform!;
        for (const row of api.rows) {
          if (!on(row) || row.permission === "public") continue;
          api.now += 200;
          const answer = await refuse(api, request(goodRequest(row, t.ids), row, t), headers, key);
          assert.equal(answer.status, status, `${nameOf(row)}: ${answer.text}`);
          refused(answer, status, code);
          if (errors !== undefined) assert.deepEqual(errorsOf(answer), errors(row), nameOf(row));
        }
      }),
    );
  }
});

Deno.test(
  "refused inputs: an id of another kind, or none, in every place of a path",
  withApi(async (api) => {
    const t = await things(api), key = t.keys.platform!;
    for (const row of api.rows) {
      for (const name of Object.keys(row.params)) {
        if (!name.endsWith("_id")) continue;
        for (
          const wrong of [
            "req_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y",
            t.ids[name]!.toLowerCase(),
            t.ids[name]! + "0",
            "x",
          ]
        ) {
          const good = goodRequest(row, { ...t.ids, ...swapped(row, name, wrong) });
          api.now += 200;
          const answer = await refuse(api, good, {}, key);
          refused(answer, 400, "invalid_request");
          const [path, message] = Object.entries(errorsOf(answer))[0]!;
          assert.equal(path, name, `${nameOf(row)} with ${wrong}`);
          assert.match(message, /^must be an? [a-z ]+ id \([a-z]{3}_ and a ULID\)$/);
        }
      }
    }
  }),
);

/** Every id that could stand in that place. */
function swapped(row: Route, name: string, wrong: string): Record<string, string> {
  const other = Object.fromEntries(
    ["quarantined_id", "outbound_id", "active_address_id"].map((id) => [id, wrong]),
  );
  return nameOf(row).includes(`{${name}}`) ? { ...other, [name]: wrong } : {};
}

Deno.test(
  "refused inputs: a method a path does not have is 405 with Allow",
  withApi(async (api) => {
    const t = await things(api), key = t.keys.platform!;
    const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    for (const path of new Set(api.rows.map((row) => row.path))) {
      const rows = api.rows.filter((row) => row.path === path), has = rows.map((row) => row.method as string);
      for (const method of methods.filter((method) => !has.includes(method))) {
        const answer = await refuse(
          api,
          { method, path: goodRequest(rows[0]!, t.ids).path.split("?")[0]! },
          {},
          key,
        );
        refused(answer, 405, "method_not_allowed");
        const allow = answer.headers.get("allow")!.split(", ");
        assert.deepEqual(allow.filter((name) => methods.includes(name)).sort(), has.sort(), path);
        assert.deepEqual(answer.body.error.details.allow, allow);
      }
    }
  }),
);

/** Bodies with places for anything: what stands there is the caller's own. */
const FREE = ["schema", "example", "data", "headers", "metrics"];

Deno.test(
  "refused inputs: no object of any body takes a field it does not name",
  withApi((api) => {
    for (const row of api.rows) {
      if (row.body === null) continue;
      walk(z.toJSONSchema(row.body, { unrepresentable: "any", io: "input" }), nameOf(row));
    }
    return Promise.resolve();
  }),
);

function walk(schema: Json, where: string): void {
  if (schema === null || typeof schema !== "object") return;
  if (schema.type === "object" && !FREE.some((name) => where.endsWith(`.${name}`))) {
    assert.equal(schema.additionalProperties, false, `${where} takes unknown fields`);
  }
  for (const [name, inner] of Object.entries(schema.properties ?? {})) walk(inner, `${where}.${name}`);
  for (const list of [schema.anyOf, schema.oneOf, schema.allOf]) {
    for (const inner of list ?? []) walk(inner, where);
  }
  walk(schema.items ?? null, where);
  for (const inner of Object.values(schema.$defs ?? {})) walk(inner, where);
}

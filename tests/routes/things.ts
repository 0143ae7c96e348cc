/**
 * One of everything a path, a query or a body can name, in the hands of one tenant, and a request to each row that is good for whoever
 * reaches it. Every test that walks the route table starts from here, so a new row fails until it is described.
 */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import type { Route } from "../../routes/table.ts";
import { type Api, type Json, URL_OK, world } from "./support.ts";

export type Who =
  | "no key"
  | "revoked key"
  | "expired key"
  | "platform"
  | "own partner"
  | "other partner"
  | "own tenant"
  | "sibling tenant"
  | "other partner's tenant"
  | "nobody's tenant"
  | "own identity"
  | "other identity";

export interface Things {
  /** By the name of the parameter. */
  ids: Record<string, string>;
  keys: Record<Who, string | undefined>;
}

/** Ids in the paths of rows that need a thing in another state than the common one. */
const QUARANTINED = "quarantined_id", OUTBOUND = "outbound_id", ACTIVE = "active_address_id";

export async function things(api: Api): Promise<Things> {
  const w = await world(api), tenant = w.p.tenant, key = w.p.tenantKey;
  const made = async (method: string, path: string, body?: Json, field?: string): Promise<Json> => {
    const answer = await api.call(method, path, { key, body });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    return field === undefined ? answer.body : answer.body[field];
  };
  const identity = async (display_name: string) =>
    (await made("POST", `/v1/tenants/${tenant}/identities`, {
      display_name,
      address: `${display_name}@acme.dev`,
    }, "identity")).id;
  const own = await identity("ada"), other = await identity("bob");
  const mailbox = `/v1/identities/${own}`;
  const message = async (more: Json = {}) => (await made("POST", `${mailbox}/messages`, {
    from: { address: "eve@other.dev" },
    to: [{ address: "ada@acme.dev" }],
    subject: "s",
    text: "t",
    ...more,
  }));
  const received = await message();
  const address = async (name: string) =>
    (await made("POST", `${mailbox}/addresses`, { address: `${name}@acme.dev` }, "address")).id;
  const active = await address("second");
  await made("POST", `${mailbox}/addresses/${active}/activate`);
  const endpoint = await made("POST", `/v1/tenants/${tenant}/webhooks`, { url: URL_OK, events: ["*"] });
  const delivery = await made("POST", `/v1/webhooks/${endpoint.id}/test`);
  await made("PUT", `/v1/tenants/${tenant}/event-types/order.paid`, { schema: true, example: 1 });
  const doomed = await message();
  const erasure = await made("POST", "/v1/erasure-requests", {
    tenant_id: tenant,
    scope: "message",
    identity_id: own,
    message_id: doomed.message.id,
    reason: "asked",
  }, "erasure_request");
  const minted = await made("POST", "/v1/keys", {
    name: "read",
    level: "tenant",
    permissions: ["audit:read"],
  });
  const letter = api.services.ids.next("deadLetter");
  await api.kv.set(keys.deadLetter(letter), {
    id: letter,
    job: { v: 1, kind: "fanout", events: [] },
    error: "fan_out_failed",
    created_at: api.now,
  });
  const keyOf = async (spec: Json) => (await api.key(spec)).secret;
  const revoked = await api.key({ level: "tenant", tenant_id: tenant });
  const gone = await api.call("DELETE", `/v1/keys/${revoked.row.id}`, { key: w.platform });
  assert.equal(gone.status, 204, gone.text);
  const expired = await keyOf({ level: "tenant", tenant_id: tenant, expires_at: api.now + 1 });
  api.now += 2;
  const sibling = await api.tenant(w.p.key, "pp-two");
  return {
    ids: {
      tenant_id: tenant,
      partner_id: w.p.id,
      identity_id: own,
      message_id: received.message.id,
      [QUARANTINED]: (await message({ quarantine_reason: "spam" })).message.id,
      [OUTBOUND]: (await message({ direction: "outbound", from: { address: "ada@acme.dev" } })).message.id,
      address_id: await address("third"),
      [ACTIVE]: active,
      webhook_id: endpoint.id,
      delivery_id: delivery.id,
      event_id: received.events[0].id,
      domain_id: (await made("POST", `/v1/tenants/${tenant}/domains`, { name: "acme.dev" }, "domain")).id,
      erasure_request_id: erasure.id,
      export_id: (await made("POST", "/v1/exports", { tenant_id: tenant }, "export")).id,
      key_id: minted.id,
      dead_letter_id: letter,
      user_id: `usr_${api.services.ids.ulid()}`,
      name: "order.paid",
      key: "cart-1",
      guide: "operate",
    },
    keys: {
      "no key": undefined,
      "revoked key": revoked.secret,
      "expired key": expired,
      platform: w.platform,
      "own partner": w.p.key,
      "other partner": w.q.key,
      "own tenant": w.p.tenantKey,
      "sibling tenant": await keyOf({ level: "tenant", tenant_id: sibling }),
      "other partner's tenant": w.q.tenantKey,
      "nobody's tenant": w.loneKey,
      "own identity": await keyOf({ level: "identity", identity_id: own }),
      "other identity": await keyOf({ level: "identity", identity_id: other }),
    },
  };
}

export interface Good {
  method: string;
  path: string;
  body?: Json;
  /** What has to be done first, by a platform key. */
  first?: [method: string, path: string];
}

/** What is particular to a row's good request: its body, its query, other ids in its path. */
interface Particular {
  body?: (ids: Things["ids"]) => Json;
  query?: (ids: Things["ids"]) => string;
  /** Parameter → the name of the id it takes here. */
  with?: Record<string, string>;
  first?: (ids: Things["ids"]) => [method: string, path: string];
}

const endpointBody = () => ({ url: URL_OK, events: ["*"] });
const event = { type: "order.paid", data: 1 };

/** Every row that takes more than its path. */
const PARTICULARS: Record<string, Particular> = {
  "POST /v1/tenants": { body: () => ({ slug: "new", name: "New" }) },
  "PATCH /v1/tenants/{tenant_id}": { body: () => ({ name: "New" }) },
  "POST /v1/partners": { body: () => ({ name: "New" }) },
  "PATCH /v1/partners/{partner_id}": { body: () => ({ name: "New" }) },
  "POST /v1/keys": {
    body: ({ identity_id }) => ({ name: "n", level: "identity", identity_id, permissions: ["events:read"] }),
  },
  "GET /v1/keys": { query: ({ tenant_id }) => `tenant_id=${tenant_id}` },
  "GET /v1/audit-events": { query: ({ tenant_id }) => `tenant_id=${tenant_id}` },
  "POST /v1/webhooks": { body: endpointBody },
  "POST /v1/tenants/{tenant_id}/webhooks": { body: endpointBody },
  "PATCH /v1/webhooks/{webhook_id}": { body: () => ({ description: "New" }) },
  "POST /v1/webhooks/{webhook_id}/replay": { body: ({ event_id }) => ({ event_ids: [event_id] }) },
  "PUT /v1/tenants/{tenant_id}/notification-preferences/{user_id}": {
    body: () => ({ kind: "new_mail", mode: "on" }),
  },
  "POST /v1/tenants/{tenant_id}/identities": { body: () => ({ display_name: "New" }) },
  "PATCH /v1/identities/{identity_id}": { body: () => ({ display_name: "New" }) },
  "POST /v1/identities/{identity_id}/resume": {
    first: ({ identity_id }) => ["POST", `/v1/identities/${identity_id}/pause`],
  },
  "POST /v1/identities/{identity_id}/addresses": { body: () => ({ address: "new@acme.dev" }) },
  "POST /v1/identities/{identity_id}/addresses/{address_id}/retire": { with: { address_id: ACTIVE } },
  "POST /v1/identities/{identity_id}/addresses/{address_id}/promote": { with: { address_id: ACTIVE } },
  "POST /v1/identities/{identity_id}/messages": { body: () => ({ from: { address: "eve@other.dev" } }) },
  "POST /v1/identities/{identity_id}/messages/{message_id}/release": { with: { message_id: QUARANTINED } },
  "POST /v1/identities/{identity_id}/messages/{message_id}/triage": {
    body: () => ({ needs_reply: true, priority: "high", category: null }),
  },
  "POST /v1/identities/{identity_id}/messages/{message_id}/outcomes": {
    with: { message_id: OUTBOUND },
    body: () => ({ outcome: "sent", provider: "p" }),
  },
  "POST /v1/identities/{identity_id}/suppressions": { body: () => ({ address: "no@other.dev" }) },
  "POST /v1/identities/{identity_id}/events": {
    body: ({ identity_id }) => ({ type: "identity.key_created", data: { identity_id, kid: "k1" } }),
  },
  "POST /v1/tenants/{tenant_id}/domains": { body: () => ({ name: "new.dev" }) },
  "POST /v1/domains/{domain_id}/checks": { body: () => ({ result: "healthy" }) },
  "PUT /v1/tenants/{tenant_id}/event-types/{name}": { body: () => ({ schema: true, example: 1 }) },
  "POST /v1/erasure-requests": {
    body: ({ tenant_id, identity_id, message_id }) => ({
      tenant_id,
      scope: "message",
      identity_id,
      message_id,
      reason: "asked",
    }),
  },
  "POST /v1/exports": { body: ({ tenant_id }) => ({ tenant_id }) },
  "POST /v1/tenants/{tenant_id}/owners/{key}/events": { body: () => event },
  "POST /v1/tenants/{tenant_id}/owners/{key}/events/batch": { body: () => ({ events: [event] }) },
  "POST /v1/tenants/{tenant_id}/portal-links": { body: () => ({ mode: "read" }) },
};

export const nameOf = (row: Route): string => `${row.method} ${row.path}`;

/** A request to a row that is good for whoever reaches what it names. */
export function goodRequest(row: Route, ids: Things["ids"]): Good {
  const { body, query, first, with: others = {} } = PARTICULARS[nameOf(row)] ?? {};
  const path = row.path.replace(/\{([a-z_]+)\}/g, (_, name: string) => {
    const id = ids[others[name] ?? name];
    assert.ok(id !== undefined, `say in things.ts what {${name}} of ${nameOf(row)} is`);
    return id;
  });
  return {
    method: row.method,
    path: query === undefined ? path : `${path}?${query(ids)}`,
    ...(body === undefined ? {} : { body: body(ids) }),
    ...(first === undefined ? {} : { first: first(ids) }),
  };
}

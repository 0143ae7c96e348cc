/** The trace of an event: who receives it and why not, its attempts, what comes next, and nobody else's endpoints. */
import assert from "node:assert/strict";
import { updateEndpoint } from "../../actors/endpoints.ts";
import { loadEvent } from "../../actors/event_store.ts";
import type { Appended } from "../../actors/owner.ts";
import { updatePartner } from "../../actors/tenancy.ts";
import type { EndpointTrace } from "../../actors/trace.ts";
import type { EndpointId, EventId, EventKey } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS, REPLAY_WINDOW_MS, SECOND_MS } from "../../lib/limits.ts";
import { type Api, type Json, refused, URL_OK, withApi, world as apiWorld } from "../routes/support.ts";
import { changeEvent } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";

/** The trace by endpoint, all of them. */
async function traced(
  w: World,
  { key }: Pick<Appended, "key">,
): Promise<(row: { id: EndpointId }) => EndpointTrace> {
  const event = (await loadEvent(w.store, key))!;
  const all = await w.done(w.first.system.deliveries.trace(event, () => true));
  return ({ id }) => all.find(({ endpoint }) => endpoint.id === id)!;
}

const brief = ({ state, rule, attempts, next }: EndpointTrace) => [state, rule, attempts.length, next?.error];

Deno.test("trace: each endpoint with the rule that says no", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const off = await w.endpoint(tenant, URL + 1);
    await w.done(updateEndpoint(w.first.endpoints, off.id, { enabled: false }, null));
    const types = await w.endpoint(tenant, URL + 2, { events: ["message.sent"] });
    const identity = w.first.ids.next("identity");
    await w.store.set(keys.ownerOf(identity), { kind: "mailbox", tenant: tenant.id, id: identity });
    const identities = await w.endpoint(tenant, URL + 3, { identity_ids: [identity] });
    const yes = await w.endpoint(tenant, URL + 4);
    const [event] = await w.append(tenant);
    await w.settle();
    await w.advance(SECOND_MS);
    const late = await w.endpoint(tenant, URL + 5);
    const at = await traced(w, event!);
    assert.deepEqual(brief(at(off)), ["not_matched", "disabled", 0, undefined]);
    assert.deepEqual(brief(at(types)), ["not_matched", "event_type", 0, undefined]);
    assert.deepEqual(brief(at(identities)), ["not_matched", "identity_filter", 0, undefined]);
    assert.deepEqual(brief(at(late)), ["not_matched", "created_after_event", 0, undefined]);
    assert.deepEqual(brief(at(yes)), ["succeeded", null, 1, undefined]);
    assert.equal(at(yes).replayableUntil, event!.occurred_at + REPLAY_WINDOW_MS);
    assert.equal(at(types).replayableUntil, null);
    await w.done(updateEndpoint(w.first.endpoints, types.id, { events: ["*"] }, null));
    w.first.system.directory.invalidate();
    assert.deepEqual(brief((await traced(w, event!))(types)), ["not_matched", "changed_since", 0, undefined]);
  }));

Deno.test("trace: attempts in order and the next one with its time, until it is dead and how long it can be replayed", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, { retention: { events_days: 20 } });
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const [event] = await w.append(tenant);
    await w.advance(40 * SECOND_MS);
    const retrying = (await traced(w, event!))(endpoint);
    assert.deepEqual(brief(retrying), ["retrying", null, 2, null]);
    assert.deepEqual(retrying.attempts.map((row) => row.attempt), [1, 2]);
    assert.deepEqual(retrying.next, { attempt: 3, at: retrying.attempts[1]!.next_attempt_at, error: null });
    await w.done(updateEndpoint(w.first.endpoints, endpoint.id, { enabled: false }, null));
    w.first.system.directory.invalidate();
    assert.deepEqual(brief((await traced(w, event!))(endpoint)), ["retrying", null, 2, "endpoint_disabled"]);
    await w.jump(HOUR_MS);
    const dead = (await traced(w, event!))(endpoint);
    assert.deepEqual(brief(dead), ["dead", null, 3, undefined]);
    assert.equal(dead.replayableUntil, event!.occurred_at + 20 * DAY_MS);
    await w.jump(20 * DAY_MS);
    assert.equal((await traced(w, event!))(endpoint).replayableUntil, null);
  }));

Deno.test("trace: held while the partner is suspended, platform endpoints not; on its way after", () =>
  world(async (w) => {
    const partner = await w.partner(), tenant = await w.tenant(partner);
    const [own, platform] = [
      await w.endpoint(tenant, URL),
      await w.endpoint(null, "https://ops.example.com/"),
    ];
    const suspend = async (status: "active" | "suspended") => {
      await w.done(updatePartner(w.first.tenancy, partner, { status }, null));
      w.first.system.directory.invalidate();
    };
    await suspend("suspended");
    const [event] = await w.append(tenant);
    await w.settle();
    const at = await traced(w, event!);
    assert.deepEqual([at(own).state, at(own).next], ["held", { attempt: 1, at: null, error: null }]);
    assert.equal(at(platform).state, "succeeded");
    await suspend("active");
    await w.done(w.first.system.deliveries.unpark(partner));
    await w.settle();
    assert.equal((await traced(w, event!))(own).state, "succeeded");
  }));

Deno.test("trace: in flight while an attempt is under way, also once its Fanout job has let go of it", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, () => w.later(10 * SECOND_MS, 200));
    const [event] = await w.append(tenant);
    await w.settle();
    assert.equal((await traced(w, event!))(endpoint).state, "in_flight");
    await w.advance(5 * SECOND_MS);
    const handedOver = (await traced(w, event!))(endpoint);
    assert.deepEqual(brief(handedOver), ["in_flight", null, 0, null]);
    await w.advance(6 * SECOND_MS);
    assert.equal((await traced(w, event!))(endpoint).state, "succeeded");
  }));

Deno.test("trace: a job among the dead letters, an erased payload, a test, and what retention has taken", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, { retention: { events_days: 60 } });
    const endpoint = await w.endpoint(tenant, URL);
    w.net.at(URL, 500);
    const key = w.first.ids.ulid() as EventKey, id = `evt_${key}` as EventId;
    const event = (await loadEvent(w.store, (await w.append(tenant))[0]!.key))!;
    await w.settle();
    const trace = async (change: object) =>
      (await w.done(w.first.system.deliveries.trace({ ...event, ...change }, () => true)))[0]!;
    const letter = w.first.ids.next("deadLetter");
    const job = { v: 1, kind: "fanout", events: [key] };
    await w.store.set(keys.deadLetter(letter), {
      id: letter,
      job,
      error: "fan_out_failed",
      created_at: w.now(),
    });
    assert.equal((await trace({ key, id })).state, "dead_lettered");
    await w.store.delete(keys.deadLetter(letter));
    const erased = await trace({ body: null });
    assert.deepEqual([brief(erased), erased.replayableUntil], [
      ["retrying", null, 1, "event_unavailable"],
      null,
    ]);
    const row = await w.done(w.first.system.deliveries.test(endpoint.id));
    const tested = (await traced(w, { key: row.event }))(endpoint);
    assert.deepEqual([brief(tested), tested.replayableUntil], [["dead", null, 1, undefined], null]);
    const old = { key: w.first.ids.ulid() as EventKey, at: w.now() };
    await w.jump(40 * DAY_MS);
    assert.equal((await trace(old)).state, "forgotten");
  }));

async function traceOf(api: Api, key: string, event: string): Promise<Json> {
  const answer = await api.call("GET", `/v1/events/${event}/trace`, { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

Deno.test(
  "S1: a trace shows the endpoints within the key's reach and not a trace of others",
  withApi(async (api) => {
    const { p, q, platform, identity, identityKey } = await apiWorld(api);
    const make = async (key: string, path: string) =>
      (await api.call("POST", path, { key, body: { url: URL_OK, events: ["*"] } })).body.id as string;
    const ofTenant = await make(p.tenantKey, `/v1/tenants/${p.tenant}/webhooks`);
    const ofPartner = await make(p.key, "/v1/webhooks");
    const ofPlatform = await make(platform, "/v1/webhooks");
    await make(q.tenantKey, `/v1/tenants/${q.tenant}/webhooks`);
    await make(q.key, "/v1/webhooks");
    api.now += SECOND_MS;
    const owner = { kind: "mailbox" as const, tenant: p.tenant, id: identity };
    const { id } = await api.services.owners.run(
      owner,
      (tx) => tx.append({ type: "identity.resumed", data: { identity_id: identity }, identity }),
    );
    const seen = async (key: string) =>
      (await traceOf(api, key, id)).endpoints.map((row: Json) => row.webhook_id).sort();
    assert.deepEqual(await seen(p.tenantKey), [ofTenant]);
    assert.deepEqual(await seen(identityKey), [ofTenant]);
    assert.deepEqual(await seen(p.key), [ofTenant, ofPartner].sort());
    assert.deepEqual(await seen(platform), [ofTenant, ofPartner, ofPlatform].sort());
    for (const key of [q.key, q.tenantKey]) {
      const answer = await api.call("GET", `/v1/events/${id}/trace`, { key });
      refused(answer, 404, "event_not_found");
    }
    const blind =
      (await api.key({ level: "tenant", tenant_id: p.tenant, permissions: ["webhooks:read"] })).secret;
    refused(await api.call("GET", `/v1/events/${id}/trace`, { key: blind }), 403, "permission_denied");
  }),
);

Deno.test(
  "trace: the API shows where it waits, with the event's own facts and no content",
  withApi(async (api) => {
    const { p } = await apiWorld(api);
    const path = `/v1/tenants/${p.tenant}/webhooks`;
    await api.call("POST", path, { key: p.tenantKey, body: { url: URL_OK, events: ["*"] } });
    api.now += SECOND_MS;
    const owner = { kind: "custom" as const, tenant: p.tenant, id: "cart" };
    const { id, key } = await api.services.owners.run(
      owner,
      (tx) => tx.append({ type: "cart.paid", data: { note: "tell-nobody" } }),
    );
    const body = await traceOf(api, p.tenantKey, id);
    assert.deepEqual([body.event.id, body.event.type, body.event.sequence, body.event.erased], [
      id,
      "cart.paid",
      1,
      false,
    ]);
    const [row] = body.endpoints;
    assert.deepEqual([row.state, row.matched, row.attempts], ["waiting_for_fan_out", true, []]);
    assert.equal(row.next.attempt, 1);
    assert.ok(!JSON.stringify(body).includes("tell-nobody") && !JSON.stringify(body).includes("hooks.acme"));
    await changeEvent(api.kv, key, { body: null });
    assert.equal((await traceOf(api, p.tenantKey, id)).event.erased, true);
  }),
);

/** Which endpoints receive an event (S1, `filters`, `j15_partner_scope_filter`), by fan-out and by replay. */
import assert from "node:assert/strict";
import { updateEndpoint } from "../../actors/endpoints.ts";
import type { Id, IdentityId, PartnerId, TenantId } from "../../lib/ids.ts";
import { type MatchEndpoint, type MatchEvent, mismatch } from "../../lib/match.ts";
import type { EndpointRow } from "../../lib/keys.ts";
import { world } from "../support/world.ts";

const url = (name: string) => `https://${name}.example.com/in`;

Deno.test("j15_partner_scope_filter: by fan-out and replay a partner sees its tenants only", () =>
  world(async (w) => {
    const p = await w.partner(), q = await w.partner();
    const ofP = await w.tenant(p), ofQ = await w.tenant(q), free = await w.tenant();
    const names = ["platform", "p", "q", "ofp", "ofq", "free"];
    const owners = [null, p, q, ofP, ofQ, free];
    const rows: EndpointRow[] = [];
    for (const [i, name] of names.entries()) rows.push(await w.endpoint(owners[i]!, url(name)));
    w.net.at(url("ofq"), 410);
    const all = { p: await w.append(ofP), q: await w.append(ofQ), free: await w.append(free) };
    await w.settle();
    const types = (name: string) =>
      w.net.to(url(name)).map((r) => {
        const body = JSON.parse(r.body);
        return body.type === "webhook.disabled" ? "disabled" : body.tenant_id;
      }).sort();
    const wanted = (...list: string[]) => list.sort();
    assert.deepEqual(types("platform"), wanted(ofP.id, ofQ.id, free.id, "disabled"));
    assert.deepEqual(types("p"), wanted(ofP.id));
    assert.deepEqual(types("q"), wanted(ofQ.id, "disabled"));
    assert.deepEqual(types("ofp"), wanted(ofP.id));
    assert.deepEqual(types("ofq"), wanted(ofQ.id));
    assert.deepEqual(types("free"), wanted(free.id));

    w.net.received.length = 0;
    const selections = [
      { since: 0, until: w.now() + 1 },
      { event_ids: Object.values(all).flat().map((event) => event.id) },
    ];
    const { replay } = w.first.system.deliveries;
    const counts = async (i: number) => [
      (await w.done(replay(rows[i]!.id, selections[0]!))).queued,
      (await w.done(replay(rows[i]!.id, selections[1]!))).queued,
    ];
    assert.deepEqual(await counts(0), [4, 3]);
    assert.deepEqual(await counts(1), [1, 1]);
    assert.deepEqual(await counts(2), [2, 1]);
    assert.deepEqual(await counts(3), [1, 1]);
    assert.deepEqual(await counts(5), [1, 1]);
    assert.ok(w.net.to(url("p")).every((r) => JSON.parse(r.body).tenant_id === ofP.id));
  }));

Deno.test("filters: types, later types under *, identities, and nothing from before the endpoint", () =>
  world(async (w) => {
    const tenant = await w.tenant();
    await w.append(tenant, [{ type: "order.paid" }]);
    w.time.now += 10;
    const a = w.first.ids.next("identity"), b = w.first.ids.next("identity");
    await w.endpoint(tenant, url("all"));
    await w.endpoint(tenant, url("typed"), { events: ["message.sent", "domain.created"] });
    const only = await w.endpoint(tenant, url("only"));
    await w.store.set(["endpoint", only.id], { ...only, identity_ids: [a] });
    w.time.now += 10;
    await w.append(tenant, [
      { type: "message.sent", identity: a },
      { type: "message.sent", identity: b },
      { type: "domain.created" },
      { type: "brand.new" },
    ]);
    await w.settle();
    const got = (name: string) => w.net.to(url(name)).map((r) => JSON.parse(r.body).sequence).sort();
    assert.deepEqual(got("all"), [2, 3, 4, 5]);
    assert.deepEqual(got("typed"), [2, 3, 4]);
    assert.deepEqual(got("only"), [2]);
  }));

Deno.test("filters: an edit of a subscription counts from the next event, in this isolate and in others", () =>
  world(async (w) => {
    const tenant = await w.tenant(), other = await w.isolate();
    const endpoint = await w.endpoint(tenant, url("a"), { events: ["message.sent"] });
    await w.append(tenant, [{ type: "domain.created" }]);
    await w.append(tenant, [{ type: "domain.created" }], "b", other); // both have it cached now
    await w.settle();
    assert.equal(w.net.received.length, 0);
    await w.done(
      updateEndpoint(w.first.endpoints, endpoint.id, { events: ["domain.created"], url: url("b") }, null),
    );
    await w.append(tenant, [{ type: "domain.created" }]);
    await w.append(tenant, [{ type: "domain.created" }], "b", other);
    await w.settle();
    assert.deepEqual(w.net.received.map((r) => r.url), [url("b"), url("b")]);
  }));

Deno.test("S1: the match table", () => {
  const t1 = "ten_1" as TenantId,
    t2 = "ten_2" as TenantId,
    p1 = "ptn_1" as PartnerId,
    p2 = "ptn_2" as PartnerId;
  const i1 = "idn_1" as IdentityId, i2 = "idn_2" as IdentityId;
  const self = "whk_1" as Id<"endpoint">, other = "whk_2" as Id<"endpoint">;
  const event = (e: Partial<MatchEvent>): MatchEvent => ({
    type: "message.sent",
    tenant: t1,
    partner: p1,
    identity: i1,
    about: null,
    ...e,
  });
  const endpoint = (e: Partial<MatchEndpoint>): MatchEndpoint => ({
    id: self,
    tenant_id: null,
    partner_id: null,
    events: ["*"],
    identity_ids: null,
    enabled: true,
    deleted_at: null,
    ...e,
  });
  const about = { type: "webhook.disabled", identity: null };
  const table: [Partial<MatchEvent>, Partial<MatchEndpoint>, string | null, string][] = [
    [{}, {}, null, "platform sees every tenant"],
    [{}, { tenant_id: t1 }, null, "its own tenant"],
    [{}, { tenant_id: t2 }, "other_scope", "another tenant"],
    [{}, { partner_id: p1 }, null, "its partner's tenant"],
    [{}, { partner_id: p2 }, "other_scope", "another partner's tenant"],
    [{ partner: null }, { partner_id: p1 }, "other_scope", "a tenant no partner made"],
    [{ tenant: null, partner: null }, { partner_id: p1 }, "other_scope", "a platform event"],
    [{ tenant: null, partner: null }, { tenant_id: t1 }, "other_scope", "a platform event, for a tenant"],
    [{}, { events: ["message.sent"] }, null, "its type"],
    [{}, { events: ["message.send"] }, "event_type", "a type's neighbour"],
    [{}, { events: [] }, "event_type", "no type"],
    [{}, { identity_ids: [i1] }, null, "its identity"],
    [{}, { identity_ids: [i2] }, "identity_filter", "another identity"],
    [{}, { identity_ids: [] }, "identity_filter", "no identity"],
    [{ identity: null }, { identity_ids: [i1] }, "identity_filter", "an event without identity"],
    [{ identity: null }, {}, null, "an event without identity, no filter"],
    [{}, { enabled: false }, "disabled", "disabled"],
    [{}, { deleted_at: 1 }, "deleted", "deleted"],
    [{}, { tenant_id: t2, enabled: false }, "other_scope", "the scope is judged before what tells of it"],
    [{ type: "webhook.test" }, {}, "test_events_are_never_fanned_out", "a test"],
    [{ ...about, about: other }, {}, null, "another endpoint's end"],
    [{ ...about, about: self }, {}, "about_itself", "its own end"],
    [{ ...about, about: other }, { tenant_id: t1 }, "other_scope", "a tenant is not told"],
    [{ ...about, about: other, tenant: null }, { partner_id: p1 }, null, "its partner's endpoint's end"],
    [{ ...about, about: other, tenant: null }, { partner_id: p2 }, "other_scope", "another partner's"],
  ];
  for (const [e, p, verdict, reason] of table) assert.equal(mismatch(event(e), endpoint(p)), verdict, reason);
});

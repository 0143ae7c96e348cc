/** S1: the match function against the document's own words ("Endpoint resolution and filters"), over every combination. */
import assert from "node:assert/strict";
import type { EndpointId, IdentityId, PartnerId, TenantId } from "../../lib/ids.ts";
import { filtered, inScope, type MatchEndpoint, type MatchEvent, mismatch } from "../../lib/match.ts";

const TENANTS = ["ten_1", "ten_2"] as TenantId[], PARTNERS = ["ptn_1", "ptn_2"] as PartnerId[];
const IDENTITIES = ["idn_1", "idn_2"] as IdentityId[],
  ME = "whk_me" as EndpointId,
  OTHER = "whk_other" as EndpointId;

/** Every event there may be: of a tenant with or without a partner, or of the platform. */
function* events(): Generator<MatchEvent> {
  for (const tenant of [null, ...TENANTS]) {
    for (const partner of [null, ...PARTNERS]) {
      for (const identity of [null, ...IDENTITIES]) {
        for (const type of ["message.received", "domain.created", "webhook.test"]) {
          yield { type, tenant, partner, identity, about: null };
        }
      }
      for (const about of [ME, OTHER]) {
        yield { type: "webhook.disabled", tenant, partner, identity: null, about };
      }
    }
  }
}

function* endpoints(): Generator<MatchEndpoint> {
  const scopes = [
    { tenant_id: null, partner_id: null },
    ...TENANTS.map((tenant_id) => ({ tenant_id, partner_id: null })),
    ...PARTNERS.map((partner_id) => ({ tenant_id: null, partner_id })),
  ];
  const types = [["*"], ["message.received"], ["domain.created", "webhook.disabled"], ["webhook.test"], []];
  for (const scope of scopes) {
    for (const events of types) {
      for (const identity_ids of [null, [], [IDENTITIES[0]!], IDENTITIES]) {
        for (const enabled of [true, false]) {
          for (const deleted_at of [null, 0, 5]) {
            yield { id: ME, ...scope, events, identity_ids, enabled, deleted_at };
          }
        }
      }
    }
  }
}

/** "The enabled endpoints that can see the event", the document's WHERE clause and its exceptions. */
function sees(event: MatchEvent, to: MatchEndpoint): boolean {
  const platform = to.tenant_id === null && to.partner_id === null;
  if (platform) return true;
  if (event.type === "webhook.disabled") {
    return to.tenant_id === null && event.partner !== null && to.partner_id === event.partner;
  }
  if (to.tenant_id !== null) return to.tenant_id === event.tenant;
  return event.partner !== null && to.partner_id === event.partner;
}

/** "An endpoint matches when". */
function matches(event: MatchEvent, to: MatchEndpoint): boolean {
  const types = to.events.join() === "*" || to.events.includes(event.type);
  const identities = to.identity_ids === null ||
    event.identity !== null && to.identity_ids.includes(event.identity);
  return types && identities && event.type !== "webhook.test" &&
    !(event.type === "webhook.disabled" && event.about === to.id);
}

Deno.test("S1, filters, j15_partner_scope_filter: every event against every endpoint, as the document says it", () => {
  let received = 0;
  for (const event of events()) {
    for (const to of endpoints()) {
      const what = JSON.stringify([event, to]);
      const wanted = sees(event, to) && matches(event, to);
      assert.equal(inScope(event, to), sees(event, to), what);
      assert.equal(filtered(event, to) === null, wanted, what);
      assert.equal(mismatch(event, to) === null, wanted && to.enabled && to.deleted_at === null, what);
      if (mismatch(event, to) === null) received++;
    }
  }
  assert.ok(received > 100, String(received));
});

Deno.test("S1: a trace says nothing of an endpoint that may not know of the event, and the first rule that says no", () => {
  const event: MatchEvent = { type: "a.b", tenant: TENANTS[0]!, partner: null, identity: null, about: null };
  const to: MatchEndpoint = {
    id: ME,
    tenant_id: TENANTS[0]!,
    partner_id: null,
    events: ["*"],
    identity_ids: null,
    enabled: true,
    deleted_at: null,
  };
  const table: [Partial<MatchEvent>, Partial<MatchEndpoint>, ReturnType<typeof mismatch>][] = [
    [{}, {}, null],
    [{}, { deleted_at: 1, tenant_id: TENANTS[1]!, enabled: false }, "deleted"],
    [{}, { tenant_id: TENANTS[1]!, enabled: false, events: [] }, "other_scope"],
    [{}, { enabled: false, events: [] }, "disabled"],
    [{ type: "webhook.test" }, { events: [] }, "test_events_are_never_fanned_out"],
    [{ about: ME }, { events: [] }, "about_itself"],
    [{}, { events: ["a.c"], identity_ids: [] }, "event_type"],
    [{}, { identity_ids: IDENTITIES }, "identity_filter"],
  ];
  for (const [e, t, wanted] of table) assert.equal(mismatch({ ...event, ...e }, { ...to, ...t }), wanted);
});

/** What a key reaches (reference §2), against the sentence for each level, over every combination. */
import assert from "node:assert/strict";
import type { Id, IdentityId, PartnerId, TenantId } from "../../lib/ids.ts";
import { type EndpointRow, type KeyLevel, type KeyRow, permission, type TenantRow } from "../../lib/keys.ts";
import {
  holds,
  reachesEndpoint,
  reachesEvent,
  reachesKey,
  reachesTenant,
  scopeOf,
  wider,
} from "../../lib/reach.ts";

const ALL = permission.options;
const P = ["ptn_1", "ptn_2"] as PartnerId[], I = ["idn_1", "idn_2"] as IdentityId[];
/** A tenant of each partner, and one of nobody. */
const TENANTS = [["ten_1", P[0]], ["ten_2", P[1]], ["ten_3", null]].map(([id, partner_id]) =>
  ({ id, partner_id }) as TenantRow
);
const LEVELS: KeyLevel[] = ["platform", "partner", "tenant", "identity"];

const key = (level: KeyLevel, ids: Partial<KeyRow> = {}): KeyRow => ({
  id: "key_1" as Id<"key">,
  hash: "",
  name: "",
  level,
  partner_id: null,
  tenant_id: null,
  identity_id: null,
  permissions: [],
  expires_at: null,
  revoked_at: null,
  created_at: 0,
  ...ids,
});
/** Every key there may be. An identity-level key names its tenant, too. */
const KEYS: KeyRow[] = [
  key("platform"),
  ...P.map((partner_id) => key("partner", { partner_id })),
  ...TENANTS.map(({ id }) => key("tenant", { tenant_id: id })),
  ...TENANTS.flatMap(({ id }) => I.map((identity_id) => key("identity", { tenant_id: id, identity_id }))),
];
/** Whether a key's level and ids cover a tenant: the sentences of reference §2. */
const covers = (k: KeyRow, tenant: TenantRow): boolean =>
  ({
    platform: true,
    partner: tenant.partner_id === k.partner_id,
    tenant: tenant.id === k.tenant_id,
    identity: tenant.id === k.tenant_id,
  })[k.level];

Deno.test("reach: levels are ordered platform, partner, tenant, identity", () => {
  for (const [i, a] of LEVELS.entries()) {
    for (const [j, b] of LEVELS.entries()) assert.equal(wider(a, b), i < j, `${a} ${b}`);
  }
});

Deno.test("reach: a permission is held when it is listed, and webhooks:read with webhooks:manage; nothing else is implied", () => {
  for (const held of ALL) {
    for (const needed of ALL) {
      const implied = held === "webhooks:manage" && needed === "webhooks:read";
      assert.equal(holds({ permissions: [held] }, needed), held === needed || implied, `${held} ${needed}`);
    }
  }
  assert.equal(holds({ permissions: [] }, "webhooks:read"), false);
  assert.equal(holds({ permissions: ALL }, "platform:ops"), true);
});

Deno.test("reach: tenants, by each level", () => {
  for (const k of KEYS) {
    for (const tenant of TENANTS) {
      assert.equal(reachesTenant(k, tenant), covers(k, tenant), `${k.level} ${tenant.id}`);
    }
  }
  // A key row that lost its partner reaches no tenant without one.
  assert.equal(reachesTenant(key("partner"), TENANTS[2]!), false);
});

Deno.test("reach: endpoints of a tenant, a partner and the platform, by each level", () => {
  const of = (ids: Partial<EndpointRow>) => ({ tenant_id: null, partner_id: null, ...ids }) as EndpointRow;
  for (const k of KEYS) {
    for (const tenant of TENANTS) {
      const its = of({ tenant_id: tenant.id });
      assert.equal(reachesEndpoint(k, its, tenant), covers(k, tenant));
      assert.equal(reachesEndpoint(k, its, null), k.level === "platform", "its tenant is gone");
    }
    for (const partner_id of P) {
      const wanted = k.level === "platform" || k.level === "partner" && k.partner_id === partner_id;
      assert.equal(reachesEndpoint(k, of({ partner_id }), null), wanted);
    }
    assert.equal(reachesEndpoint(k, of({}), null), k.level === "platform", "the platform's");
  }
  const reached = of({ tenant_id: TENANTS[0]!.id, partner_id: P[1]! });
  assert.equal(reachesEndpoint(key("partner", { partner_id: P[1]! }), reached, TENANTS[0]!), false);
  assert.equal(reachesEndpoint(key("partner"), of({}), null), false, "no partner is not the platform");
});

Deno.test("reach: events, by each level", () => {
  for (const k of KEYS) {
    for (const tenant of [null, ...TENANTS]) {
      for (const partner of tenant === null ? [null, ...P] : [tenant.partner_id]) {
        for (const identity of [null, ...I]) {
          const wanted = {
            platform: true,
            partner: partner !== null && partner === k.partner_id,
            tenant: tenant !== null && tenant.id === k.tenant_id,
            identity: tenant !== null && tenant.id === k.tenant_id && identity !== null &&
              identity === k.identity_id,
          }[k.level];
          const event = { tenant: tenant?.id ?? null, partner, identity };
          assert.equal(reachesEvent(k, event), wanted, JSON.stringify([k, event]));
        }
      }
    }
  }
  const nobodys = { tenant: null, partner: null, identity: null };
  assert.equal(reachesEvent(key("partner"), nobodys), false);
  assert.equal(reachesEvent(key("tenant"), nobodys), false, "no tenant is no reach");
  const ofTenant = { tenant: TENANTS[0]!.id, partner: null, identity: null };
  assert.equal(reachesEvent(key("identity", { tenant_id: TENANTS[0]!.id }), ofTenant), false);
});

Deno.test("reach: keys that are no wider and within the tenants reached; an identity reaches its own keys alone", () => {
  for (const k of KEYS) {
    for (const other of KEYS) {
      const tenant = TENANTS.find(({ id }) => id === other.tenant_id) ?? null;
      const narrower = LEVELS.indexOf(other.level) >= LEVELS.indexOf(k.level);
      const within = other.level === "platform"
        ? false
        : other.level === "partner"
        ? k.level === "partner" && other.partner_id === k.partner_id
        : covers(k, tenant!) && (k.level !== "identity" || other.identity_id === k.identity_id);
      const wanted = k.level === "platform" || narrower && within;
      assert.equal(reachesKey(k, other, tenant), wanted, JSON.stringify([k, other]));
    }
    // A row of a narrower key that names a partner beside its tenant opens nothing wider.
    const odd = { ...k, partner_id: P[0]! }, wide = key("partner", { partner_id: P[0]! });
    if (k.level === "tenant" || k.level === "identity") assert.equal(reachesKey(odd, wide, null), false);
    const orphan = key("tenant", { tenant_id: "ten_9" as TenantId });
    assert.equal(reachesKey(k, orphan, null), k.level === "platform", "its tenant is gone");
  }
});

Deno.test("reach: the scope of a key is its own, and an identity's is its tenant's", () => {
  const wanted = (k: KeyRow) =>
    k.level === "platform"
      ? { level: "platform" }
      : k.level === "partner"
      ? { level: "partner", partner: k.partner_id }
      : { level: "tenant", tenant: k.tenant_id };
  for (const k of KEYS) assert.deepEqual(scopeOf(k), wanted(k));
});

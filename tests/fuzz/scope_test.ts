/** Every scope rule of the route table against every level of key, over a real store: what is found, and which refusal (reference §2). */
import assert from "node:assert/strict";
import { ApiError } from "../../lib/errors.ts";
import type { EndpointId, Id, IdentityId, PartnerId, TenantId } from "../../lib/ids.ts";
import {
  type EndpointRow,
  type KeyLevel,
  type KeyRow,
  keys,
  type OwnerKind,
  type OwnerRef,
  type PartnerRow,
  type TenantRow,
} from "../../lib/keys.ts";
import { resolveScope } from "../../routes/scope.ts";
import type { OwnedThing, ScopeRule } from "../../routes/table.ts";

const P = ["ptn_1", "ptn_2"] as PartnerId[];
const TENANTS = [["ten_1", P[0]], ["ten_2", P[1]], ["ten_3", null]].map(([id, partner_id]) =>
  ({ id, partner_id }) as TenantRow
);
const KINDS: Record<OwnedThing, OwnerKind> = { identity: "mailbox", domain: "domain", job: "job" };
const THINGS = Object.keys(KINDS) as OwnedThing[];
/** Two of each kind in each tenant. */
const OWNERS: OwnerRef[] = TENANTS.flatMap(({ id: tenant }) =>
  THINGS.flatMap((thing) =>
    [1, 2].map((n) => ({ kind: KINDS[thing], tenant, id: `${thing}-${n}-of-${tenant}` }))
  )
);
const ENDPOINTS = [
  ...TENANTS.map(({ id }) => ({ id: `whk_of_${id}`, tenant_id: id, partner_id: null })),
  ...P.map((id) => ({ id: `whk_of_${id}`, tenant_id: null, partner_id: id })),
  { id: "whk_of_platform", tenant_id: null, partner_id: null },
] as EndpointRow[];

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
const KEYS: KeyRow[] = [
  key("platform"),
  ...P.map((partner_id) => key("partner", { partner_id })),
  ...TENANTS.map(({ id }) => key("tenant", { tenant_id: id })),
  ...TENANTS.map(({ id }) =>
    key("identity", { tenant_id: id, identity_id: `identity-1-of-${id}` as IdentityId })
  ),
];
const covers = (k: KeyRow, tenant: TenantRow): boolean =>
  k.level === "platform" ||
  (k.level === "partner" ? tenant.partner_id === k.partner_id : tenant.id === k.tenant_id);

async function withStore(
  body: (ask: typeof asker extends (kv: Deno.Kv) => infer A ? A : never) => Promise<void>,
) {
  const kv = await Deno.openKv(":memory:");
  try {
    for (const tenant of TENANTS) await kv.set(keys.tenant(tenant.id), tenant);
    for (const id of P) await kv.set(keys.partner(id), { id } as PartnerRow);
    for (const owner of OWNERS) await kv.set(keys.ownerOf(owner.id), owner);
    for (const endpoint of ENDPOINTS) await kv.set(keys.endpoint(endpoint.id), endpoint);
    await kv.set(keys.ownerOf("orphan"), { kind: "mailbox", tenant: "ten_9" as TenantId, id: "orphan" });
    await kv.set(keys.endpoint("whk_orphan" as EndpointId), { tenant_id: "ten_9", partner_id: null });
    await body(asker(kv));
  } finally {
    kv.close();
  }
}
/** What the rule makes of an id: the error's code, or what was found. */
const asker = (kv: Deno.Kv) => (rule: ScopeRule, id: string, k: KeyRow) =>
  resolveScope(kv, rule, { id }, k).catch((error) => {
    assert.ok(error instanceof ApiError, String(error));
    return error.code;
  });

Deno.test("scope: a tenant within reach is found and counted; out of reach is as if it were not there", () =>
  withStore(async (ask) => {
    for (const k of KEYS) {
      for (const tenant of TENANTS) {
        for (const identityKeys of [true, false]) {
          const wanted = !covers(k, tenant)
            ? "tenant_not_found"
            : k.level === "identity" && !identityKeys
            ? "scope_denied"
            : { context: { tenant }, tenant: tenant.id };
          assert.deepEqual(await ask({ by: "tenant", param: "id", identityKeys }, tenant.id, k), wanted);
        }
      }
      assert.equal(
        await ask({ by: "tenant", param: "id", identityKeys: true }, "ten_9", k),
        "tenant_not_found",
      );
    }
  }));

Deno.test("scope: an owner of the kind asked for, in a tenant within reach; an identity-level key reaches its own identity alone", () =>
  withStore(async (ask) => {
    for (const k of KEYS) {
      for (const thing of THINGS) {
        const rule: ScopeRule = { by: "owner", param: "id", thing };
        for (const owner of OWNERS) {
          const tenant = TENANTS.find(({ id }) => id === owner.tenant)!;
          const found = owner.kind === KINDS[thing] && covers(k, tenant) &&
            (k.level !== "identity" || owner.id === k.identity_id);
          const wanted = found ? { context: { tenant, owner }, tenant: tenant.id } : `${thing}_not_found`;
          assert.deepEqual(await ask(rule, owner.id, k), wanted, `${k.level} ${owner.id}`);
        }
        assert.equal(await ask(rule, "nobody", k), `${thing}_not_found`);
        assert.equal(await ask(rule, "orphan", k), `${thing}_not_found`, "its tenant is gone");
      }
    }
  }));

Deno.test("scope: an endpoint of a tenant, a partner or the platform", () =>
  withStore(async (ask) => {
    for (const k of KEYS) {
      for (const endpoint of ENDPOINTS) {
        const tenant = TENANTS.find(({ id }) => id === endpoint.tenant_id);
        const reached = k.level === "platform" || (tenant !== undefined
          ? covers(k, tenant)
          : k.level === "partner" && endpoint.partner_id === k.partner_id);
        for (const identityKeys of [true, false]) {
          const wanted = !reached
            ? "webhook_not_found"
            : k.level === "identity" && !identityKeys
            ? "scope_denied"
            : { context: { endpoint }, tenant: endpoint.tenant_id };
          assert.deepEqual(await ask({ by: "endpoint", param: "id", identityKeys }, endpoint.id, k), wanted);
        }
      }
      const gone = await ask({ by: "endpoint", param: "id", identityKeys: true }, "whk_orphan", k);
      if (k.level !== "platform") assert.equal(gone, "webhook_not_found", "its tenant is gone");
      assert.equal(await ask({ by: "endpoint", param: "id" }, "whk_none", k), "webhook_not_found");
    }
  }));

Deno.test("scope: a partner is the platform's and its own", () =>
  withStore(async (ask) => {
    for (const k of KEYS) {
      for (const id of P) {
        const reached = k.level === "platform" || k.level === "partner" && k.partner_id === id;
        const wanted = reached ? { context: { partner: { id } }, tenant: null } : "partner_not_found";
        assert.deepEqual(await ask({ by: "partner", param: "id" }, id, k), wanted);
      }
      assert.equal(await ask({ by: "partner", param: "id" }, "ptn_9", k), "partner_not_found");
    }
    // A narrower key whose row names its partner is no partner key.
    const odd = key("tenant", { tenant_id: TENANTS[0]!.id, partner_id: P[0]! });
    assert.equal(await ask({ by: "partner", param: "id" }, P[0]!, odd), "partner_not_found");
  }));

Deno.test("scope: platform routes are for platform keys; where nothing is named, requests count against the key's tenant", () =>
  withStore(async (ask) => {
    for (const k of KEYS) {
      const wanted = k.level === "platform" ? { context: {}, tenant: null } : "scope_denied";
      assert.deepEqual(await ask("platform", "", k), wanted);
      const rules: ScopeRule[] = ["any", { by: "caller" }, { by: "key", param: "id" }, {
        by: "event",
        param: "id",
      }];
      for (const rule of rules) {
        assert.deepEqual(await ask(rule, "x", k), { context: {}, tenant: k.tenant_id });
      }
    }
  }));

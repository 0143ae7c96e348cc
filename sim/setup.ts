/** The rows a world begins with: partners, tenants, identities, owners to append to, and the first endpoints. */
import type { EndpointId, IdentityId, PartnerId, TenantId } from "../lib/ids.ts";
import { ulidFrom } from "../lib/ids.ts";
import {
  type EndpointRow,
  keys,
  type OwnerRef,
  type PartnerRow,
  type Scope,
  type TenantRow,
} from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { secretAad } from "../actors/secrets.ts";
import { scopeOfEndpoint } from "../actors/endpoints.ts";
import { type MoodName, MOODS } from "./acts.ts";
import type { Rng } from "./rng.ts";
import type { World } from "./world.ts";

export interface Cast {
  partners: PartnerId[];
  tenants: { id: TenantId; partner: PartnerId | null; identities: IdentityId[] }[];
  owners: OwnerRef[];
  scopes: Scope[];
  /** Hosts that have been handed out. */
  hosts: string[];
}

export const TYPES = ["message.received", "message.sent", "domain.verified", "quota.warning"];

export async function setUp(world: World): Promise<Cast> {
  const rng = world.rng.fork("setup");
  const at = world.clock.now() - 60_000;
  const id = (prefix: string) => `${prefix}_${ulidFrom(at, rng.bytes(10))}`;
  const rows: { key: KvKey; value: unknown }[] = [];
  const partners = [id("ptn"), id("ptn")] as PartnerId[];
  for (const partner of partners) {
    const row: PartnerRow = { id: partner, name: "p", status: "active", created_at: at, updated_at: at };
    rows.push({ key: keys.partner(partner), value: row });
  }
  const tenants = [partners[0]!, partners[1]!, null].map((partner) => {
    const tenant = id("ten") as TenantId;
    const row: TenantRow = {
      ...{ id: tenant, partner_id: partner, slug: tenant, name: "t", created_at: at, updated_at: at },
      policy: { webhook_text_bytes: 1_024, retention: { events_days: 30 } },
    };
    rows.push({ key: keys.tenant(tenant), value: row });
    const identities = [id("idn"), id("idn")] as IdentityId[];
    for (const identity of identities) {
      const owner: OwnerRef = { kind: "mailbox", tenant, id: identity };
      rows.push({ key: keys.ownerOf(identity), value: owner });
    }
    return { id: tenant, partner, identities };
  });
  const owners = tenants.flatMap(({ id: tenant, identities }): OwnerRef[] => [
    { kind: "mailbox", tenant, id: identities[0]! },
    { kind: "custom", tenant, id: `order-${rng.int(1_000)}` },
  ]);
  const scopes: Scope[] = [
    { level: "platform" },
    ...partners.map((partner): Scope => ({ level: "partner", partner })),
    ...tenants.map(({ id }): Scope => ({ level: "tenant", tenant: id })),
  ];
  const cast: Cast = { partners, tenants, owners, scopes, hosts: [] };
  const counts = new Map<Scope, number>();
  for (let i = 0; i < world.config.endpoints; i++) {
    const scope = rng.pick(scopes);
    const endpoint = id("whk") as EndpointId;
    const row: EndpointRow = {
      ...{ id: endpoint, tenant_id: null, partner_id: null, ...wantedEndpoint(world, cast, scope, rng) },
      ...(scope.level === "tenant" ? { tenant_id: scope.tenant } : {}),
      ...(scope.level === "partner" ? { partner_id: scope.partner } : {}),
      ...{ description: null, enabled: true, disabled_reason: null, deleted_at: null },
      secret_enc: await world.sealer.seal(rng.bytes(32), secretAad("secret_enc", endpoint)),
      ...{ prev_secret_enc: null, prev_secret_expires_at: null, created_at: at, updated_at: at },
    };
    counts.set(scope, (counts.get(scope) ?? 0) + 1);
    rows.push({ key: keys.endpoint(endpoint), value: row });
    rows.push({ key: keys.endpointOfScope(scopeOfEndpoint(row), endpoint), value: true });
  }
  for (const [scope, count] of counts) rows.push({ key: keys.endpointCount(scope), value: count });
  world.store.seed(rows);
  return cast;
}

/** Somewhere of its own to send to, and filters. */
export function wantedEndpoint(world: World, cast: Cast, scope: Scope, rng: Rng) {
  const identities = scope.level === "tenant"
    ? cast.tenants.find(({ id }) => id === scope.tenant)!.identities
    : cast.tenants.filter(({ partner }) => scope.level === "platform" || partner === scope.partner)
      .flatMap(({ identities }) => identities);
  return {
    url: `https://${newHost(world, cast, rng)}/hook`,
    events: rng.chance(0.6) ? ["*"] : TYPES.filter(() => rng.chance(0.5)).concat("webhook.disabled"),
    identity_ids: rng.chance(0.2) ? identities.filter(() => rng.chance(0.6)) : null,
  };
}

export function newHost(world: World, cast: Cast, rng: Rng): string {
  const host = `h${cast.hosts.length}.hooks.example.com`;
  cast.hosts.push(host);
  world.net.mood(host, MOODS[anyMood(rng)]);
  return host;
}

export function anyMood(rng: Rng): MoodName {
  return rng.chance(0.4) ? "healthy" : rng.pick(Object.keys(MOODS) as MoodName[]);
}

/**
 * Partners and tenants. A partner key's tenants carry its `partner_id` for ever (replay selects on it); a partner's suspension
 * holds the deliveries of its endpoints and its tenants' (document, "Delivering an attempt", step 2).
 */
import { ApiError, notFound } from "../lib/errors.ts";
import type { Ids, PartnerId, TenantId } from "../lib/ids.ts";
import { keys, type PartnerRow, type Policy, type Scope, type TenantRow } from "../lib/keys.ts";
import { EVENTS_DAYS_DEFAULT, TEXT_BYTES_DEFAULT } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import { type Actor, auditWrites } from "./audit.ts";
import { change } from "./change.ts";
import { policyUpdated } from "./policy_event.ts";

export interface TenancyDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
  jobs: Pick<Jobs, "write">;
}

/** A policy as a caller gives it: absent fields stay as they are (or at their defaults). */
export interface PolicyPatch {
  webhook_text_bytes?: number | undefined;
  retention?: { events_days?: number | undefined } | undefined;
}

export const DEFAULT_POLICY: Policy = {
  webhook_text_bytes: TEXT_BYTES_DEFAULT,
  retention: { events_days: EVENTS_DAYS_DEFAULT },
};

/** No tenant has it. */
const NOBODY = `ten_${"0".repeat(26)}` as TenantId;

/**
 * The tenant something belongs to. What has none, or is not there, costs the same read: how long a 404 takes tells nobody whether the
 * thing is another's or does not exist (reference §2).
 */
export async function tenantOf(kv: Kv, id: TenantId | null | undefined): Promise<TenantRow | null> {
  return (await kv.get<TenantRow>(keys.tenant(id ?? NOBODY))).value;
}

export async function createPartner(d: TenancyDeps, name: string, by: Actor): Promise<PartnerRow> {
  const now = d.now();
  const row: PartnerRow = {
    id: d.ids.next("partner"),
    name,
    status: "active",
    created_at: now,
    updated_at: now,
  };
  return await change(d.committer, row.id, () =>
    Promise.resolve({
      unit: {
        checks: [{ key: keys.partner(row.id), versionstamp: null }],
        writes: [
          { op: "set", key: keys.partner(row.id), value: row },
          ...auditWrites(d, {
            action: "partner.created",
            by,
            tenant: null,
            partner: row.id,
            subject: row.id,
          }),
        ],
      },
      result: row,
    }));
}

/** @returns the new row, and whether this change made a suspended partner active again (parked deliveries then go on). */
export async function updatePartner(
  d: TenancyDeps,
  id: PartnerId,
  patch: { name?: string | undefined; status?: PartnerRow["status"] | undefined },
  by: Actor,
): Promise<{ row: PartnerRow; reactivated: boolean }> {
  return await change(d.committer, id, async () => {
    const { value: old, versionstamp } = await d.kv.get<PartnerRow>(keys.partner(id));
    if (old === null) throw notFound("partner");
    const row: PartnerRow = {
      ...old,
      name: patch.name ?? old.name,
      status: patch.status ?? old.status,
      updated_at: d.now(),
    };
    if (row.name === old.name && row.status === old.status) {
      return { unit: null, result: { row: old, reactivated: false } };
    }
    const action = row.status === old.status ? "partner.updated" : `partner.${row.status}`;
    const writes: Write[] = [
      { op: "set", key: keys.partner(id), value: row },
      { op: "set", key: keys.endpointsRevision(), value: d.ids.ulid() },
      ...auditWrites(d, { action, by, tenant: null, partner: id, subject: id }),
    ];
    const reactivated = old.status === "suspended" && row.status === "active";
    return {
      unit: { checks: [{ key: keys.partner(id), versionstamp }], writes },
      result: { row, reactivated },
    };
  });
}

/**
 * @param partner the calling partner key's, or null.
 * @throws ApiError 409 `already_exists` when one of the partner's own tenants (or of those of none) has the slug.
 */
export async function createTenant(
  d: TenancyDeps,
  input: { slug: string; name: string; policy?: PolicyPatch | undefined; partner: PartnerId | null },
  by: Actor,
): Promise<TenantRow> {
  const id = d.ids.next("tenant");
  const { partner } = input;
  const scope: Scope = partner === null ? { level: "platform" } : { level: "partner", partner };
  const slugKey = keys.tenantSlug(scope, input.slug);
  return await change(d.committer, slugKey.join(" "), async () => {
    const taken = await d.kv.get(slugKey);
    if (taken.value !== null) throw slugTaken();
    const now = d.now();
    const row: TenantRow = {
      id,
      partner_id: input.partner,
      slug: input.slug,
      name: input.name,
      policy: merged(DEFAULT_POLICY, input.policy),
      created_at: now,
      updated_at: now,
    };
    const checks = [{ key: slugKey, versionstamp: taken.versionstamp }];
    const writes: Write[] = [
      { op: "set", key: keys.tenant(id), value: row },
      { op: "set", key: slugKey, value: id },
      ...auditWrites(d, { action: "tenant.created", by, tenant: id, partner: input.partner, subject: id }),
    ];
    if (input.partner !== null) {
      const partner = await d.kv.get<PartnerRow>(keys.partner(input.partner));
      if (partner.value === null) throw notFound("partner");
      checks.push({
        key: partner.key as ReturnType<typeof keys.partner>,
        versionstamp: partner.versionstamp,
      });
      writes.push({ op: "set", key: keys.tenantOfPartner(input.partner, id), value: true });
    }
    return { unit: { checks, writes }, result: row };
  });
}

/** A changed policy counts up `policy_version` and tells of it with `tenant.policy_updated`, in the same commit. */
export async function updateTenant(
  d: TenancyDeps,
  id: TenantId,
  patch: { name?: string | undefined; policy?: PolicyPatch | undefined },
  by: Actor,
): Promise<TenantRow> {
  return await change(d.committer, id, async () => {
    const { value: old, versionstamp } = await d.kv.get<TenantRow>(keys.tenant(id));
    if (old === null) throw notFound("tenant");
    const row: TenantRow = {
      ...old,
      name: patch.name ?? old.name,
      policy: merged(old.policy, patch.policy),
      updated_at: d.now(),
    };
    const fields = policyDiff(old.policy, row.policy);
    if (row.name === old.name && fields.length === 0) return { unit: null, result: old };
    if (fields.length > 0) row.policy_version = (old.policy_version ?? 1) + 1;
    const writes: Write[] = [
      { op: "set", key: keys.tenant(id), value: row },
      ...auditWrites(d, { action: "tenant.updated", by, tenant: id, partner: row.partner_id, subject: id }),
    ];
    if (fields.length > 0) writes.push(...policyUpdated(d, row, fields, by));
    return { unit: { checks: [{ key: keys.tenant(id), versionstamp }], writes }, result: row };
  });
}

function merged(base: Policy, patch: PolicyPatch | undefined): Policy {
  return {
    webhook_text_bytes: patch?.webhook_text_bytes ?? base.webhook_text_bytes,
    retention: { events_days: patch?.retention?.events_days ?? base.retention.events_days },
  };
}

function policyDiff(before: Policy, after: Policy): string[] {
  const fields = [];
  if (before.webhook_text_bytes !== after.webhook_text_bytes) fields.push("webhook_text_bytes");
  if (before.retention.events_days !== after.retention.events_days) fields.push("retention.events_days");
  return fields;
}

const slugTaken = () =>
  new ApiError(
    "already_exists",
    "Cannot create the tenant: its slug is taken.",
    "Choose another slug.",
    { field: "slug" },
  );

/**
 * API keys: create, revoke, rotate (reference §2). A key never mints a wider one: not in level, reach, permissions or time.
 * With `by` null the caller is a command on the machine itself, which has no such bounds.
 */
import { ApiError, invalidRequest, notFound } from "../lib/errors.ts";
import type { Id, IdentityId, Ids, PartnerId, TenantId } from "../lib/ids.ts";
import {
  type KeyLevel,
  type KeyRow,
  keys,
  type OwnerRef,
  type PartnerRow,
  type Permission,
  type Scope,
  scopeName,
  type TenantRow,
} from "../lib/keys.ts";
import { HOUR_MS } from "../lib/limits.ts";
import { holds, reachesKey, reachesTenant, wider } from "../lib/reach.ts";
import { hashKey, type KeyMode, mintKey } from "../lib/edge/api_keys.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { Random } from "../lib/edge/ports.ts";
import { auditWrites } from "./audit.ts";
import { change } from "./change.ts";
import { tenantOf } from "./tenancy.ts";

export interface KeyDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
  random: Pick<Random, "bytes">;
  /** `PM_KEY_PEPPER`. */
  pepper: Uint8Array;
  mode: KeyMode;
}

/** What a new key is to be. The id its level needs defaults to the calling key's own. */
export interface KeySpec {
  name: string;
  level: KeyLevel;
  partner_id?: PartnerId | undefined;
  tenant_id?: TenantId | undefined;
  identity_id?: IdentityId | undefined;
  permissions: Permission[];
  /** Unix ms; null: never. */
  expires_at: number | null;
}

/** A row with its key string, which nobody sees again. */
export interface MintedKey {
  row: KeyRow;
  secret: string;
}

/** @throws ApiError 400, 403 `key_scope_exceeded`, 404 for what is out of the calling key's reach. */
export async function createKey(d: KeyDeps, spec: KeySpec, by: KeyRow | null): Promise<MintedKey> {
  if (by !== null && wider(spec.level, by.level)) throw exceeded(`its level would be wider than ${by.level}`);
  const { tenant, ...subject } = await subjectOf(d.kv, spec, by);
  if (spec.expires_at !== null && spec.expires_at <= d.now()) {
    throw invalidRequest([{ path: "expires_at", message: "must be in the future" }]);
  }
  const draft = {
    name: spec.name,
    level: spec.level,
    ...subject,
    permissions: [...new Set(spec.permissions)],
    expires_at: spec.expires_at,
  };
  if (by !== null) refuseWider(draft, by);
  const { row, secret, writes, lookup } = minted(d, draft);
  const checks = [{ key: keys.apiKey(lookup), versionstamp: null }];
  writes.push(...auditOf(d, "key.created", row, by, tenant));
  const made = { unit: { checks, writes }, result: { row, secret } };
  return await change(d.committer, row.id, () => Promise.resolve(made));
}

/** @returns the row and its look-up part, for the caches. Revoking twice changes nothing. @throws ApiError 404 */
export async function revokeKey(
  d: KeyDeps,
  id: Id<"key">,
  by: KeyRow | null,
): Promise<{ row: KeyRow; lookup: string }> {
  return await change(d.committer, id, async () => {
    const { row: old, lookup, versionstamp, tenant } = await readKey(d.kv, id, by);
    if (old.revoked_at !== null) return { unit: null, result: { row: old, lookup } };
    const row: KeyRow = { ...old, revoked_at: d.now() };
    const writes: Write[] = [
      { op: "set", key: keys.apiKey(lookup), value: row },
      ...auditOf(d, "key.revoked", row, by, tenant),
    ];
    return {
      unit: { checks: [{ key: keys.apiKey(lookup), versionstamp }], writes },
      result: { row, lookup },
    };
  });
}

/**
 * A new key like the old one, which stays good for `overlapHours` (0 to 168).
 * @returns the new key, and the old one's look-up part, for the caches.
 * @throws ApiError 403 when the old key is wider than the caller, 404, 409 `invalid_state` when it was revoked.
 */
export async function rotateKey(
  d: KeyDeps,
  id: Id<"key">,
  overlapHours: number,
  by: KeyRow | null,
): Promise<MintedKey & { replaced: string }> {
  return await change(d.committer, id, async () => {
    const { row: old, lookup, versionstamp, tenant } = await readKey(d.kv, id, by);
    const now = d.now();
    if (old.revoked_at !== null || old.expires_at !== null && old.expires_at <= now) {
      throw new ApiError(
        "invalid_state",
        "Cannot rotate this key: it is no longer good.",
        "Create a new key.",
      );
    }
    if (by !== null) refuseWider(old, by);
    const { row, secret, writes, lookup: fresh } = minted(d, old);
    const until = now + overlapHours * HOUR_MS;
    const ended: KeyRow = overlapHours === 0
      ? { ...old, revoked_at: now }
      : { ...old, expires_at: Math.min(old.expires_at ?? until, until) };
    writes.push(
      { op: "set", key: keys.apiKey(lookup), value: ended },
      ...auditOf(d, "key.rotated", old, by, tenant),
    );
    const checks = [
      { key: keys.apiKey(lookup), versionstamp },
      { key: keys.apiKey(fresh), versionstamp: null },
    ];
    return { unit: { checks, writes }, result: { row, secret, replaced: lookup } };
  });
}

/** A key by its id, within reach. @throws ApiError 404 `key_not_found` */
export async function readKey(kv: Kv, id: Id<"key">, by: KeyRow | null) {
  // The same reads, whether it is there or not: see `tenantOf`.
  const { value: lookup } = await kv.get<string>(keys.apiKeyById(id));
  const { value: row, versionstamp } = await kv.get<KeyRow>(keys.apiKey(lookup ?? ""));
  const tenant = await tenantOf(kv, row?.tenant_id);
  if (lookup === null || row === null) throw notFound("key");
  if (by !== null && !reachesKey(by, row, tenant)) throw notFound("key");
  return { row, lookup, versionstamp, tenant };
}

/** Whose set of keys it belongs to: its tenant's, its partner's or the platform's. */
export function scopeOfKey(row: Pick<KeyRow, "tenant_id" | "partner_id">): Scope {
  if (row.tenant_id !== null) return { level: "tenant", tenant: row.tenant_id };
  if (row.partner_id !== null) return { level: "partner", partner: row.partner_id };
  return { level: "platform" };
}

type Draft = Pick<
  KeyRow,
  "name" | "level" | "partner_id" | "tenant_id" | "identity_id" | "permissions" | "expires_at"
>;

function minted(d: KeyDeps, draft: Draft): MintedKey & { lookup: string; writes: Write[] } {
  const { text, lookup } = mintKey(d.mode, d.random);
  const row: KeyRow = {
    id: d.ids.next("key"),
    hash: hashKey(text, d.pepper),
    name: draft.name,
    level: draft.level,
    partner_id: draft.partner_id,
    tenant_id: draft.tenant_id,
    identity_id: draft.identity_id,
    permissions: draft.permissions,
    expires_at: draft.expires_at,
    revoked_at: null,
    created_at: d.now(),
  };
  const writes: Write[] = [
    { op: "set", key: keys.apiKey(lookup), value: row },
    { op: "set", key: keys.apiKeyById(row.id), value: lookup },
    { op: "set", key: keys.apiKeyOfScope(scopeName(scopeOfKey(row)), row.id), value: lookup },
  ];
  return { row, secret: text, lookup, writes };
}

/** The ids a level needs, existing and within reach. An id its level does not need is refused. */
async function subjectOf(kv: Kv, spec: KeySpec, by: KeyRow | null) {
  const none = { partner_id: null, tenant_id: null, identity_id: null, tenant: null };
  const allowed =
    { platform: [], partner: ["partner_id"], tenant: ["tenant_id"], identity: ["identity_id"] }[spec.level];
  for (const field of ["partner_id", "tenant_id", "identity_id"] as const) {
    if (spec[field] !== undefined && !(allowed as string[]).includes(field)) {
      throw invalidRequest([{ path: field, message: `does not go with the level ${spec.level}` }]);
    }
  }
  switch (spec.level) {
    case "platform":
      return none;
    case "partner": {
      const id = wanted(spec.partner_id ?? by?.partner_id, "partner_id");
      const partner = await kv.get<PartnerRow>(keys.partner(id));
      if (partner.value === null || by?.level === "partner" && by.partner_id !== id) {
        throw notFound("partner");
      }
      return { ...none, partner_id: id };
    }
    case "tenant": {
      const id = wanted(spec.tenant_id ?? by?.tenant_id, "tenant_id");
      const { value: tenant } = await kv.get<TenantRow>(keys.tenant(id));
      if (tenant === null || by !== null && !reachesTenant(by, tenant)) throw notFound("tenant");
      return { ...none, tenant_id: id, tenant };
    }
    case "identity": {
      const id = wanted(spec.identity_id ?? by?.identity_id, "identity_id");
      const { value: owner } = await kv.get<OwnerRef>(keys.ownerOf(id));
      const tenant = await tenantOf(kv, owner?.tenant);
      if (owner === null || owner.kind !== "mailbox") throw notFound("identity");
      if (tenant === null || by !== null && !reachesTenant(by, tenant)) throw notFound("identity");
      if (by?.level === "identity" && by.identity_id !== id) throw notFound("identity");
      return { ...none, tenant_id: tenant.id, identity_id: id, tenant };
    }
  }
}

function wanted<T>(id: T | null | undefined, path: string): T {
  if (id === null || id === undefined) throw invalidRequest([{ path, message: "is needed for this level" }]);
  return id;
}

/** @throws ApiError 403 `key_scope_exceeded` */
function refuseWider(draft: Draft, by: KeyRow): void {
  const missing = draft.permissions.filter((permission) => !holds(by, permission));
  if (missing.length > 0) throw exceeded("it would have permissions yours lacks", { permissions: missing });
  if (by.expires_at !== null && (draft.expires_at === null || draft.expires_at > by.expires_at)) {
    throw exceeded("it would outlive yours", { expires_at: new Date(by.expires_at).toISOString() });
  }
}

function auditOf(
  d: KeyDeps,
  action: string,
  row: KeyRow,
  by: KeyRow | null,
  tenant: TenantRow | null,
): Write[] {
  const partner = row.partner_id ?? tenant?.partner_id ?? null;
  return auditWrites(d, { action, by, tenant: row.tenant_id, partner, subject: row.id });
}

const exceeded = (why: string, details: Record<string, unknown> = {}) =>
  new ApiError(
    "key_scope_exceeded",
    `Cannot make this key: ${why}.`,
    "Ask for no more than your own key has.",
    details,
  );

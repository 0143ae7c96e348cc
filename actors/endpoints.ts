/**
 * Endpoints: create, change, rotate the secret, delete (document, "Secrets", "Dead deliveries"; reference §3). Every change writes
 * the endpoints' revision, so that no isolate goes on with a stale copy (D2), and its audit row, in the same commit.
 */
import { Buffer } from "node:buffer";
import { ApiError, notFound } from "../lib/errors.ts";
import type { EndpointHeaders } from "../lib/endpoint_headers.ts";
import type { EndpointId, IdentityId, Ids, PartnerId } from "../lib/ids.ts";
import {
  type EndpointRow,
  type HealthRow,
  type KeyRow,
  keys,
  type Scope,
  scopeName,
  type TenantRow,
} from "../lib/keys.ts";
import { HOUR_MS, MAX_ENDPOINTS_PER_SCOPE_OWNER } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { GuardedHttp } from "../lib/edge/http.ts";
import type { Check, Kv, Write } from "../lib/edge/kv.ts";
import type { Random } from "../lib/edge/ports.ts";
import type { Sealer } from "../lib/edge/seal.ts";
import { auditWrites } from "./audit.ts";
import { change } from "./change.ts";
import { checkInput } from "./endpoint_input.ts";
import { type SignatureVersions, withHeaders, withRotatedKey, withVersions } from "./endpoint_seals.ts";
import { secretAad } from "./secrets.ts";

const SECRET_BYTES = 32;

export interface EndpointDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
  random: Random;
  sealer: Pick<Sealer, "seal" | "open">;
  guard: Pick<GuardedHttp, "check">;
}

type By = Pick<KeyRow, "id"> | null;

/**
 * A new endpoint with its signing secret, which nobody sees again.
 * @throws ApiError 400 for its input, 422 `webhook_limit_reached` for the 21st of a scope owner.
 */
export async function createEndpoint(
  d: EndpointDeps,
  scope: Scope,
  input: {
    url: string;
    events: string[];
    identity_ids?: IdentityId[] | null | undefined;
    description?: string | null | undefined;
    headers?: EndpointHeaders | null | undefined;
    signature_versions?: SignatureVersions | undefined;
  },
  by: By,
): Promise<{ row: EndpointRow; secret: string }> {
  await checkInput(d, scope, input);
  const id = d.ids.next("endpoint");
  const { secret, sealed } = await newSecret(d, id);
  const row = await change(d.committer, scopeName(scope), async () => {
    const countKey = keys.endpointCount(scope);
    const count = await d.kv.get<number>(countKey);
    if ((count.value ?? 0) >= MAX_ENDPOINTS_PER_SCOPE_OWNER) throw limitReached();
    const now = d.now();
    const bare: EndpointRow = {
      id,
      tenant_id: scope.level === "tenant" ? scope.tenant : null,
      partner_id: scope.level === "partner" ? scope.partner : null,
      url: input.url,
      events: input.events,
      identity_ids: input.identity_ids ?? null,
      description: input.description ?? null,
      enabled: true,
      disabled_reason: null,
      secret_enc: sealed,
      prev_secret_enc: null,
      prev_secret_expires_at: null,
      created_at: now,
      updated_at: now,
      deleted_at: null,
    };
    const signed = await withVersions(d, bare, input.signature_versions ?? ["v1"]);
    const row = await withHeaders(d, signed, input.headers ?? null);
    const writes: Write[] = [
      { op: "set", key: keys.endpointOfScope(scope, id), value: true },
      { op: "set", key: countKey, value: (count.value ?? 0) + 1 },
      ...await changed(d, row, "webhook.created", by),
    ];
    return { unit: { checks: [{ key: countKey, versionstamp: count.versionstamp }], writes }, result: row };
  });
  return { row, secret };
}

export interface EndpointPatch {
  url?: string | undefined;
  events?: string[] | undefined;
  identity_ids?: IdentityId[] | null | undefined;
  description?: string | null | undefined;
  enabled?: boolean | undefined;
  /** All of them anew; null takes them away. */
  headers?: EndpointHeaders | null | undefined;
  signature_versions?: SignatureVersions | undefined;
}

/** Enabling resets the streak and the reason; disabling is `manual` and tells nobody. @throws ApiError 400, 404 */
export async function updateEndpoint(
  d: EndpointDeps,
  id: EndpointId,
  patch: EndpointPatch,
  by: By,
): Promise<EndpointRow> {
  const before = await d.kv.get<EndpointRow>(keys.endpoint(id));
  await checkInput(d, scopeOfEndpoint(live(before.value)), patch);
  return await change(d.committer, id, async () => {
    const { value, versionstamp } = await d.kv.get<EndpointRow>(keys.endpoint(id));
    const old = live(value);
    let row: EndpointRow = {
      ...old,
      url: patch.url ?? old.url,
      events: patch.events ?? old.events,
      identity_ids: patch.identity_ids === undefined ? old.identity_ids : patch.identity_ids,
      description: patch.description === undefined ? old.description : patch.description,
      enabled: patch.enabled ?? old.enabled,
      updated_at: d.now(),
    };
    if (patch.headers !== undefined) row = await withHeaders(d, row, patch.headers);
    if (patch.signature_versions !== undefined) row = await withVersions(d, row, patch.signature_versions);
    const checks: Check[] = [{ key: keys.endpoint(id), versionstamp }];
    const writes: Write[] = [];
    if (patch.enabled === true) {
      row.disabled_reason = null;
      const health = await d.kv.get<HealthRow>(keys.health(id));
      if (health.value !== null && health.value.consecutive_failures > 0) {
        checks.push({ key: keys.health(id), versionstamp: health.versionstamp });
        const reset: HealthRow = { ...health.value, consecutive_failures: 0, failing_since: null };
        writes.push({ op: "set", key: keys.health(id), value: reset });
      }
    }
    if (patch.enabled === false) row.disabled_reason = "manual";
    writes.push(...await changed(d, row, "webhook.updated", by));
    return { unit: { checks, writes }, result: row };
  });
}

/**
 * A new secret, and a new Ed25519 key where there is one; the old ones sign beside them for `overlapHours` (0 to 168). The old value is opened and sealed again, because the
 * column is part of its associated data.
 * @throws ApiError 503 when the old secret does not open and an overlap is asked for.
 */
export async function rotateSecret(
  d: EndpointDeps,
  id: EndpointId,
  overlapHours: number,
  by: By,
): Promise<{ row: EndpointRow; secret: string }> {
  const { secret, sealed } = await newSecret(d, id);
  const row = await change(d.committer, id, async () => {
    const { value, versionstamp } = await d.kv.get<EndpointRow>(keys.endpoint(id));
    const old = live(value);
    const now = d.now();
    const row: EndpointRow = {
      ...await withRotatedKey(d, old, overlapHours > 0),
      secret_enc: sealed,
      prev_secret_enc: overlapHours === 0 ? null : await resealed(d, old),
      prev_secret_expires_at: overlapHours === 0 ? null : now + overlapHours * HOUR_MS,
      updated_at: now,
    };
    const writes = await changed(d, row, "webhook.secret_rotated", by);
    return { unit: { checks: [{ key: keys.endpoint(id), versionstamp }], writes }, result: row };
  });
  return { row, secret };
}

/** What is pending for it is dropped by the delivery stages; its log stays readable. */
export async function deleteEndpoint(d: EndpointDeps, id: EndpointId, by: By): Promise<void> {
  const { value } = await d.kv.get<EndpointRow>(keys.endpoint(id));
  await change(d.committer, scopeName(scopeOfEndpoint(live(value))), async () => {
    const { value, versionstamp } = await d.kv.get<EndpointRow>(keys.endpoint(id));
    const old = live(value), scope = scopeOfEndpoint(old), countKey = keys.endpointCount(scope);
    const count = await d.kv.get<number>(countKey);
    const now = d.now();
    const checks: Check[] = [
      { key: keys.endpoint(id), versionstamp },
      { key: countKey, versionstamp: count.versionstamp },
    ];
    const writes: Write[] = [
      { op: "delete", key: keys.endpointOfScope(scope, id) },
      { op: "set", key: countKey, value: Math.max(0, (count.value ?? 1) - 1) },
      ...await changed(d, { ...old, deleted_at: now, updated_at: now }, "webhook.deleted", by),
    ];
    return { unit: { checks, writes }, result: undefined };
  });
}

/** Whose set of endpoints it belongs to. */
export function scopeOfEndpoint(row: EndpointRow): Scope {
  if (row.tenant_id !== null) return { level: "tenant", tenant: row.tenant_id };
  if (row.partner_id !== null) return { level: "partner", partner: row.partner_id };
  return { level: "platform" };
}

/** The row unless it is missing or deleted. @throws ApiError 404 `webhook_not_found` */
export function live(row: EndpointRow | null): EndpointRow {
  if (row === null || row.deleted_at !== null) throw notFound("webhook");
  return row;
}

/** The partner an endpoint counts under: its own, or its tenant's. */
export async function partnerOfEndpoint(kv: Kv, row: EndpointRow): Promise<PartnerId | null> {
  if (row.tenant_id === null) return row.partner_id;
  return (await kv.get<TenantRow>(keys.tenant(row.tenant_id))).value?.partner_id ?? null;
}

/** The rows every change writes. */
async function changed(d: EndpointDeps, row: EndpointRow, action: string, by: By): Promise<Write[]> {
  const partner = await partnerOfEndpoint(d.kv, row);
  return [
    { op: "set", key: keys.endpoint(row.id), value: row },
    { op: "set", key: keys.endpointsRevision(), value: d.ids.ulid() },
    ...auditWrites(d, { action, by, tenant: row.tenant_id, partner, subject: row.id }),
  ];
}

async function newSecret(d: EndpointDeps, id: EndpointId): Promise<{ secret: string; sealed: string }> {
  const bytes = d.random.bytes(SECRET_BYTES);
  const sealed = await d.sealer.seal(bytes, secretAad("secret_enc", id));
  return { secret: `whsec_${Buffer.from(bytes).toString("base64")}`, sealed };
}

async function resealed(d: EndpointDeps, row: EndpointRow): Promise<string> {
  let plain: Uint8Array<ArrayBuffer>;
  try {
    plain = await d.sealer.open(row.secret_enc, secretAad("secret_enc", row.id));
  } catch {
    throw new ApiError(
      "unavailable",
      "Cannot rotate with an overlap: the present secret does not open.",
      "Rotate with overlap_hours 0, or restore the master key.",
    );
  }
  return await d.sealer.seal(plain, secretAad("prev_secret_enc", row.id));
}

const limitReached = () =>
  new ApiError(
    "webhook_limit_reached",
    `Cannot create another endpoint: there are ${MAX_ENDPOINTS_PER_SCOPE_OWNER} already.`,
    "Delete one, or widen the events of one.",
    { limit: MAX_ENDPOINTS_PER_SCOPE_OWNER },
  );

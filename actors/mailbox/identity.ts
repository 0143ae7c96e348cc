/** Commands on the identity itself: create, update, pause, resume, delete. Each is one commit with its event (O1). */
import { invalidState, notFound } from "../../lib/errors.ts";
import type { Id, IdentityId, TenantId } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import {
  type Changeable,
  changeable,
  identityCreated,
  identityOf,
  identityPaused,
  identityResumed,
  identityUpdated,
} from "../../lib/payloads/identity.ts";
import type { IdentityRow } from "../../lib/payloads/rows.ts";
import type { IdentityShape, PauseReason } from "../../lib/payloads/shapes.ts";
import type { Owners, Tx } from "../owner.ts";
import { claimAddress } from "./addresses.ts";
import {
  type Done,
  done,
  emit,
  identityId,
  loadIdentity,
  saveAddresses,
  saveIdentity,
  stateKey,
} from "./store.ts";

export interface NewIdentity {
  display_name: string;
  description?: string | null | undefined;
  external_id?: string | null | undefined;
  /** Its first address, active and primary from the start. */
  address?: string | undefined;
}

/** Runs on a fresh owner whose id is the new identity's. @throws `already_exists` when the tenant uses the address. */
export async function createIdentity(tx: Tx, input: NewIdentity): Promise<Done<IdentityShape>> {
  const row: IdentityRow = {
    id: tx.owner.id,
    tenant_id: tx.owner.tenant,
    display_name: input.display_name,
    description: input.description ?? null,
    external_id: input.external_id ?? null,
    status: "active",
    paused_reason: null,
    primary_address_id: null,
    primary_address: null,
    erasure_request_id: null,
    created_at: tx.now,
    updated_at: tx.now,
  };
  if (input.address !== undefined) {
    const address = await claimAddress(tx, input.address);
    saveAddresses(tx, [{ ...address, status: "active", is_primary: true }]);
    row.primary_address_id = address.id;
    row.primary_address = address.address;
  }
  saveIdentity(tx, row);
  tx.set(keys.ownerOf(tx.owner.id), tx.owner);
  tx.set(keys.ownerOfTenant(tx.owner), { created_at: tx.now });
  const identity = identityOf(row);
  return done(identity, await emit(tx, identityCreated, { identity }));
}

/** Changes what differs; when nothing does, nothing is written or sent. */
export async function updateIdentity(
  tx: Tx,
  input: { [F in Changeable]?: IdentityRow[F] | undefined },
): Promise<Done<IdentityShape>> {
  const row = await loadIdentity(tx);
  const changed = changeable.options.filter((field) =>
    input[field] !== undefined && input[field] !== row[field]
  );
  if (changed.length === 0) return done(identityOf(row));
  const given = Object.fromEntries(changed.map((field) => [field, input[field]]));
  const next: IdentityRow = { ...row, ...given, updated_at: tx.now };
  saveIdentity(tx, next);
  const identity = identityOf(next);
  return done(identity, await emit(tx, identityUpdated, { identity, changed }));
}

export interface Pause {
  reason: PauseReason;
  /** With `abuse_threshold` alone. */
  metrics?: Record<string, number> | undefined;
}

/** @throws 409 when it is paused already. */
export async function pauseIdentity(tx: Tx, { reason, metrics }: Pause): Promise<Done<IdentityShape>> {
  const row = await loadIdentity(tx);
  if (row.status === "paused") {
    throw invalidState("Cannot pause this identity: it is paused already.", "Resume it first.");
  }
  const next: IdentityRow = { ...row, status: "paused", paused_reason: reason, updated_at: tx.now };
  saveIdentity(tx, next);
  const data = { identity_id: row.id, reason, ...(metrics === undefined ? {} : { metrics }) };
  return done(identityOf(next), await emit(tx, identityPaused, data));
}

/** @throws 409 when it is not paused. */
export async function resumeIdentity(tx: Tx): Promise<Done<IdentityShape>> {
  const row = await loadIdentity(tx);
  if (row.status !== "paused") {
    throw invalidState("Cannot resume this identity: it is not paused.", "Nothing needs to be done.");
  }
  const next: IdentityRow = { ...row, status: "active", paused_reason: null, updated_at: tx.now };
  saveIdentity(tx, next);
  return done(identityOf(next), await emit(tx, identityResumed, { identity_id: row.id }));
}

/** What a deletion asks of the job runner. `id` is fixed by the mailbox, so asking twice starts one job. */
export interface ErasureStart {
  id: Id<"erasure">;
  tenant: TenantId;
  scope: "identity";
  identity: IdentityId;
  reason: string;
}

/** Starts the job unless a job with this erasure id is there already. */
export type StartErasure = (owners: Owners, request: ErasureStart) => Promise<void>;

/**
 * Marks the identity and names its erasure; `identity.deleted` is sent by the job once the mailbox is gone. Twice gives the
 * same request, so a caller whose first call broke off before the job started simply calls again.
 */
export async function deleteIdentity(
  tx: Tx,
  reason: string,
): Promise<{ identity: IdentityShape; erasure: ErasureStart }> {
  const row = await tx.get<IdentityRow>(stateKey(tx.owner, "identity"));
  if (row === null) throw notFound("identity");
  const id = (row.erasure_request_id ?? tx.ids.next("erasure")) as Id<"erasure">;
  const next: IdentityRow = row.status === "deleting"
    ? row
    : { ...row, status: "deleting", paused_reason: null, erasure_request_id: id, updated_at: tx.now };
  if (next !== row) saveIdentity(tx, next);
  const erasure = {
    id,
    tenant: tx.owner.tenant,
    scope: "identity",
    identity: identityId(tx),
    reason,
  } as const;
  return { identity: identityOf(next), erasure };
}

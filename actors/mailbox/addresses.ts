/**
 * Commands on an identity's addresses: pending → active → retired, one of the active ones primary. An address belongs to
 * one identity of a tenant at a time. All addresses are one row, because every mail looks at all of them.
 */
import { ApiError, invalidState, notFound } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import {
  addressActivated,
  addressAdded,
  addressOf,
  addressPromoted,
  addressRetired,
} from "../../lib/payloads/identity.ts";
import type { AddressRow, IdentityRow, MailAddressRow } from "../../lib/payloads/rows.ts";
import type { AddressShape } from "../../lib/payloads/shapes.ts";
import { normalAddress } from "../../lib/payloads/suppression.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import type { Appended, Owners, Tx } from "../owner.ts";
import { type Done, done, emit, loadAddresses, loadIdentity, saveAddresses, saveIdentity } from "./store.ts";

export const MAX_ADDRESSES = 20;
export const RETIRE_AFTER_DAYS_DEFAULT = 30;
export const RETIRE_AFTER_DAYS_MAX = 365;

/** A fresh pending address, entered in the tenant's index. @throws `already_exists` when the tenant uses it. */
export async function claimAddress(tx: Tx, text: string): Promise<AddressRow> {
  const address = normalAddress(text);
  const index = keys.mailAddress(tx.owner.tenant, address);
  if (await tx.get<MailAddressRow>(index) !== null) {
    throw new ApiError(
      "already_exists",
      "Cannot add the address: an identity of this tenant has it.",
      "Retire it there first, or use another one.",
    );
  }
  const id = tx.ids.next("address");
  tx.set(index, { identity: tx.owner.id, address: id } satisfies MailAddressRow);
  return { id, address, status: "pending", is_primary: false, retire_at: null, created_at: tx.now };
}

export async function addAddress(tx: Tx, text: string): Promise<Done<AddressShape>> {
  await loadIdentity(tx);
  const rows = await loadAddresses(tx);
  if (rows.filter(({ status }) => status !== "retired").length >= MAX_ADDRESSES) {
    throw invalidState(
      `Cannot add the address: the identity has ${MAX_ADDRESSES} already.`,
      "Retire one first.",
    );
  }
  const row = await claimAddress(tx, text);
  saveAddresses(tx, [...dropOldRetired(rows), row]);
  const address = addressOf(row);
  return done(address, await emit(tx, addressAdded, { address }));
}

/** Keeps the row bounded: of the retired ones only the newest stay. */
function dropOldRetired(rows: AddressRow[]): AddressRow[] {
  const retired = rows.filter(({ status }) => status === "retired");
  const dropped = new Set(retired.slice(0, Math.max(0, retired.length - MAX_ADDRESSES)));
  return rows.filter((row) => !dropped.has(row));
}

/** @throws 409 unless it is pending. */
export async function activateAddress(tx: Tx, id: Id<"address">): Promise<Done<AddressShape>> {
  await loadIdentity(tx);
  const rows = await loadAddresses(tx);
  const row = find(rows, id);
  if (row.status !== "pending") throw impossible("activate", row);
  row.status = "active";
  saveAddresses(tx, rows);
  const address = addressOf(row);
  return done(address, await emit(tx, addressActivated, { address }));
}

/** @throws 409 when it is retired or primary. */
export async function retireAddress(tx: Tx, id: Id<"address">): Promise<Done<AddressShape>> {
  await loadIdentity(tx);
  const rows = await loadAddresses(tx);
  const row = find(rows, id);
  if (row.status === "retired") throw impossible("retire", row);
  if (row.is_primary) {
    throw invalidState("Cannot retire the primary address.", "Promote another address first.");
  }
  const event = await retire(tx, row);
  saveAddresses(tx, rows);
  return done(addressOf(row), event);
}

/** The address is free for another identity of the tenant from here on. */
function retire(tx: Tx, row: AddressRow): Promise<Appended> {
  if (row.retire_at !== null) tx.delete(keys.retireDue(row.retire_at, row.id, tx.owner));
  row.status = "retired";
  row.retire_at = null;
  tx.delete(keys.mailAddress(tx.owner.tenant, row.address));
  return emit(tx, addressRetired, { address: addressOf(row) });
}

/**
 * Makes an active address the primary one. The previous primary takes mail for `retireAfterDays` more.
 * @throws 409 when it is not active or primary already.
 */
export async function promoteAddress(
  tx: Tx,
  id: Id<"address">,
  retireAfterDays: number = RETIRE_AFTER_DAYS_DEFAULT,
): Promise<Done<AddressShape>> {
  const identity = await loadIdentity(tx);
  const rows = await loadAddresses(tx);
  const row = find(rows, id);
  if (row.status !== "active" || row.is_primary) throw impossible("promote", row);
  const previous = rows.find(({ is_primary }) => is_primary) ?? null;
  if (previous !== null) {
    previous.is_primary = false;
    previous.retire_at = tx.now + retireAfterDays * DAY_MS;
    tx.set(keys.retireDue(previous.retire_at, previous.id, tx.owner), tx.owner);
  }
  // A former primary that comes back is not about to retire any more; a due row left over finds nothing to do.
  row.is_primary = true;
  row.retire_at = null;
  saveAddresses(tx, rows);
  const next: IdentityRow = {
    ...identity,
    primary_address_id: row.id,
    primary_address: row.address,
    updated_at: tx.now,
  };
  saveIdentity(tx, next);
  const address = addressOf(row);
  const previous_primary = previous === null ? null : addressOf(previous);
  return done(address, await emit(tx, addressPromoted, { address, previous_primary }));
}

/** Retires an address whose time has come; one that was promoted again meanwhile stays. Takes the index row away. */
export async function retireDue(tx: Tx, due: { at: number; address: string }): Promise<boolean> {
  const rows = await loadAddresses(tx);
  const row = rows.find(({ id }) => id === due.address);
  tx.delete(keys.retireDue(due.at, due.address, tx.owner));
  if (row === undefined || row.status === "retired" || row.retire_at !== due.at) return false;
  await retire(tx, row);
  saveAddresses(tx, rows);
  return true;
}

/** For the sweep: retires what is due in every mailbox, at most `limit` addresses; answers how many were retired. */
export async function retireDueAddresses(
  d: { kv: Kv; owners: Owners; now(): number },
  limit = 100,
): Promise<number> {
  const due: { at: number; address: string; owner: OwnerRef }[] = [];
  for await (const { key, value: owner } of d.kv.list<OwnerRef>({ prefix: keys.retireDues() }, { limit })) {
    const [, at, address] = key;
    if (Number(at) > d.now()) break;
    due.push({ at: Number(at), address: String(address), owner });
  }
  let retired = 0;
  for (const item of due) if (await d.owners.run(item.owner, (tx) => retireDue(tx, item))) retired++;
  return retired;
}

function find(rows: AddressRow[], id: Id<"address">): AddressRow {
  const row = rows.find((candidate) => candidate.id === id);
  if (row === undefined) throw notFound("address");
  return row;
}

const impossible = (verb: string, row: AddressRow) =>
  invalidState(
    `Cannot ${verb} the address: it is ${row.is_primary ? "the primary one" : row.status}.`,
    "Look at the identity's addresses.",
  );

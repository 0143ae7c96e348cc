/**
 * Domains: the commands of an owner of kind `domain` and the sweep that lets time act on them. Each command is one commit
 * with its event (O1). A domain that needs attention has one row under its due time, so the sweep reads only what is due.
 */
import { ApiError, invalidRequest, invalidState, invariant, notFound } from "../lib/errors.ts";
import { catalogue } from "../lib/catalogue.ts";
import {
  checked,
  type DomainCheck,
  domainName,
  type DomainRow,
  elapsed,
  newDomain,
  removed,
  type Step,
} from "../lib/domain_states.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Ids, TenantId } from "../lib/ids.ts";
import { keys, type OwnerRef } from "../lib/keys.ts";
import type { RemoveReason } from "../lib/payloads/domain.ts";
import type { Appended, Owners, Tx } from "./owner.ts";

export interface DomainDeps {
  kv: Kv;
  owners: Owners;
  now(): number;
  ids: Ids;
}

/** A domain after a command, with the event the command caused. */
export interface DomainChange {
  row: DomainRow;
  event: Appended | null;
}

const MAX_DUE_PER_SWEEP = 500;

/** Adds a domain. @throws ApiError 400 at `name`; 409 `already_exists` when the tenant has it already. */
export async function addDomain(d: DomainDeps, tenant: TenantId, name: string): Promise<DomainChange> {
  const ascii = domainName(name);
  if (ascii === null) {
    throw invalidRequest([{ path: "name", message: "must be a domain name of two labels or more" }]);
  }
  const owner: OwnerRef = { kind: "domain", tenant, id: d.ids.next("domain") };
  return await d.owners.run(owner, async (tx) => {
    const nameKey = keys.domainName(tenant, ascii);
    if (await tx.get(nameKey) !== null) {
      throw new ApiError(
        "already_exists",
        `Cannot add ${ascii}: this tenant has it already.`,
        "Use the domain it has.",
      );
    }
    tx.set(nameKey, owner.id);
    tx.set(keys.ownerOf(owner.id), owner);
    tx.set(keys.ownerOfTenant(owner), { created_at: tx.now });
    return await save(tx, null, newDomain(owner.id, ascii, tx.now));
  });
}

/** Takes a check's result. @throws ApiError 409 `invalid_state` when the domain cannot be in that state. */
export async function checkDomain(d: DomainDeps, owner: OwnerRef, check: DomainCheck): Promise<DomainChange> {
  return await d.owners.run(owner, async (tx) => {
    const row = await load(tx);
    // A check that finds a domain overdue comes after what time has done to it.
    const late = elapsed(row, tx.now);
    const step = checked(late === null || late.event?.type === "reminder" ? row : late.row, check, tx.now);
    if ("refused" in step) {
      throw invalidState(
        `Cannot take this check of the domain: ${step.refused}.`,
        "Look at the domain's state.",
      );
    }
    if (late === null || late.event?.type === "reminder") return await save(tx, row, step);
    const first = await save(tx, row, late);
    return step.event === null ? first : await save(tx, late.row, step);
  });
}

/** Removes a domain and frees its name. @throws ApiError 409 when it is removed already. */
export async function removeDomain(
  d: DomainDeps,
  owner: OwnerRef,
  reason: RemoveReason,
): Promise<DomainChange> {
  return await d.owners.run(owner, async (tx) => {
    const row = await load(tx);
    if (row.state === "removed") {
      throw invalidState("Cannot remove this domain: it was removed already.", "Nothing is left to do.");
    }
    return await save(tx, row, removed(row, reason, tx.now));
  });
}

/** The domain as it is stored. @throws ApiError 404. */
export async function readDomain(kv: Kv, owner: OwnerRef): Promise<DomainRow> {
  const { value } = await kv.get<DomainRow>(stateKey(owner));
  if (value === null) throw notFound("domain");
  return value;
}

/**
 * Lets time act on the domains that are due: reminders, suspension after 14 days of failing, giving up what was never
 * verified. For the sweep, every minute.
 * @returns how many were due; a full 500 means there may be more.
 */
export async function remindDomains(d: Omit<DomainDeps, "ids">): Promise<number> {
  const due: { key: Deno.KvKey; owner: OwnerRef }[] = [];
  const until = keys.domainDue(d.now() + 1, "");
  const rows = d.kv.list<OwnerRef>(
    { prefix: keys.domainsDue(), end: until },
    { limit: MAX_DUE_PER_SWEEP, batchSize: MAX_DUE_PER_SWEEP },
  );
  for await (const entry of rows) due.push({ key: entry.key, owner: entry.value });
  const settled = await Promise.allSettled(due.map(({ key, owner }) =>
    d.owners.run(owner, async (tx) => {
      const row = await tx.get<DomainRow>(stateKey(owner));
      const step = row === null ? null : elapsed(row, tx.now);
      if (step !== null) await save(tx, row, step);
      // A row that nothing answers for any more (another isolate was faster) only goes away.
      else if (row?.due !== key[1]) tx.delete(key);
    })
  ));
  // One domain's failure never holds up the others; the next sweep meets it again.
  const failed = settled.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return due.length;
}

const stateKey = (owner: OwnerRef) => keys.ownerState(owner, "domain");

async function load(tx: Tx): Promise<DomainRow> {
  const row = await tx.get<DomainRow>(stateKey(tx.owner));
  if (row === null) throw notFound("domain");
  return row;
}

async function save(tx: Tx, before: DomainRow | null, { row, event }: Step): Promise<DomainChange> {
  if (row === before) return { row, event: null };
  tx.set(stateKey(tx.owner), row);
  if (before !== null && before.due !== null && before.due !== row.due) {
    tx.delete(keys.domainDue(before.due, row.id));
  }
  if (row.due !== null && row.due !== before?.due) tx.set(keys.domainDue(row.due, row.id), tx.owner);
  if (row.state === "removed") tx.delete(keys.domainName(tx.owner.tenant, row.name));
  if (event === null) return { row, event: null };
  const type = `domain.${event.type}`;
  invariant(catalogue.get(type)?.data.safeParse(event.data).success, `O3 (data of ${type} fits its schema)`);
  return { row, event: await tx.append({ type, data: event.data }) };
}

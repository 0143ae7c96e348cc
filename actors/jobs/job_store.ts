/** How a job's steps read and write its row: each step is one commit that holds only if the row is as the step saw it. */
import { invariant, notFound } from "../../lib/errors.ts";
import { catalogue } from "../../lib/catalogue.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { encodeEventRow, eventRowOf } from "../../lib/event_row.ts";
import type { EventKey, IdentityId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import type { JobRow } from "../../lib/payloads/job_rows.ts";
import type { Appended, Owners, Tx } from "../owner.ts";

export interface JobDeps {
  kv: Kv;
  owners: Owners;
  now(): number;
}

/** Events one commit takes the payload from: each is a checked read, of which a commit has a hundred. */
export const EVENTS_PER_COMMIT = 40;

export const jobKey = (owner: OwnerRef) => keys.ownerState(owner, "job");

/** @throws ApiError 404. */
export async function readJob(kv: Kv, owner: OwnerRef): Promise<JobRow> {
  const { value } = await kv.get<JobRow>(jobKey(owner));
  if (value === null) throw notFound("job");
  return value;
}

/** Writes a job's row and keeps its one row under the due time. `before` null: a new job. */
export function saveJob(tx: Tx, before: JobRow | null, next: JobRow): void {
  tx.set(jobKey(tx.owner), next);
  if (before !== null && before.due !== null && before.due !== next.due) {
    tx.delete(keys.jobDue(before.due, tx.owner.id));
  }
  if (next.due !== null && next.due !== before?.due) tx.set(keys.jobDue(next.due, tx.owner.id), tx.owner);
}

/**
 * Takes a step: `act` changes the store within the commit that moves the job on. Another runner was there first: nothing
 * happens, and the caller reads the row again.
 */
export async function step<R extends JobRow>(
  d: JobDeps,
  owner: OwnerRef,
  seen: R,
  act: (tx: Tx) => Promise<Partial<R>> | Partial<R>,
): Promise<void> {
  await d.owners.run(owner, async (tx) => {
    const row = await tx.get<JobRow>(jobKey(owner));
    if (row === null || row.version !== seen.version) return;
    const changed = await act(tx);
    saveJob(tx, row, { ...row, throws: 0, ...changed, version: row.version + 1 } as JobRow);
  });
}

/** Appends an event of the job; its data fits its schema or never leaves. */
export function tell(tx: Tx, type: string, data: unknown, identity?: IdentityId): Promise<Appended> {
  invariant(catalogue.get(type)?.data.safeParse(data).success, `O3 (data of ${type} fits its schema)`);
  return tx.append({ type, data, identity: identity ?? null });
}

/** How a job's row names the event it ended with. */
export const ending = ({ id, type, sequence }: Appended): JobRow["event"] => ({ id, type, sequence });

/** Takes an event's payload away; the row stays, so that deliveries of it end as `event_unavailable`. False: none was left. */
export async function eraseEvent(tx: Tx, key: EventKey): Promise<boolean> {
  const row = eventRowOf(key, await tx.get(keys.event(key)));
  if (row === null || row.erased) return false;
  for (let i = 0; i < row.chunks; i++) tx.delete(keys.eventChunk(key, i));
  tx.set(keys.event(key), encodeEventRow(key, { ...row, body: null }));
  return true;
}

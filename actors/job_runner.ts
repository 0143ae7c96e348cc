/**
 * Jobs: erasures and exports, owners of kind `job`. A job is a row that says how far it is; a runner takes it step by step, each
 * a commit, so a crash half way goes on at the next sweep. Its owner's id is its request's with the prefix `job_`, so
 * asking twice for the same request is one job.
 */
import { ApiError, invalidRequest, notFound } from "../lib/errors.ts";
import { eventRowOf } from "../lib/event_row.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { EventKey, Id, IdentityId, Ids, PartnerId, TenantId } from "../lib/ids.ts";
import { keys, type OwnerRef, type TenantRow } from "../lib/keys.ts";
import { JOB_RETRY_MS, MAX_JOB_THROWS, VISIBILITY_MS } from "../lib/limits.ts";
import type { ErasureScope } from "../lib/payloads/job.ts";
import type { ErasureRow, ExportRow, JobRow } from "../lib/payloads/job_rows.ts";
import { type Actor, auditWrites } from "./audit.ts";
import { eraseStep } from "./jobs/erasure.ts";
import { exportStep } from "./jobs/export.ts";
import { ending, type JobDeps, jobKey, saveJob, tell } from "./jobs/job_store.ts";
import { holds } from "./mailbox/erase.ts";
import { deleteIdentity, type StartErasure } from "./mailbox/identity.ts";
import type { Owners, Tx } from "./owner.ts";

export type { JobDeps } from "./jobs/job_store.ts";
export { readJob } from "./jobs/job_store.ts";

export interface ErasureRequest {
  scope: ErasureScope;
  identity_id?: IdentityId | undefined;
  message_id?: Id<"message"> | undefined;
  thread_id?: Id<"thread"> | undefined;
  reason: string;
}

const MAX_DUE_PER_SWEEP = 50;
/** Steps a sweep gives one job before the next one has its turn. */
const STEPS_PER_TURN = 200;

/** The owner behind an `era_` or `exp_` id. */
export const jobOwner = (tenant: TenantId, request: string): OwnerRef => ({
  kind: "job",
  tenant,
  id: `job_${request.slice(request.indexOf("_") + 1)}`,
});

/**
 * Asks for an erasure. An identity is marked `deleting` first, so that nothing comes in while it goes.
 * @throws ApiError 400 when the ids do not fit the scope; 404 when there is nothing under them.
 */
export async function requestErasure(
  d: JobDeps & { ids: Ids },
  { id: tenant, partner_id }: Pick<TenantRow, "id" | "partner_id">,
  request: ErasureRequest,
  by: Actor,
): Promise<OwnerRef> {
  const { scope, reason } = request;
  const identity = request.identity_id ?? await mailboxHolding(d.kv, tenant, request.message_id);
  if (identity === null) {
    if (scope === "message" && request.message_id !== undefined) throw notFound("message");
    throw invalidRequest([{ path: "identity_id", message: `is required for scope ${scope}` }]);
  }
  const mailbox: OwnerRef = { kind: "mailbox", tenant, id: identity };
  if (scope === "identity") {
    forbid(request, scope, "message_id", "thread_id");
    const { erasure } = await d.owners.run(mailbox, async (tx) => {
      const deleted = await deleteIdentity(tx, reason);
      audit(tx, "erasure.requested", by, partner_id, deleted.erasure.id);
      return deleted;
    });
    await startErasure(d.owners, erasure);
    return jobOwner(tenant, erasure.id);
  }
  forbid(request, scope, scope === "message" ? "thread_id" : "message_id");
  const subject = scope === "message" ? request.message_id : request.thread_id;
  if (subject === undefined) {
    throw invalidRequest([{ path: `${scope}_id`, message: `is required for scope ${scope}` }]);
  }
  // A thread is known by its messages: without one there is none.
  if (!await holds(d.kv, mailbox, scope, subject)) throw notFound("message");
  const id = d.ids.next("erasure");
  const owner = jobOwner(tenant, id);
  await d.owners.run(owner, (tx) => {
    create(tx, newErasure(tx, id, scope, identity, request));
    audit(tx, "erasure.requested", by, partner_id, id);
  });
  return owner;
}

/** Starts an identity's erasure under the id its mailbox fixed, unless it is there already; one that failed goes on. */
export const startErasure: StartErasure = async (owners, { id, tenant, scope, identity, reason }) => {
  await owners.run(jobOwner(tenant, id), async (tx) => {
    const row = await tx.get<JobRow>(jobKey(tx.owner));
    if (row === null) create(tx, newErasure(tx, id, scope, identity, { reason }));
    else if (row.status === "failed") {
      saveJob(tx, row, { ...row, status: "queued", throws: 0, due: tx.now, version: row.version + 1 });
    }
  });
};

/** Asks for an export of a tenant's events, or of one identity's. */
export async function requestExport(
  d: { owners: Owners; ids: Ids },
  { id: tenant, partner_id }: Pick<TenantRow, "id" | "partner_id">,
  identity: IdentityId | null,
  by: Actor,
): Promise<OwnerRef> {
  const id = d.ids.next("export");
  const owner = jobOwner(tenant, id);
  await d.owners.run(owner, (tx) => {
    const row: ExportRow = {
      kind: "export",
      ...fresh(tx, id),
      identity_id: identity,
      until: tx.ids.ulid(),
      expires_at: null,
    };
    create(tx, row);
    audit(tx, "export.requested", by, partner_id, id);
  });
  return owner;
}

/**
 * Takes up to `steps` steps of a job. What a step throws is counted, and after 13 in a row the job fails; it never comes out.
 * @returns the row as it is then.
 */
export async function advanceJob(d: JobDeps, owner: OwnerRef, steps = STEPS_PER_TURN): Promise<JobRow> {
  for (let taken = 0;; taken++) {
    const { value: row } = await d.kv.get<JobRow>(jobKey(owner));
    if (row === null) throw notFound("job");
    if (row.due === null || taken === steps) return row;
    try {
      await (row.kind === "erasure" ? eraseStep(d, owner, row) : exportStep(d, owner, row));
    } catch (error) {
      await stumble(d, owner, row, error);
      return (await d.kv.get<JobRow>(jobKey(owner))).value ?? row;
    }
  }
}

/** Goes on with the jobs that are due. For the sweep, every minute. @returns how many were due. */
export async function runDueJobs(d: JobDeps): Promise<number> {
  const due: OwnerRef[] = [];
  const rows = d.kv.list<OwnerRef>(
    { prefix: keys.jobsDue(), end: keys.jobDue(d.now() + 1, "") },
    { limit: MAX_DUE_PER_SWEEP },
  );
  for await (const entry of rows) due.push(entry.value);
  for (const owner of due) {
    if (await claim(d, owner)) await release(d, owner, await advanceJob(d, owner));
  }
  return due.length;
}

/** Moves the due time on, so that other instances leave the job alone while this one works (as J3 does for job rows). */
function claim(d: JobDeps, owner: OwnerRef): Promise<boolean> {
  return d.owners.run(owner, async (tx) => {
    const row = await tx.get<JobRow>(jobKey(owner));
    if (row === null || row.due === null || row.due > tx.now) return false;
    saveJob(tx, row, { ...row, status: "running", due: tx.now + VISIBILITY_MS, version: row.version + 1 });
    return true;
  });
}

/** A job whose turn ended before it did is due again at once. */
async function release(d: JobDeps, owner: OwnerRef, seen: JobRow): Promise<void> {
  if (seen.due === null || seen.throws > 0) return;
  await d.owners.run(owner, async (tx) => {
    const row = await tx.get<JobRow>(jobKey(owner));
    if (row?.version === seen.version) saveJob(tx, row, { ...row, due: tx.now, version: row.version + 1 });
  });
}

/** Counts a failed step: again in 30 s, or failed for good after 13 in a row. */
async function stumble(d: JobDeps, owner: OwnerRef, seen: JobRow, error: unknown): Promise<void> {
  const code = error instanceof ApiError ? error.code : "store_failed";
  await d.owners.run(owner, async (tx) => {
    const row = await tx.get<JobRow>(jobKey(owner));
    if (row === null || row.version !== seen.version) return;
    const throws = row.throws + 1;
    const failed = throws >= MAX_JOB_THROWS;
    const next: JobRow = {
      ...row,
      throws,
      error: code,
      due: tx.now + JOB_RETRY_MS,
      version: row.version + 1,
    };
    if (failed) Object.assign(next, { status: "failed", due: null });
    if (failed && row.kind === "erasure") {
      const data = { erasure_request_id: row.id, step: row.step, error: code };
      next.event = ending(await tell(tx, "erasure.failed", data));
    }
    saveJob(tx, row, next);
  });
}

function create(tx: Tx, row: JobRow): void {
  saveJob(tx, null, row);
  tx.set(keys.ownerOf(tx.owner.id), tx.owner);
  tx.set(keys.ownerOf(row.id), tx.owner);
  tx.set(keys.ownerOfTenant(tx.owner), { created_at: tx.now });
}

function audit(tx: Tx, action: string, by: Actor, partner: PartnerId | null, subject: string): void {
  const d = { now: () => tx.now, ids: tx.ids };
  for (const write of auditWrites(d, { action, by, tenant: tx.owner.tenant, partner, subject })) {
    if (write.op === "set") tx.set(write.key, write.value);
  }
}

const fresh = (tx: Tx, id: string) => ({
  id,
  status: "queued" as const,
  version: 0,
  due: tx.now,
  throws: 0,
  error: null,
  cursor: null,
  events: 0,
  created_at: tx.now,
  completed_at: null,
  event: null,
});

function newErasure(
  tx: Tx,
  id: Id<"erasure">,
  scope: ErasureScope,
  identity: IdentityId,
  request: Pick<ErasureRequest, "message_id" | "thread_id" | "reason">,
): ErasureRow {
  return {
    kind: "erasure",
    ...fresh(tx, id),
    scope,
    identity_id: identity,
    message_id: request.message_id ?? null,
    thread_id: request.thread_id ?? null,
    reason: request.reason,
    step: "find",
    current: [],
    messages: 0,
  };
}

function forbid(request: ErasureRequest, scope: string, ...fields: ("message_id" | "thread_id")[]): void {
  const given = fields.filter((field) => request[field] !== undefined);
  if (given.length > 0) {
    throw invalidRequest(given.map((path) => ({ path, message: `does not go with scope ${scope}` })));
  }
}

/** Whose mailbox a message is in, by the first event that carries it. */
async function mailboxHolding(
  kv: Kv,
  tenant: TenantId,
  message: Id<"message"> | undefined,
): Promise<IdentityId | null> {
  if (message === undefined) return null;
  for await (const entry of kv.list({ prefix: keys.eventsOfMessage(message) }, { limit: 1 })) {
    const key = entry.key[2] as EventKey;
    const row = eventRowOf(key, (await kv.get(keys.event(key))).value);
    if (row !== null && row.tenant === tenant) return row.identity;
  }
  return null;
}

/**
 * `pmail secrets rotate-master` ("Secrets", Storage; reference §7): seals every sealed value of every endpoint again under the next
 * master key, after which the old one opens nothing any more.
 *
 * - Resumable: rows and the place they lead to are one commit, so a killed run goes on where it was.
 * - Safe beside services that have both keys: a row another changed meanwhile is read and sealed again, and every commit writes the
 *   endpoints' revision, so that none of them goes on with a stale copy.
 * - Passes repeat until one finds nothing: what a service sealed under the old key meanwhile is caught.
 */
import { ApiError } from "../lib/errors.ts";
import type { EndpointId, Ids } from "../lib/ids.ts";
import { after, type EndpointRow, keys, type MasterRotationRow, within } from "../lib/keys.ts";
import { MAX_GET_MANY_KEYS } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import { type Sealer, SealError } from "../lib/edge/seal.ts";
import { auditWrites } from "./audit.ts";
import { change } from "./change.ts";
import { getAll } from "./event_store.ts";
import { SEALED_COLUMNS, type SealedColumn, secretAad } from "./secrets.ts";

export interface RotateDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
  /** Opens both keys' values and seals under the next. */
  sealer: Sealer;
  /** Told after every commit. */
  progress?(done: Progress): void;
}

export interface Progress {
  /** Endpoints looked at in this pass. */
  endpoints: number;
  /** Values sealed again in this run. */
  resealed: number;
}

/** A value nobody can open any more; it stays as it is. */
export interface Unopenable {
  endpoint: EndpointId;
  column: SealedColumn;
  code: string;
}

export interface Rotated extends Progress {
  /** Where an earlier run had come to, or null. */
  resumedAfter: EndpointId | null;
  /** Those of deleted endpoints are not among them: nothing asks for them again. */
  unopenable: Unopenable[];
}

/** Ten rows of any size fit one commit. */
const BATCH = MAX_GET_MANY_KEYS;
/** A service that keeps sealing under the old key lacks the next one. */
const MAX_PASSES = 5;

/** @throws ApiError 409 `invalid_state` when values under another key keep appearing. */
export async function rotateMaster(d: RotateDeps): Promise<Rotated> {
  const found = (await d.kv.get<MasterRotationRow>(keys.masterRotation())).value;
  const resumedAfter = found?.kid === d.sealer.kid ? found.after : null;
  const done: Rotated = { endpoints: 0, resealed: 0, resumedAfter, unopenable: [] };
  for (let pass = 0, from = resumedAfter;; pass++, from = null) {
    const before = done.resealed;
    done.endpoints = 0;
    done.unopenable = [];
    await onePass(d, from, done);
    // A pass that began in the middle, or found something, says nothing of what lies behind it.
    if (from === null && done.resealed === before) break;
    if (pass === MAX_PASSES) throw keepsAppearing();
  }
  const writes: Write[] = [{ op: "delete", key: keys.masterRotation() }];
  if (done.resealed > 0 || resumedAfter !== null) {
    const entry = { action: "master_key.rotated", by: null, tenant: null, partner: null };
    writes.push(...auditWrites(d, { ...entry, subject: d.sealer.kid }));
  }
  await d.committer.commit({ checks: [], writes });
  return done;
}

async function onePass(d: RotateDeps, from: EndpointId | null, done: Rotated): Promise<void> {
  for (let at = from;;) {
    const start = at === null ? within(keys.endpoints(), "") : after(keys.endpoint(at));
    const ids: EndpointId[] = [];
    const rows = d.kv.list<EndpointRow>({ prefix: keys.endpoints(), start }, { limit: BATCH });
    for await (const entry of rows) ids.push(entry.key[1] as EndpointId);
    if (ids.length === 0) return;
    at = ids.at(-1)!;
    const batch = await resealBatch(d, ids, at);
    done.endpoints += ids.length;
    done.resealed += batch.resealed;
    done.unopenable.push(...batch.unopenable);
    d.progress?.({ endpoints: done.endpoints, resealed: done.resealed });
  }
}

/** One commit for up to ten endpoints and the place the pass has come to; none when all of them are sealed already. */
async function resealBatch(d: RotateDeps, ids: readonly EndpointId[], at: EndpointId) {
  return await change(d.committer, "master rotation", async () => {
    const result = { resealed: 0, unopenable: [] as Unopenable[] };
    const checks = [], writes: Write[] = [];
    for (const { key, value, versionstamp } of await getAll<EndpointRow>(d.kv, ids.map(keys.endpoint))) {
      if (value === null) continue;
      const row = { ...value };
      const resealed = await resealRow(d, row, result.unopenable);
      if (resealed === 0) continue;
      result.resealed += resealed;
      checks.push({ key, versionstamp });
      writes.push({ op: "set", key, value: row });
    }
    if (writes.length === 0) return { unit: null, result };
    const cursor: MasterRotationRow = { kid: d.sealer.kid, after: at };
    writes.push(
      { op: "set", key: keys.endpointsRevision(), value: d.ids.ulid() },
      { op: "set", key: keys.masterRotation(), value: cursor },
    );
    return { unit: { checks, writes }, result };
  });
}

/** Seals the row's values anew, in place. Returns how many there were. */
async function resealRow(d: RotateDeps, row: EndpointRow, unopenable: Unopenable[]): Promise<number> {
  let resealed = 0;
  for (const column of SEALED_COLUMNS) {
    const sealed = row[column];
    if (typeof sealed !== "string" || d.sealer.isCurrent(sealed)) continue;
    const aad = secretAad(column, row.id);
    try {
      row[column] = await d.sealer.seal(await d.sealer.open(sealed, aad), aad);
      resealed++;
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      if (row.deleted_at === null) unopenable.push({ endpoint: row.id, column, code: error.code });
    }
  }
  return resealed;
}

const keepsAppearing = () =>
  new ApiError(
    "invalid_state",
    "Cannot finish the rotation: values under the old master key keep appearing.",
    "Restart every service with PM_MASTER_KEY_NEXT set, then run this again.",
  );

/**
 * The outbox for an application's own commits: an event's rows go on the application's `kv.atomic()`, so that the event exists if
 * and only if the application's change committed (O1). The rows are those of an owner's turn (`turn.ts`): event, index, the
 * owner's sequence with its check (O2), and a Fanout job due now, which a service on the same store takes (J1).
 */
import type { EventId, Ids, TenantId } from "../lib/ids.ts";
import { type FanoutJob, keys, type OwnerRef, type TenantRow } from "../lib/keys.ts";
import { SECOND_MS } from "../lib/limits.ts";
import { invariant, notFound } from "../lib/errors.ts";
import { readJson } from "../lib/json.ts";
import { writeAll } from "../lib/edge/commit_batch.ts";
import { makeCommitter } from "../lib/edge/committer.ts";
import { type Jobs, makeJobs } from "../lib/edge/jobs.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { appendCustom, customOwner } from "./custom_owner.ts";
import { makeEventTypes } from "./event_types.ts";
import { indexWrites } from "./event_index.ts";
import type { StoredEvent } from "./event_store.ts";
import type { Appended, Tx } from "./owner.ts";
import { Turn } from "./turn.ts";

export interface OutboxDeps {
  kv: Kv;
  now(): number;
  ids: Ids;
  /** Ring `kv.enqueue` in the commit, for a service in this process or on a KV with queues. */
  doorbell: boolean;
}

export interface OutboxEvent {
  tenant: TenantId;
  /** Key of a custom owner. */
  owner: string;
  type: string;
  data: unknown;
  event_id?: EventId | undefined;
}

/**
 * The name of an instance that never lives: each instance of the service looks every second for such rows, so it finds what
 * another process appended within a second, where a queue message takes a minute.
 */
const WRITER = "outbox";
/** Every service drains shard 0, whatever its shard count. */
const SHARDS = 1;

/** What one atomic operation carries so far, by owner. */
interface Carried {
  seqs: Map<string, { seq: number; versionstamp: string | null }>;
  /** Deterministic ids appended here, which no read of the store can see yet. */
  seen: Map<string, Appended>;
  /** Appends of one operation run one after another. */
  tail: Promise<unknown>;
}

export type Outbox = ReturnType<typeof makeOutbox>;

export function makeOutbox(deps: OutboxDeps) {
  const { kv, now, ids } = deps;
  const jobs = makeJobs({ now, ulid: ids.ulid, instance: WRITER, shards: SHARDS, doorbell: false });
  const types = makeEventTypes({ kv, committer: makeCommitter(kv, { maxInFlight: 1 }), now });
  const operations = new WeakMap<Deno.AtomicOperation, Carried>();
  let rungUntil = -Infinity;

  /**
   * Puts the event on the operation. Nothing is written before the caller commits it; when that commit fails, the sequence was
   * taken by another, and the operation is built again from the start.
   * @throws ApiError 400 for an unknown type, data its schema refuses or a bad owner key; 404 for an unknown tenant.
   */
  function append(operation: Deno.AtomicOperation, event: OutboxEvent): Promise<Appended> {
    const carried = operations.get(operation) ??
      { seqs: new Map(), seen: new Map(), tail: Promise.resolve() };
    operations.set(operation, carried);
    const appended = carried.tail.then(async () => {
      const { tenant, owner, type, event_id } = event;
      const name = `${tenant} ${owner} ${event_id}`;
      const seen = event_id === undefined ? undefined : carried.seen.get(name);
      if (seen !== undefined) return { ...seen, duplicate: true };
      const { value: row } = await kv.get<TenantRow>(keys.tenant(tenant));
      if (row === null) throw notFound("tenant"); // said before its types are looked at
      // Judged and sent as JSON has it: dates as text, undefined members gone.
      const data = readJson(JSON.stringify(event.data) ?? "", "data");
      const run = <T>(owner: OwnerRef, command: (tx: Tx) => Promise<T> | T) =>
        turnOnto(operation, carried, owner, row, command);
      const owners = { run, forgetTenant() {} };
      const made = await appendCustom({ owners, types }, customOwner(tenant, owner), {
        type,
        data,
        event_id,
      });
      if (event_id !== undefined) carried.seen.set(name, made);
      return made;
    });
    carried.tail = appended.catch(() => {});
    return appended;
  }

  /** Runs a command as a turn of its owner whose unit goes on the operation instead of to the committer. */
  async function turnOnto<T>(
    operation: Deno.AtomicOperation,
    carried: Carried,
    owner: OwnerRef,
    tenant: TenantRow,
    command: (tx: Tx) => Promise<T> | T,
  ): Promise<T> {
    const name = `${owner.tenant} ${owner.id}`;
    const meta = await kv.get<number>(keys.ownerMeta(owner));
    // A second event of the owner goes on from the first's number, under the first's check.
    const before = carried.seqs.get(name) ?? { seq: meta.value ?? 0, versionstamp: meta.versionstamp };
    const turn = new Turn(deps, owner, tenant, before);
    const result = await turn.step(command) as T;
    const unit = turn.unit();
    if (unit === null) return result; // appended before under this id
    invariant(turn.seq > before.seq, "O2");
    for (const check of unit.checks) operation.check(check);
    writeAll(operation, unit.writes);
    const events = unit.carry as StoredEvent[];
    writeAll(operation, indexWrites(events));
    writeAll(operation, handOver(jobs, events));
    carried.seqs.set(name, { seq: turn.seq, versionstamp: before.versionstamp });
    return result;
  }

  /** The Fanout job, and what makes a service look at it soon. */
  function handOver(jobs: Jobs, events: readonly StoredEvent[]) {
    const job: FanoutJob = {
      v: 1,
      kind: "fanout",
      events: events.map((event) => event.key),
      untouched: true,
    };
    const { writes } = jobs.write(job, now());
    writes.push({ op: "set", key: keys.heartbeat(WRITER), value: { at: 0, started_at: 0 } });
    // The queue crawls under many messages: one a second, the row above covers the rest.
    if (deps.doorbell && now() >= rungUntil) {
      rungUntil = now() + SECOND_MS;
      writes.push({ op: "enqueue", value: { v: 1, kind: "doorbell", due: now() }, delay: 0 });
    }
    return writes;
  }

  return { append };
}

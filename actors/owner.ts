/**
 * Owner actors: one serial mailbox per owner in the isolate; across isolates the check on the owner's meta row decides.
 * What waits for an owner runs as one turn and lands in one commit. Keeps O1 (an event exists if and only if its state
 * change committed) and O2 (`sequence` strictly increases, never reused).
 */
import { ApiError, invariant, notFound } from "../lib/errors.ts";
import type { EventId, EventKey, IdentityId, Ids, TenantId } from "../lib/ids.ts";
import { keys, type OwnerRef, type TenantRow } from "../lib/keys.ts";
import { MAX_CHECKS_PER_COMMIT, MAX_MUTATIONS_PER_COMMIT, SECOND_MS } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, KvKey } from "../lib/edge/kv.ts";
import { Turn, TurnFull } from "./turn.ts";

/** What a command appends. `data` is a JSON value that may hold `JSON.rawJSON` numbers; it goes out as written. */
export interface NewEvent {
  type: string;
  data: unknown;
  /** Set for mailbox events and `identity.deleted`. */
  identity?: IdentityId | null;
  /** A deterministic id: seen before by this owner, the append does nothing and the counter is not spent. */
  event_id?: EventId;
  /** The message the event carries, so that its erasure finds the event. */
  message?: string;
}

export interface Appended {
  id: EventId;
  key: EventKey;
  type: string;
  sequence: number;
  /** Unix ms. */
  occurred_at: number;
  /** The deterministic id had been appended before; the other fields are the first one's. */
  duplicate: boolean;
}

/** A command's view of the store: reads are checked at commit, writes and events land in ONE commit (O1). */
export interface Tx {
  readonly owner: OwnerRef;
  readonly tenant: TenantRow;
  /** Unix ms, the same throughout the command. */
  readonly now: number;
  readonly ids: Ids;
  get<T>(key: KvKey): Promise<T | null>;
  set(key: KvKey, value: unknown): void;
  delete(key: KvKey): void;
  append(event: NewEvent): Promise<Appended>;
}

export interface Owners {
  /**
   * Runs a command on its owner, one at a time per owner; resolves once its commit is durable. The command may run again
   * after a conflict, so it has no effect but through `tx`. What it throws (`ApiError`) comes out and nothing is written.
   */
  run<T>(owner: OwnerRef, command: (tx: Tx) => Promise<T> | T): Promise<T>;
  /** Drops what is cached of a tenant; called by whoever changes its row in this isolate. */
  forgetTenant(tenant: TenantId): void;
}

export interface OwnerDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
}

const MAX_ACTORS = 20_000;
const MAX_CONFLICTS = 32;
const TENANT_CACHE_MS = 5 * SECOND_MS;
/** A turn takes no further command past this, so that one more still fits its commit. */
const TURN_MUTATIONS = MAX_MUTATIONS_PER_COMMIT / 4;
const TURN_CHECKS = MAX_CHECKS_PER_COMMIT / 4;
const TURN_BYTES = 200_000;

interface Waiting {
  command(tx: Tx): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Actor {
  owner: OwnerRef;
  waiting: Waiting[];
  busy: boolean;
  /** The meta row as last read or written, so that the hot path reads nothing. */
  meta: { seq: number; versionstamp: string | null } | null;
}

export function makeOwners(deps: OwnerDeps): Owners {
  const actors = new Map<string, Actor>();
  const tenants = new Map<TenantId, { row: TenantRow; until: number }>();

  function run<T>(owner: OwnerRef, command: (tx: Tx) => Promise<T> | T): Promise<T> {
    const actor = actorOf(owner);
    return new Promise<T>((resolve, reject) => {
      actor.waiting.push({ command, resolve: resolve as (value: unknown) => void, reject });
      if (!actor.busy) void drain(actor);
    });
  }

  function actorOf(owner: OwnerRef): Actor {
    const name = `${owner.kind} ${owner.tenant} ${owner.id}`;
    let actor = actors.get(name);
    if (actor === undefined) {
      if (actors.size >= MAX_ACTORS) forgetIdle();
      actors.set(name, actor = { owner, waiting: [], busy: false, meta: null });
    }
    return actor;
  }

  function forgetIdle() {
    let left = MAX_ACTORS / 10;
    for (const [name, actor] of actors) {
      if (actor.busy) continue;
      actors.delete(name);
      if (--left === 0) return;
    }
  }

  async function drain(actor: Actor) {
    actor.busy = true;
    await undefined; // callers of the same tick share the turn
    while (actor.waiting.length > 0) await takeTurn(actor);
    actor.busy = false;
  }

  /** Runs waiting commands as one turn and settles each, conflicts included. */
  async function takeTurn(actor: Actor) {
    let batch: Waiting[] = [];
    try {
      const tenant = await tenantOf(actor.owner.tenant);
      for (let conflicts = 0;; conflicts++) {
        const before = batch;
        batch = [];
        actor.waiting.unshift(...before);
        const turn = await startTurn(actor, tenant);
        const results: (() => void)[] = [];
        do {
          const waiting = actor.waiting.shift()!;
          const result = await turn.step(waiting.command).then(
            (value) => () => waiting.resolve(value),
            (error) => error instanceof TurnFull ? null : () => waiting.reject(error),
          );
          if (result === null) {
            actor.waiting.unshift(waiting);
            break;
          }
          batch.push(waiting);
          results.push(result);
        } while (actor.waiting.length > 0 && !turn.fuller(TURN_MUTATIONS, TURN_CHECKS, TURN_BYTES));
        const unit = turn.unit();
        const settled = unit === null ? null : await deps.committer.commit(unit);
        if (settled?.ok) actor.meta = { seq: turn.seq, versionstamp: settled.versionstamp };
        if (settled === null || settled.ok) return results.forEach((settle) => settle());
        actor.meta = null;
        if (conflicts === MAX_CONFLICTS) {
          throw new ApiError(
            "unavailable",
            "Cannot commit: others keep changing this owner.",
            "Send the request again.",
          );
        }
      }
    } catch (error) {
      actor.meta = null; // the result of a failed commit is unknown
      if (batch.length === 0) batch = actor.waiting.splice(0);
      for (const waiting of batch) waiting.reject(error);
    }
  }

  async function startTurn(actor: Actor, tenant: TenantRow): Promise<Turn> {
    if (actor.meta === null) {
      const entry = await deps.kv.get<number>(keys.ownerMeta(actor.owner));
      actor.meta = { seq: entry.value ?? 0, versionstamp: entry.versionstamp };
    }
    invariant(Number.isSafeInteger(actor.meta.seq), "O2");
    return new Turn(deps, actor.owner, tenant, actor.meta);
  }

  async function tenantOf(tenant: TenantId): Promise<TenantRow> {
    const cached = tenants.get(tenant);
    const left = cached === undefined ? 0 : cached.until - deps.now();
    if (cached !== undefined && left > 0 && left <= TENANT_CACHE_MS) return cached.row; // more: the clock went back
    const { value } = await deps.kv.get<TenantRow>(keys.tenant(tenant));
    if (value === null) throw notFound("tenant");
    if (tenants.size > MAX_ACTORS) tenants.clear();
    tenants.set(tenant, { row: value, until: deps.now() + TENANT_CACHE_MS });
    return value;
  }

  return { run, forgetTenant: (tenant) => void tenants.delete(tenant) };
}

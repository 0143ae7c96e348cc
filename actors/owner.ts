/**
 * Owner actors: one serial mailbox per owner, a transaction context with a checked read set, and `append`.
 */
import type { EventId, EventKey, IdentityId, Ids } from "../lib/ids.ts";
import type { OwnerRef, TenantRow } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";

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
}

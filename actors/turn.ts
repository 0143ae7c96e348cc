/**
 * One turn of an owner: commands run one after another over a shared overlay, each all or nothing, and become one unit.
 * Every key a command read is checked at commit; the owner's meta row always is.
 */
import { ApiError, invariant } from "../lib/errors.ts";
import { eventRowOf } from "../lib/event_row.ts";
import { type EventId, type EventKey, type Ids, ulidTime } from "../lib/ids.ts";
import { type EventAlias, keys, type OwnerRef, type TenantRow } from "../lib/keys.ts";
import { MAX_CHECKS_PER_COMMIT, MAX_COMMIT_BYTES, MAX_MUTATIONS_PER_COMMIT } from "../lib/limits.ts";
import { buildEnvelope } from "../lib/envelope.ts";
import type { Unit } from "../lib/edge/committer.ts";
import type { Check, Kv, KvKey, Write } from "../lib/edge/kv.ts";
import { indexRoom } from "./event_index.ts";
import { eventWrites, type StoredEvent } from "./event_store.ts";
import type { Appended, NewEvent, Tx } from "./owner.ts";

interface TurnDeps {
  kv: Kv;
  now(): number;
  ids: Ids;
}

interface Written {
  write: Write & { op: "set" | "delete" };
  bytes: number;
}

/** Room a commit keeps for the meta row, the Fanout job and framing; the index has room of its own, for each event. */
const RESERVED_BYTES = 30_000;
const RESERVED_MUTATIONS = 10;

/** The command has to wait for the next turn. */
export class TurnFull extends Error {}

const nameOf = (key: KvKey): string => JSON.stringify(key);

export class Turn {
  seq: number;
  #reads = new Map<string, { key: KvKey; versionstamp: string | null; value: unknown }>();
  #writes = new Map<string, Written>();
  /** Rows of new events: under keys made for them, so nobody asks for them here. */
  #fresh: Write[] = [];
  #events: StoredEvent[] = [];
  #indexRows = 0;
  #bytes = 0;

  constructor(
    readonly deps: TurnDeps,
    readonly owner: OwnerRef,
    readonly tenant: TenantRow,
    readonly meta: { seq: number; versionstamp: string | null },
  ) {
    this.seq = meta.seq;
  }

  /**
   * Runs a command; when it throws, nothing of it stays but the checks of what it read.
   * @throws TurnFull when it does not fit beside the commands before it; alone, in the next turn, it may.
   */
  async step<T>(command: (tx: Tx) => T): Promise<Awaited<T>> {
    const draft = new Draft(this), readBefore = this.#reads.size;
    let result: Awaited<T>;
    try {
      result = await command(draft);
    } catch (error) {
      if (this.#reads.size >= MAX_CHECKS_PER_COMMIT) this.#forgetReads(readBefore);
      throw error;
    }
    const mutations = this.#mutations + draft.writes.size + draft.fresh.length + draft.indexRows;
    const bytes = this.#bytes + draft.bytes;
    const fits = mutations <= MAX_MUTATIONS_PER_COMMIT - RESERVED_MUTATIONS &&
      bytes <= MAX_COMMIT_BYTES - RESERVED_BYTES;
    if (!fits || this.#reads.size >= MAX_CHECKS_PER_COMMIT) {
      this.#forgetReads(readBefore);
      if (this.#mutations > 0 || readBefore > 0) throw new TurnFull();
      invariant(!fits, "O1");
      throw new ApiError(
        "payload_too_large",
        `Cannot commit: the change holds ${bytes} bytes in ${mutations} rows, more than one commit takes.`,
        "Send fewer or smaller events in one request.",
      );
    }
    for (const [name, written] of draft.writes) this.#writes.set(name, written);
    this.#fresh.push(...draft.fresh);
    this.#events.push(...draft.events);
    this.#indexRows += draft.indexRows;
    this.#bytes = bytes;
    this.seq = draft.seq;
    return result;
  }

  #forgetReads(after: number): void {
    for (const name of [...this.#reads.keys()].slice(after)) this.#reads.delete(name);
  }

  /** With the index rows that the commit adds. */
  get #mutations(): number {
    return this.#writes.size + this.#fresh.length + this.#indexRows;
  }

  /** Whether the turn holds more than this already. */
  fuller(mutations: number, checks: number, bytes: number): boolean {
    return this.#mutations > mutations || this.#reads.size > checks || this.#bytes > bytes;
  }

  /** What to commit, or null when nothing changed. */
  unit(): Unit | null {
    if (this.#mutations === 0) return null;
    const metaKey = keys.ownerMeta(this.owner);
    const checks: Check[] = [{ key: metaKey, versionstamp: this.meta.versionstamp }];
    for (const { key, versionstamp } of this.#reads.values()) checks.push({ key, versionstamp });
    const writes: Write[] = [{ op: "set", key: metaKey, value: this.seq }];
    for (const { write } of this.#writes.values()) writes.push(write);
    for (const write of this.#fresh) writes.push(write);
    return { checks, writes, carry: this.#events };
  }

  written(name: string): Written | undefined {
    return this.#writes.get(name);
  }

  eventOf(key: EventKey): StoredEvent | undefined {
    return this.#events.find((event) => event.key === key);
  }

  async read(key: KvKey, name: string): Promise<unknown> {
    let read = this.#reads.get(name);
    if (read === undefined) {
      const { versionstamp, value } = await this.deps.kv.get(key);
      this.#reads.set(name, read = { key, versionstamp, value });
    }
    return read.value;
  }
}

/** A command's own view, over the turn's. */
class Draft implements Tx {
  readonly writes = new Map<string, Written>();
  readonly fresh: Write[] = [];
  readonly events: StoredEvent[] = [];
  readonly now: number;
  indexRows = 0;
  bytes = 0;
  seq: number;

  constructor(readonly turn: Turn) {
    this.now = turn.deps.now();
    this.seq = turn.seq;
  }

  get owner(): OwnerRef {
    return this.turn.owner;
  }

  get tenant(): TenantRow {
    return this.turn.tenant;
  }

  get ids(): Ids {
    return this.turn.deps.ids;
  }

  async get<T>(key: KvKey): Promise<T | null> {
    const name = nameOf(key);
    const written = this.writes.get(name) ?? this.turn.written(name);
    if (written !== undefined) {
      return written.write.op === "set" ? structuredClone(written.write.value) as T : null;
    }
    // A copy, so that a command which runs again does not meet what its first run did to the value.
    return structuredClone(await this.turn.read(key, name)) as T | null;
  }

  set(key: KvKey, value: unknown): void {
    this.#put({ op: "set", key, value }, sizeOf(value));
  }

  delete(key: KvKey): void {
    this.#put({ op: "delete", key }, 0);
  }

  #put(write: Written["write"], bytes: number): void {
    this.bytes += bytes;
    this.writes.set(nameOf(write.key), { write, bytes });
  }

  async append(event: NewEvent): Promise<Appended> {
    if (event.event_id !== undefined) {
      const seen = await this.#aliasOf(event.event_id);
      if (seen !== null) return await this.#appendedBefore(event.event_id, seen.key);
    }
    const key = this.ids.ulid() as EventKey;
    const stored: StoredEvent = {
      key,
      id: event.event_id ?? (`evt_${key}` as EventId),
      type: event.type,
      tenant: this.owner.tenant,
      partner: this.tenant.partner_id,
      identity: event.identity ?? null,
      kind: this.owner.kind,
      owner: this.owner.id,
      about: null,
      seq: ++this.seq,
      at: ulidTime(key), // so that the key's order is the order of `occurred_at`, whatever the clock does
      body: null,
    };
    stored.body = buildEnvelope({
      id: stored.id,
      type: stored.type,
      occurredAt: stored.at,
      tenant: stored.tenant,
      identity: stored.identity,
      sequence: stored.seq,
      data: event.data,
    });
    for (const write of eventWrites(stored, event.message)) {
      if (write.op === "set" && write.fresh) {
        this.bytes += 150;
        this.fresh.push(write);
      } else if (write.op !== "enqueue") this.#put(write, 150);
    }
    const index = indexRoom(stored);
    this.indexRows += index.mutations;
    this.bytes += stored.body.length + index.bytes;
    this.events.push(stored);
    return appended(stored, false);
  }

  /** Not checked at commit: the alias is this owner's own, and every commit of the owner is checked by its meta row. */
  async #aliasOf(id: EventId): Promise<EventAlias | null> {
    const key = keys.eventAlias(id, this.owner);
    const written = this.writes.get(nameOf(key)) ?? this.turn.written(nameOf(key));
    if (written?.write.op === "set") return written.write.value as EventAlias;
    return (await this.turn.deps.kv.get<EventAlias>(key)).value;
  }

  async #appendedBefore(id: EventId, key: EventKey): Promise<Appended> {
    const here = this.events.find((event) => event.key === key) ?? this.turn.eventOf(key);
    if (here !== undefined) return appended(here, true);
    const row = eventRowOf(key, (await this.turn.deps.kv.get(keys.event(key))).value);
    const gone = { type: "", seq: 0, at: ulidTime(key) }; // pruned by retention; the alias still holds the id
    return appended({ ...(row ?? gone), id, key }, true);
  }
}

function appended(
  event: Pick<StoredEvent, "id" | "key" | "type" | "seq" | "at">,
  duplicate: boolean,
): Appended {
  const { id, key, type, seq, at } = event;
  return { id, key, type, sequence: seq ?? 0, occurred_at: at, duplicate };
}

/** Rough serialised size: enough to keep a commit within its limit. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length * 2;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 16;
  let size = 16;
  for (const [name, member] of Object.entries(value)) size += name.length + 8 + sizeOf(member);
  return size;
}

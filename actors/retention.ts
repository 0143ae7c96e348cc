/**
 * Retention (document, "Retention"): events leave `retention.events_days` after `occurred_at` with all their index rows, platform
 * events without a tenant after 30 days, and what was tried for them a day later. A pass over tenants and endpoints
 * starts every hour; each reads the head of time-ordered families and no history. It deletes in bounded commits, each with the
 * row that says how far the pass is, so a pass goes on where it stopped and two instances never run the same one.
 * Invariants: O2 (the owner's counter is never touched), R1 (the window runs from `occurred_at`).
 *
 * An event may leave while a delivery of it is open: the next attempt ends dead with `event_unavailable`. Audit rows and
 * dead letters hold ids and codes alone and stay; answers kept for `Idempotency-Key` expire by themselves.
 */
import { eventRowOf, type StoredRow } from "../lib/event_row.ts";
import type { DeliveryId, EndpointId, EventKey, TenantId } from "../lib/ids.ts";
import { PREFIX, ulidFloor, ulidTime } from "../lib/ids.ts";
import {
  after as behind,
  type EndpointRow,
  type EventIndex,
  keys,
  type OwnerRef,
  type PairRow,
  type RetentionRow,
  type StoredAttempt,
  type TenantRow,
  within,
} from "../lib/keys.ts";
import { DAY_MS, EVENTS_DAYS_DEFAULT, HOUR_MS, SECOND_MS } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, KvKey } from "../lib/edge/kv.ts";
import { eventsOfRow } from "./attempt_blocks.ts";
import { BUCKET_MS } from "./blocks.ts";
import { entriesOf } from "./event_index.ts";
import { getAll } from "./event_store.ts";

export interface RetentionDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
}

export interface RetentionLimits {
  /** Rows one call deletes. */
  maxRows: number;
  /** Tenants and endpoints one call looks at. */
  maxLooks: number;
  /** Milliseconds one call goes on. */
  maxMs: number;
}

const LIMITS: RetentionLimits = { maxRows: 100_000, maxLooks: 20_000, maxMs: 20 * SECOND_MS };
const PASS_EVERY_MS = HOUR_MS;
/** Far below a commit's limit, so that deliveries share the commit. */
const ROWS_PER_COMMIT = 400;
const PAGE = 50;
/** Tried deliveries outlive their event by this, so that a stale copy of a job still meets its pair. */
const PAIR_GRACE_MS = DAY_MS;
/** An open pair waits for its last attempt, which no schedule puts off for longer. */
const OPEN_PAIR_MS = 20 * DAY_MS;
const PLATFORM_WINDOW_MS = EVENTS_DAYS_DEFAULT * DAY_MS;

/** Rows to delete; `done` names a tenant or endpoint that is finished with. */
interface Step {
  rows: KvKey[];
  done?: string;
}

const PHASES = {
  tenants: { steps: tenantEvents, next: "platform" },
  platform: { steps: platformEvents, next: "endpoints" },
  endpoints: { steps: deliveries, next: null },
} as const;

/** Goes on with the pass that is due, within the limits of one call. @returns rows deleted. */
export async function retain(d: RetentionDeps, limits: RetentionLimits = LIMITS): Promise<number> {
  const found = await d.kv.get<RetentionRow>(keys.retention());
  const started = d.now();
  let state: RetentionRow = found.value ?? { phase: "tenants", after: null, due: 0 };
  if (state.due > started) return 0;
  const pass = new Pass(d, found.versionstamp);
  for (let looks = 0;;) {
    const { steps, next } = PHASES[state.phase];
    for await (const { rows, done } of steps(d, state.after)) {
      if (done !== undefined) {
        state = { ...state, after: done };
        looks++;
      }
      if (!await pass.add(rows, state)) return pass.deleted;
      if (pass.taken < limits.maxRows && looks < limits.maxLooks && d.now() - started < limits.maxMs) {
        continue;
      }
      await pass.flush(state);
      return pass.deleted;
    }
    if (next === null) break;
    state = { ...state, phase: next, after: null };
  }
  await pass.flush({ phase: "tenants", after: null, due: d.now() + PASS_EVERY_MS });
  return pass.deleted;
}

/** Collects rows into commits, each under a check on the pass's own row. */
class Pass {
  deleted = 0;
  #rows: KvKey[] = [];

  constructor(readonly d: RetentionDeps, private versionstamp: string | null) {}

  get taken(): number {
    return this.deleted + this.#rows.length;
  }

  /** False: another instance moved the pass on. */
  async add(rows: readonly KvKey[], state: RetentionRow): Promise<boolean> {
    for (const row of rows) {
      this.#rows.push(row);
      if (this.#rows.length === ROWS_PER_COMMIT && !await this.flush(state)) return false;
    }
    return true;
  }

  async flush(state: RetentionRow): Promise<boolean> {
    const settled = await this.d.committer.commit({
      checks: [{ key: keys.retention(), versionstamp: this.versionstamp }],
      writes: [
        ...this.#rows.map((key) => ({ op: "delete" as const, key })),
        { op: "set", key: keys.retention(), value: state },
      ],
    });
    if (!settled.ok) return false;
    this.versionstamp = settled.versionstamp;
    this.deleted += this.#rows.length;
    this.#rows = [];
    return true;
  }
}

const windowOf = (tenant: TenantRow | null): number =>
  (tenant?.policy.retention.events_days ?? EVENTS_DAYS_DEFAULT) * DAY_MS;

async function* tenantEvents(d: RetentionDeps, after: string | null): AsyncGenerator<Step> {
  for await (const { value: tenant } of rowsAfter<TenantRow>(d.kv, keys.tenants(), after)) {
    yield* events(d, keys.eventsOfTenant(tenant.id), d.now() - windowOf(tenant));
    yield { rows: [], done: tenant.id };
  }
}

async function* platformEvents(d: RetentionDeps): AsyncGenerator<Step> {
  yield* events(d, keys.platformEvents(), d.now() - PLATFORM_WINDOW_MS);
}

/** An event with the index row that names it. */
interface Indexed {
  key: EventKey;
  /** The first event of the row: the last part of its key. */
  first: EventKey;
  /** No other event of the row comes behind it. */
  last: boolean;
}

/** The events of an index family that occurred before `until`, by whole rows: an event may stay until its block's last one is old. */
async function* events(d: RetentionDeps, family: KvKey, until: number): AsyncGenerator<Step> {
  let page: Indexed[] = [];
  const floor = ulidFloor(until);
  for await (const { key, value } of d.kv.list<EventIndex>(olderThan(family, floor), { batchSize: PAGE })) {
    const first = key.at(-1) as EventKey, named = entriesOf(first, value), last = named.at(-1)!.key;
    if (last >= floor) continue;
    for (const { key } of named) {
      if (page.push({ key, first, last: key === last }) < PAGE) continue;
      yield { rows: await rowsOfEvents(d.kv, family, page) };
      page = [];
    }
  }
  if (page.length > 0) yield { rows: await rowsOfEvents(d.kv, family, page) };
}

/**
 * Every row the events were written with, but the owner's counter (O2), in an order that may break off anywhere: what leads to a row
 * goes after it. A partner's block has the key and the events of the tenant's; old index rows are blocks of one in this.
 */
async function rowsOfEvents(kv: Kv, family: KvKey, page: readonly Indexed[]): Promise<KvKey[]> {
  const found = await getAll(kv, page.map(({ key }) => keys.event(key)));
  const rows = await Promise.all(page.map(async ({ key, first, last }, i) => {
    const row = eventRowOf(key, found[i]!.value), mine: KvKey[] = [];
    if (row !== null) {
      if (row.partner !== null && key === first) mine.push(keys.eventOfPartner(row.partner, first));
      if (row.kind === "platform") mine.push(keys.platformPending(key));
      if (row.id !== undefined && row.tenant !== null && row.kind !== "platform") {
        const owner: OwnerRef = { kind: row.kind, tenant: row.tenant, id: row.owner };
        mine.push(keys.eventAlias(row.id, owner));
      }
      const message = row.kind === "mailbox" ? await messageOf(kv, key, row) : null;
      if (message !== null) mine.push(keys.eventOfMessage(message, key));
      for (let index = 0; index < row.chunks; index++) mine.push(keys.eventChunk(key, index));
      mine.push(keys.event(key));
    }
    if (last) mine.push(within(family, first));
    return mine;
  }));
  return rows.flat();
}

/** Quotes within a JSON string are escaped, so no text of a mail can look like this. */
const MESSAGE = /"(?:id|message_id|source_message_id)":"(msg_[0-9A-HJKMNP-TV-Z]{26})"/;

/** The message an event carries, read off its envelope: the first id of one. */
async function messageOf(kv: Kv, key: EventKey, row: StoredRow): Promise<string | null> {
  const bytes = typeof row.body === "number"
    ? (await kv.get<Uint8Array>(keys.eventChunk(key, 0))).value
    : row.body;
  return bytes === null ? null : MESSAGE.exec(new TextDecoder().decode(bytes))?.[1] ?? null;
}

/** Pairs and attempts of every endpoint; a deleted one's log, and at last itself. */
async function* deliveries(d: RetentionDeps, after: string | null): AsyncGenerator<Step> {
  const windows = new Map<TenantId | null, number>([[null, PLATFORM_WINDOW_MS]]);
  for await (const { value: endpoint } of rowsAfter<EndpointRow>(d.kv, keys.endpoints(), after)) {
    const { id, tenant_id, deleted_at } = endpoint;
    let window = windows.get(tenant_id);
    if (window === undefined) {
      if (windows.size > 1_000) windows.clear();
      windows.set(tenant_id, window = windowOf((await d.kv.get<TenantRow>(keys.tenant(tenant_id!))).value));
    }
    const until = d.now() - window - PAIR_GRACE_MS;
    if (deleted_at !== null && deleted_at < until) yield* everythingOf(d, id);
    else {
      yield* pairs(d, endpoint, until);
      yield* lone(d, id, until);
    }
    yield { rows: [], done: id };
  }
}

async function* pairs(d: RetentionDeps, endpoint: EndpointRow, until: number): AsyncGenerator<Step> {
  const family = keys.pairsOf(endpoint.id);
  const old = d.kv.list<PairRow>(olderThan(family, ulidFloor(until)), { batchSize: PAGE });
  for await (const { key, value } of old) {
    const open = value.status === null || value.status === "failed" || value.attempt < value.first;
    const waits = endpoint.deleted_at === null && ulidTime(key[2] as string) > until - OPEN_PAIR_MS;
    if (open && waits) continue;
    yield { rows: [...value.ids.map((attempt: DeliveryId) => keys.attempt(endpoint.id, attempt)), key] };
  }
}

/**
 * First attempts that are the state of their pair themselves (pair_state.ts): an attempt is never older than its event. One whose pair
 * has a row leaves with that, above; what several share leaves when none of their pairs has one any more, in the pass behind theirs.
 */
async function* lone(d: RetentionDeps, endpoint: EndpointId, until: number): AsyncGenerator<Step> {
  let page: Shared[] = [], attempts = 0;
  // The last bucket is left alone: a block in it may tell of younger ones, too.
  const old = olderThan(keys.attemptsOf(endpoint), `${PREFIX.delivery}_${ulidFloor(until - BUCKET_MS)}`);
  for await (const row of d.kv.list<StoredAttempt>(old, { batchSize: PAGE })) {
    const events = eventsOfRow(endpoint, row.key.at(-1) as string, row.value);
    page.push({ key: row.key, events });
    attempts += events.length;
    if (page.length < PAGE && attempts < PAGE) continue;
    yield { rows: await withoutPair(d.kv, endpoint, page) };
    page = [], attempts = 0;
  }
  if (page.length > 0) yield { rows: await withoutPair(d.kv, endpoint, page) };
}

/** A row of an endpoint's attempts, and the events it tells of. */
interface Shared {
  key: KvKey;
  events: EventKey[];
}

async function withoutPair(kv: Kv, endpoint: EndpointId, page: readonly Shared[]): Promise<KvKey[]> {
  const events = page.flatMap((row) => row.events);
  const pairs = await getAll(kv, events.map((event) => keys.pair(endpoint, event)));
  const paired = new Set(events.filter((_, i) => pairs[i]!.value !== null));
  return page.filter((row) => !row.events.some((event) => paired.has(event))).map(({ key }) => key);
}

async function* everythingOf(d: RetentionDeps, endpoint: EndpointId): AsyncGenerator<Step> {
  for (const prefix of [keys.attemptsOf(endpoint), keys.pairsOf(endpoint)]) {
    for await (const { key } of d.kv.list({ prefix }, { batchSize: PAGE })) yield { rows: [key] };
  }
  yield { rows: [keys.health(endpoint), keys.replays(endpoint), keys.endpoint(endpoint)] };
}

/** A family's rows behind the one named `after`. */
function rowsAfter<T>(kv: Kv, prefix: KvKey, after: string | null): Deno.KvListIterator<T> {
  const selector = after === null ? { prefix } : { prefix, start: behind(within(prefix, after)) };
  return kv.list<T>(selector, { batchSize: PAGE });
}

const olderThan = (prefix: KvKey, floor: string): Deno.KvListSelector => ({
  prefix,
  end: within(prefix, floor),
});

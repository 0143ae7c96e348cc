/** The index of events: blocks by commit beside rows of releases before, whatever their order and the range asked for. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { behind, entriesOf, eventsIn, indexRoom, indexWrites } from "../../actors/event_index.ts";
import type { Range } from "../../actors/blocks.ts";
import type { StoredEvent } from "../../actors/event_store.ts";
import { retain, type RetentionDeps } from "../../actors/retention.ts";
import { addRoom, NO_ROOM, writeAll } from "../../lib/edge/commit_batch.ts";
import { measure } from "../../lib/edge/measure.ts";
import type { EventId, EventKey, IdentityId, PartnerId, TenantId } from "../../lib/ids.ts";
import { ulidFrom } from "../../lib/ids.ts";
import { type EventIndex, eventIndex, keys } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS, MAX_BLOCK_BYTES, MAX_OWNER_KEY_BYTES } from "../../lib/limits.ts";
import { world } from "../support/world.ts";

const START = 32 * 5e10;
const tenants = ["ten_A", "ten_B"] as TenantId[], partners = ["ptn_A", "ptn_B"] as PartnerId[];

function eventOf(of: Partial<StoredEvent> & { key: EventKey }): StoredEvent {
  const scope = { tenant: tenants[0]!, partner: null, identity: null, about: null };
  const rest = { type: "order.paid", kind: "custom" as const, owner: "o", seq: 1, at: 0, body: null };
  return { id: `evt_${of.key}` as EventId, ...scope, ...rest, ...of };
}

const keyAt = (ms: number, n: number): EventKey =>
  ulidFrom(START + ms, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, n >> 8, n & 255)) as EventKey;

/** As releases before blocks wrote it. */
async function writeOld(kv: Deno.Kv, { key, type, identity, owner, tenant, partner }: StoredEvent) {
  const row = { type, identity, owner };
  if (tenant !== null) await kv.set(keys.eventOfTenant(tenant, key), row);
  if (partner !== null) await kv.set(keys.eventOfPartner(partner, key), row);
}

async function writeNew(kv: Deno.Kv, events: readonly StoredEvent[]) {
  const commit = kv.atomic();
  writeAll(commit, indexWrites(events));
  await commit.commit();
}

async function read(kv: Deno.Kv, family: Deno.KvKey, range?: Range) {
  const found = [];
  for await (const entry of eventsIn(kv, family, range)) found.push(entry);
  return found;
}

const shown = ({ key, type, identity, owner }: StoredEvent) => ({ key, type, identity, owner });
const sorted = <T extends { key: string }>(rows: T[]) => rows.sort((a, b) => a.key < b.key ? -1 : 1);

/** Events of two tenants and two partners within 200 ms, each in some commit; those of commit 0 in the old form. */
const drawn = fc.array(
  fc.record({
    ms: fc.integer({ min: 0, max: 199 }),
    commit: fc.integer({ min: 0, max: 5 }),
    tenant: fc.constantFrom(...tenants, null),
    partner: fc.constantFrom(...partners, null),
    type: fc.constantFrom("order.paid", "order.sent"),
    identity: fc.constantFrom(null, "idn_A" as IdentityId),
    owner: fc.constantFrom("o", 'a,"b\n', "é\u4e00"),
  }),
  { maxLength: 60 },
).map((all) =>
  all.map(({ ms, commit, ...event }, n) => ({ commit, ...eventOf({ key: keyAt(ms, n), ...event }) }))
);
const bound = fc.oneof(
  fc.constant(undefined),
  fc.record({
    ms: fc.integer({ min: -40, max: 240 }),
    n: fc.integer({ min: 0, max: 60 }),
    seen: fc.boolean(),
  })
    .map(({ ms, n, seen }) => seen ? behind(keyAt(ms, n)) : keyAt(ms, n)),
);

Deno.test("S1: an index tells of its own events alone, once, in order, in any range and both directions", async () => {
  await fc.assert(
    fc.asyncProperty(drawn, bound, bound, fc.boolean(), async (events, from, to, reverse) => {
      using kv = await Deno.openKv(":memory:");
      for (let n = 0; n <= 5; n++) {
        const mine = events.filter(({ commit }) => commit === n);
        if (n > 0) await writeNew(kv, mine);
        else for (const event of mine) await writeOld(kv, event);
      }
      const within = ({ key }: StoredEvent) =>
        (from === undefined || key >= from) && (to === undefined || key < to);
      for (
        const [family, owns] of [
          ...tenants.map((id) =>
            [keys.eventsOfTenant(id), (event: StoredEvent) => event.tenant === id] as const
          ),
          ...partners.map((id) =>
            [keys.eventsOfPartner(id), (event: StoredEvent) => event.partner === id] as const
          ),
        ]
      ) {
        const wanted = sorted(events.filter((event) => owns(event) && within(event)).map(shown));
        if (reverse) wanted.reverse();
        assert.deepEqual(await read(kv, family, { from, to, reverse }), wanted);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("index: one row a tenant, partner and bucket, the same for the partner; a platform event's is its own", () => {
  const at = (ms: number, n: number, more: Partial<StoredEvent> = {}) =>
    eventOf({ key: keyAt(ms, n), ...more });
  const [ten, other] = tenants as [TenantId, TenantId], partner = partners[0]!;
  const writes = indexWrites([
    at(5, 2, { partner }),
    at(1, 1, { partner, owner: "p" }),
    at(31, 3, { partner, tenant: other }),
    at(32, 4, { partner }),
    at(32, 5, { tenant: null, partner }),
    at(32, 6, { tenant: null, partner }),
    at(32, 7, { tenant: null }),
  ]);
  const block = (key: EventKey, event: StoredEvent[]) => ({
    key,
    block: JSON.stringify({
      keys: event.map(({ key }) => key.slice(9)).join(""),
      types: ["order.paid"],
      identities: [null],
      owners: event.length > 1 ? event.map(({ owner }) => owner) : [event[0]!.owner],
    }),
  });
  const one = block(keyAt(1, 1), [at(1, 1, { owner: "p" }), at(5, 2)]);
  const [two, three] = [block(keyAt(31, 3), [at(31, 3)]), block(keyAt(32, 4), [at(32, 4)])];
  const [five, six] = [block(keyAt(32, 5), [at(32, 5)]), block(keyAt(32, 6), [at(32, 6)])];
  const set = (key: Deno.KvKey, value: unknown) => ({ op: "set", key, value });
  assert.deepEqual(writes, [
    set(keys.eventOfTenant(ten, one.key), one.block),
    set(keys.eventOfPartner(partner, one.key), one.block),
    set(keys.eventOfTenant(other, two.key), two.block),
    set(keys.eventOfPartner(partner, two.key), two.block),
    set(keys.eventOfTenant(ten, three.key), three.block),
    set(keys.eventOfPartner(partner, three.key), three.block),
    set(keys.eventOfPartner(partner, five.key), five.block),
    set(keys.eventOfPartner(partner, six.key), six.block),
  ]);
});

Deno.test("index: a block that would be too large is two, each under its own first event", async () => {
  const events = Array.from({ length: 330 }, (_, n) =>
    eventOf({
      key: keyAt(n % 32, n),
      type: "t".repeat(128),
      owner: String(n).padEnd(MAX_OWNER_KEY_BYTES, "x"),
    }));
  const writes = indexWrites(events);
  assert.ok(writes.length > 1 && writes.length < 10, `${writes.length} blocks`);
  assert.ok(measure([], writes).maxValue <= MAX_BLOCK_BYTES);
  using kv = await Deno.openKv(":memory:");
  await writeNew(kv, events);
  for await (const { key, value } of kv.list<EventIndex>({ prefix: [] })) {
    assert.ok(eventIndex.safeParse(value).success);
    assert.equal(entriesOf(key[2] as EventKey, value)[0]!.key, key[2]);
  }
  const wanted = sorted(events.map(shown));
  assert.deepEqual(await read(kv, keys.eventsOfTenant(tenants[0]!)), wanted);
  // Both blocks begin before the range, and one of them reaches into it.
  const from = wanted[200]!.key, to = wanted[210]!.key;
  assert.deepEqual(await read(kv, keys.eventsOfTenant(tenants[0]!), { from, to }), wanted.slice(200, 210));
});

Deno.test("index: what a commit leaves free for its events is never less than their rows", () => {
  fc.assert(
    fc.property(drawn, fc.integer({ min: 0, max: 128 }), (events, length) => {
      const room = { ...NO_ROOM };
      for (const event of events) {
        event.type = event.type.padEnd(length, "x");
        event.owner = event.owner.padEnd(2 * length, "é");
        addRoom(room, indexRoom(event));
      }
      const rows = measure([], indexWrites(events));
      for (const part of ["mutations", "bytes", "keyBytes"] as const) {
        assert.ok(rows[part] <= room[part], `${part}: ${rows[part]} of ${room[part]}`);
      }
    }),
  );
});

Deno.test("index: a short page of a long list reads a few rows", async () => {
  using kv = await Deno.openKv(":memory:");
  for (let commit = 0; commit < 100; commit++) {
    await writeNew(kv, Array.from({ length: 20 }, (_, n) => eventOf({ key: keyAt(commit * 10 + n / 4, n) })));
  }
  let rows = 0;
  const counted = Object.assign(Object.create(kv) as Deno.Kv, {
    async *list(...args: Parameters<Deno.Kv["list"]>) {
      for await (const row of kv.list(...args)) rows++, yield row;
    },
  });
  let found = 0;
  for await (const _ of eventsIn(counted, keys.eventsOfTenant(tenants[0]!), { reverse: true })) {
    if (++found === 50) break;
  }
  assert.ok(rows <= 16, `${rows} rows`);
});

Deno.test("O1: a turn whose events are all of another bucket fits its commit with their index rows, or is refused", () =>
  world(async (w) => {
    const tenant = await w.tenant(await w.partner());
    const owner = { kind: "custom", tenant: tenant.id, id: "o" } as const;
    const append = (count: number) =>
      w.done(w.first.system.owners.run(owner, async (tx) => {
        for (let n = 0; n < count; n++) {
          w.time.now += 32;
          await tx.append({ type: "order.paid", data: {} });
        }
      }));
    await assert.rejects(append(331), /payload_too_large|more than one commit takes/);
    assert.deepEqual(await read(w.store, keys.eventsOfTenant(tenant.id)), []);
    await append(330);
    assert.equal((await read(w.store, keys.eventsOfTenant(tenant.id))).length, 330);
  }));

Deno.test("retention: a block leaves whole once its last event is old, with its partner's; another tenant's stays", () =>
  world(async (w) => {
    const partner = await w.partner();
    const short = await w.tenant(partner, { retention: { events_days: 1 } });
    const long = await w.tenant(partner, { retention: { events_days: 60 } });
    const d = { kv: w.first.kv, committer: w.first.system.committer, now: w.now };
    const both = [w.append(short, 3), w.append(long, 3)];
    const [gone, kept] = await w.done(Promise.all(both));
    await w.jump(DAY_MS + 1);
    await w.done(retain(d));
    assert.deepEqual(await read(w.store, keys.eventsOfTenant(short.id)), []);
    const left = kept!.map(({ key }) => key);
    for (const family of [keys.eventsOfTenant(long.id), keys.eventsOfPartner(partner)]) {
      assert.deepEqual((await read(w.store, family)).map(({ key }) => key), left);
    }
    for (const { key } of gone!) assert.equal((await w.store.get(keys.event(key))).value, null);
  }));

Deno.test("retention: an event waits for the last one of its block", () =>
  world(async (w) => {
    const tenant = await w.tenant(null, { retention: { events_days: 1 } });
    w.time.now += 32 - w.time.now % 32;
    const owner = { kind: "custom", tenant: tenant.id, id: "o" } as const,
      event = { type: "order.paid", data: {} };
    const until = w.time.now + DAY_MS + 1; // the first is old, the second is not
    await w.done(w.first.system.owners.run(owner, async (tx) => {
      await tx.append(event);
      w.time.now += 1;
      await tx.append(event);
    }));
    const d = { kv: w.first.kv, committer: w.first.system.committer, now: w.now };
    await w.jump(until - w.time.now);
    await w.done(retain(d));
    assert.equal((await read(w.store, keys.eventsOfTenant(tenant.id))).length, 2);
    await w.jump(HOUR_MS);
    await w.done(retain(d));
    assert.equal((await read(w.store, keys.eventsOfTenant(tenant.id))).length, 0);
  }));

Deno.test("retention: a pass that breaks off within a block leaves nothing behind when it is run again", () =>
  world(async (w) => {
    const partner = await w.partner();
    const tenant = await w.tenant(partner, { retention: { events_days: 1 } });
    const ids = Array.from({ length: 240 }, (_, n) => ({ event_id: `evt_${keyAt(0, n)}` as EventId }));
    await w.append(tenant, ids);
    await w.jump(2 * DAY_MS);
    const { committer } = w.first.system;
    let commits = 0;
    const dies: RetentionDeps["committer"] = {
      ...committer,
      commit: (unit) =>
        ++commits > 1 ? Promise.reject(new Error("the process is gone")) : committer.commit(unit),
    };
    const d = { kv: w.first.kv, committer, now: w.now };
    await assert.rejects(w.done(retain({ ...d, committer: dies })), /gone/);
    const rows = async () => {
      const found = [];
      for await (const { key } of w.store.list({ prefix: [] })) {
        if (/^ev/.test(String(key[0]))) found.push(key);
      }
      return found;
    };
    assert.ok((await rows()).length > 0, "broken off");
    await w.done(retain(d));
    assert.deepEqual(await rows(), []);
  }));

/** An endpoint's attempts: blocks beside rows, in any order and range, and what is told of first attempts. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  attemptsIn,
  attemptWrite,
  firstWrites,
  newestAttempts,
  readAttempts,
  readFirsts,
} from "../../actors/attempt_store.ts";
import { eventsOfRow, markOf } from "../../actors/attempt_blocks.ts";
import type { Range } from "../../actors/blocks.ts";
import { writeAll } from "../../lib/edge/commit_batch.ts";
import type { Write } from "../../lib/edge/kv.ts";
import {
  type DeliveryId,
  type EndpointId,
  type EventId,
  type EventKey,
  firstDelivery,
  type TenantId,
  ulidFrom,
  ulidTime,
} from "../../lib/ids.ts";
import { type AttemptRow, keys, type PairRow, type StoredAttempt, storedAttempt } from "../../lib/keys.ts";
import { MAX_FIRST_LAG_MS, MAX_VALUE_BYTES } from "../../lib/limits.ts";

const ENDPOINT = `whk_${ulidFrom(1, new Uint8Array(10))}` as EndpointId;
const START = 32 * 5e10;

const ulidAt = (ms: number, n: number): string =>
  ulidFrom(START + ms, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, n >> 8, n & 255));

function firstOf(event: EventKey, of: Partial<AttemptRow> = {}): AttemptRow {
  return {
    id: firstDelivery(ENDPOINT, event),
    event,
    event_id: `evt_${event}` as EventId,
    event_type: "order.paid",
    tenant_id: "ten_A" as TenantId,
    attempt: 1,
    first_attempt: 1,
    status: "succeeded",
    http_status: 204,
    error: null,
    duration_ms: 5,
    next_attempt_at: null,
    created_at: ulidTime(event),
    ...of,
  };
}

async function write(kv: Deno.Kv, writes: Write[]): Promise<void> {
  const commit = kv.atomic();
  writeAll(commit, writes);
  assert.ok((await commit.commit()).ok);
}

/**
 * First attempts within 200 ms, each recorded by some commit: named by their events or, a second later, with ids of their own; and among
 * them retries, which have rows of their own.
 */
const drawn = fc.array(
  fc.record({
    ms: fc.integer({ min: 0, max: 199 }),
    commit: fc.integer({ min: 0, max: 5 }),
    lag: fc.integer({ min: 0, max: MAX_FIRST_LAG_MS }),
    kind: fc.constantFrom("named", "late", "retry"),
    event_id: fc.constantFrom(null, `evt_${ulidAt(5, 5)}` as EventId),
    event_type: fc.constantFrom("order.paid", "order.sent"),
    tenant_id: fc.constantFrom(null, "ten_A" as TenantId, "ten_B" as TenantId),
    http_status: fc.constantFrom(200, 204),
    duration_ms: fc.nat(15_000),
  }),
  { maxLength: 60 },
).map((all) =>
  all.map(({ ms, commit, lag, kind, event_id, ...rest }, n) => {
    const event = ulidAt(ms, n) as EventKey, created_at = START + ms + lag;
    const row = firstOf(event, { ...rest, created_at, ...event_id !== null && { event_id } });
    if (kind === "named") return { commit, kind, row };
    if (kind === "retry") {
      const id = `dlv_${ulidAt(ms, 1_000 + n)}` as DeliveryId;
      return { commit, kind, row: { ...row, id, attempt: 2, status: "failed" as const } };
    }
    const at = ms % 50 + (ms % 3 === 0 ? 0 : 1_000), id = `dlv_${ulidAt(at, 3_000 + n)}` as DeliveryId;
    return { commit, kind, row: { ...row, id, created_at: START + at } };
  })
);
const bound = fc.option(
  fc.record({ ms: fc.integer({ min: -40, max: 240 }), n: fc.nat(60), behind: fc.boolean() })
    .map(({ ms, n, behind }) => `dlv_${ulidAt(ms, n)}${behind ? "0" : ""}`),
  { nil: undefined },
);

Deno.test("D1: attempts are told of once, in order, as they were recorded, in any range and both directions", async () => {
  await fc.assert(
    fc.asyncProperty(drawn, bound, bound, fc.boolean(), async (attempts, from, to, reverse) => {
      using kv = await Deno.openKv(":memory:");
      for (let n = 0; n <= 5; n++) {
        const mine = attempts.filter(({ commit }) => commit === n);
        const of = (kind: string) => mine.filter((one) => one.kind === kind).map(({ row }) => row);
        const firsts = firstWrites(ENDPOINT, { named: of("named"), late: of("late") });
        await write(kv, [...firsts, ...of("retry").map((row) => attemptWrite(ENDPOINT, row))]);
      }
      const kept = new Set<EventKey>();
      for await (const { key, value } of kv.list<StoredAttempt>({ prefix: keys.attemptsOf(ENDPOINT) })) {
        assert.ok(storedAttempt.safeParse(value).success);
        for (const event of eventsOfRow(ENDPOINT, key[2] as string, value)) kept.add(event);
      }
      assert.deepEqual(kept, new Set(attempts.map(({ row }) => row.event)));
      const rows = attempts.map(({ row }) => row).sort((a, b) => a.id < b.id ? -1 : 1);
      const range: Range = { from, to, reverse };
      const wanted = rows.filter(({ id }) =>
        (from === undefined || id >= from) && (to === undefined || id < to)
      );
      assert.deepEqual(
        await Array.fromAsync(attemptsIn(kv, ENDPOINT, range)),
        reverse ? wanted.toReversed() : wanted,
      );
      const missing = `dlv_${ulidAt(7, 2_000)}` as DeliveryId;
      const found = await readAttempts(kv, ENDPOINT, [...rows.map(({ id }) => id), missing]);
      assert.deepEqual(found, [...rows, null]);
      const told = await readFirsts(kv, ENDPOINT, rows.map(({ event }) => event));
      const led = new Map(told.ids);
      for await (const { key, value } of kv.list<PairRow>({ prefix: keys.pairsOf(ENDPOINT) })) {
        led.set(key[2] as EventKey, value.ids[0]!);
      }
      const firsts = attempts.filter(({ kind }) => kind !== "retry").map(({ row }) =>
        [row.event, row.id] as const
      );
      assert.deepEqual(led, new Map(firsts), "something leads to each");
    }),
    { numRuns: 60 },
  );
});

Deno.test("D1: among strangers, and far apart, first attempts and the marks of their buckets are found", async () => {
  using kv = await Deno.openKv(":memory:");
  const events = [0, 1, 2, 4_000, 4_001, 90_000].map((ms, n) => ulidAt(ms, n) as EventKey);
  await write(kv, firstWrites(ENDPOINT, { named: events.map((event) => firstOf(event)), late: [] }));
  for (let i = 0; i < 400; i++) {
    const row = firstOf(ulidAt(10 * i, 500) as EventKey, { id: `dlv_${ulidAt(10 * i, 600)}` as DeliveryId });
    await write(kv, [attemptWrite(ENDPOINT, row)]);
  }
  const untried = ulidAt(3, 100) as EventKey;
  const { ids, marks } = await readFirsts(kv, ENDPOINT, [...events, untried]);
  assert.deepEqual([...ids.keys()].sort(), events);
  const stamps = [events[0]!, events[3]!].map((event) => marks.get(markOf(event)));
  assert.ok(stamps.every((stamp) => stamp !== undefined), "two blocks, each with its mark");
  assert.equal(marks.get(markOf(untried)), stamps[0]);
  assert.equal(marks.size, 2, "one that is alone has a row of its own, and no mark");
  await write(
    kv,
    firstWrites(ENDPOINT, { named: [5, 6].map((n) => firstOf(ulidAt(n, n) as EventKey)), late: [] }),
  );
  const again = await readFirsts(kv, ENDPOINT, [untried]);
  assert.notEqual(again.marks.get(markOf(untried)), stamps[0], "who looked before can tell that more came");
});

Deno.test("blocks: as many as fit a value, however much is different in each", async () => {
  using kv = await Deno.openKv(":memory:");
  const rows = Array.from({ length: 250 }, (_, n) =>
    firstOf(ulidAt(n % 32, n) as EventKey, {
      event_type: `${"é".repeat(120)}.${n}`,
      event_id: `evt_${ulidAt(9, n)}` as EventId,
      tenant_id: `ten_${ulidAt(9, n)}` as TenantId,
    }));
  const late = rows.map((row, n) => ({ ...row, id: `dlv_${ulidAt(5_000, n)}` as DeliveryId }));
  const writes = firstWrites(ENDPOINT, { named: rows, late });
  assert.ok(writes.length > 4 && writes.length < 20, `${writes.length} rows`);
  for (const one of writes) {
    if (one.op === "set" && typeof one.value === "string") assert.ok(2 * one.value.length < MAX_VALUE_BYTES);
  }
  await write(kv, writes);
  const newest = await Array.fromAsync(newestAttempts(kv, ENDPOINT));
  assert.deepEqual(newest.map(({ id }) => id), [...rows, ...late].map(({ id }) => id).sort().reverse());
  const told = await readFirsts(kv, ENDPOINT, rows.map(({ event }) => event));
  assert.equal(told.ids.size, 250);
});

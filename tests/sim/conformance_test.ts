/** The simulated store is held to the real one: the same operations on both, drawn at random, must answer alike. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Bells } from "../../sim/bells.ts";
import { SimKv } from "../../sim/kv.ts";
import { Rng } from "../../sim/rng.ts";
import { SimStore } from "../../sim/store.ts";
import type { Timers } from "../../lib/edge/ports.ts";

const atOnce: Timers = { after: (_, run) => (queueMicrotask(run), 0 as never), cancel() {} };

function simKv(): Deno.Kv {
  const store = new SimStore(), rng = new Rng(1);
  const bells = new Bells({ timers: atOnce, rng, fault: () => null, rang() {} });
  store.watch = ({ messages }) => bells.add(messages);
  const deps = { store, timers: atOnce, rng, bells, fault: () => null, latencyMs: 0, died() {} };
  return new SimKv(deps) as unknown as Deno.Kv;
}

/** What an operation came to, without what may differ: versionstamps by order, error texts but for their kind. */
async function outcome(run: () => unknown): Promise<unknown> {
  try {
    return { value: await run() };
  } catch (error) {
    return { error: (error as Error).message.replace(/: received .*/, "") };
  }
}

const part: fc.Arbitrary<Deno.KvKeyPart> = fc.oneof(
  fc.constantFrom("", "a", "b", "ab", "a\0", "é", "\u{10ffff}", "~"),
  fc.constantFrom(0, -0, 1, -1, 1.5, NaN, Infinity, -Infinity, 2 ** 53),
  fc.constantFrom(0n, 1n, -1n, 255n, 256n, -256n, 2n ** 64n, -(2n ** 64n), 2n ** 70n),
  fc.boolean(),
  fc.uint8Array({ maxLength: 3 }),
);
const key = fc.array(part, { minLength: 1, maxLength: 3 });
const value = fc.oneof(
  fc.integer(),
  fc.string({ maxLength: 5 }),
  fc.constant(null),
  fc.uint8Array({ maxLength: 4 }),
  fc.record({ a: fc.integer(), b: fc.array(fc.bigInt()), c: fc.constant(undefined) }),
  fc.constant(new Map([["m", new Set([1])]])),
);

type Op =
  | { op: "set" | "get" | "delete"; key: Deno.KvKey; value: unknown }
  | { op: "list"; selector: Deno.KvListSelector; options: Deno.KvListOptions }
  | { op: "getMany"; keys: Deno.KvKey[] }
  | {
    op: "atomic";
    checks: { key: Deno.KvKey; fresh: boolean }[];
    writes: { key: Deno.KvKey; value: unknown }[];
  };

const selector = fc.oneof(
  fc.record({ prefix: fc.array(part, { maxLength: 2 }) }),
  fc.record({ start: key, end: key }),
  fc.tuple(fc.array(part, { minLength: 1, maxLength: 1 }), part, part).map(([prefix, low, high]) => ({
    prefix,
    start: [...prefix, low],
    end: [...prefix, high],
  })),
  fc.tuple(key, key).map(([prefix, start]) => ({ prefix, start })),
);
const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({ op: fc.constantFrom("set" as const, "get" as const, "delete" as const), key, value }),
  fc.record({
    op: fc.constant("list" as const),
    selector: selector as fc.Arbitrary<Deno.KvListSelector>,
    options: fc.record({
      limit: fc.integer({ min: 1, max: 9 }),
      batchSize: fc.integer({ min: 1, max: 4 }),
      reverse: fc.boolean(),
    }, {
      requiredKeys: [],
    }),
  }),
  fc.record({ op: fc.constant("getMany" as const), keys: fc.array(key, { maxLength: 11 }) }),
  fc.record({
    op: fc.constant("atomic" as const),
    checks: fc.array(fc.record({ key, fresh: fc.boolean() }), { maxLength: 2 }),
    writes: fc.array(fc.record({ key, value: fc.option(value, { nil: undefined }) }), { maxLength: 4 }),
  }),
);

/** Versionstamps as the order they were first seen in. */
function ranks(): (stamp: string | null) => string | null {
  const seen: string[] = [];
  return (stamp) => {
    if (stamp === null) return null;
    if (!seen.includes(stamp)) seen.push(stamp);
    return `#${seen.indexOf(stamp)}`;
  };
}

async function apply(kv: Deno.Kv, rank: (stamp: string | null) => string | null, op: Op): Promise<unknown> {
  const entry = (e: Deno.KvEntryMaybe<unknown>) => ({
    key: e.key,
    value: e.value,
    stamp: rank(e.versionstamp),
  });
  switch (op.op) {
    case "set":
      return await outcome(async () => (await kv.atomic().set(op.key, op.value).commit()).ok);
    case "delete":
      return await outcome(async () => (await kv.atomic().delete(op.key).commit()).ok);
    case "get":
      return await outcome(async () => entry(await kv.get(op.key)));
    case "getMany":
      return await outcome(async () => (await kv.getMany(op.keys)).map(entry));
    case "list":
      return await outcome(async () => {
        const rows: unknown[] = [];
        for await (const row of kv.list(op.selector, op.options)) rows.push(entry(row));
        return rows;
      });
    case "atomic": {
      const checks = await Promise.all(op.checks.map(async ({ key, fresh }) => ({
        key,
        versionstamp: fresh ? (await kv.get(key)).versionstamp : null,
      })));
      return await outcome(async () => {
        const atomic = kv.atomic().check(...checks);
        for (const { key, value } of op.writes) {
          if (value === undefined) atomic.delete(key);
          else atomic.set(key, value);
        }
        const result = await atomic.commit();
        return result.ok ? rank(result.versionstamp) : false;
      });
    }
  }
}

Deno.test("SimKv answers as Deno KV does, operation by operation", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 30 }), async (ops) => {
      using real = await Deno.openKv(":memory:");
      const sim = simKv(), realRank = ranks(), simRank = ranks();
      for (const one of ops) {
        assert.deepEqual(
          await apply(sim, simRank, one),
          await apply(real, realRank, one),
          JSON.stringify(one, (_, v) => typeof v === "bigint" ? `${v}n` : v),
        );
      }
    }),
    { numRuns: 150 },
  );
});

Deno.test("SimKv refuses what Deno KV refuses, in its words", async () => {
  using real = await Deno.openKv(":memory:");
  const sim = simKv();
  const many = (n: number, add: (atomic: Deno.AtomicOperation, i: number) => void) => (kv: Deno.Kv) => {
    const atomic = kv.atomic();
    for (let i = 0; i < n; i++) add(atomic, i);
    return atomic.commit().then(({ ok }) => ok);
  };
  const row = (value: unknown) => (kv: Deno.Kv) =>
    kv.atomic().set(["a"], value).commit().then(({ ok }) => ok);
  const cases: [string, (kv: Deno.Kv) => unknown][] = [
    ["65,536 B", row(new Uint8Array(65_536))],
    ["65,537 B", row(new Uint8Array(65_537))],
    ["text of 65,530", row("x".repeat(65_530))],
    ["text of 65,531", row("x".repeat(65_531))],
    ["a function", row(() => 1)],
    ["an empty key", (kv) => kv.atomic().set([], 1).commit().then(({ ok }) => ok)],
    ["a read of an empty key", (kv) => kv.get([]).then(({ value }) => value)],
    ["a key of 2,048 B", (kv) => kv.atomic().set(["x".repeat(2_046)], 1).commit().then(({ ok }) => ok)],
    ["a key of 2,049 B", (kv) => kv.atomic().set(["x".repeat(2_047)], 1).commit().then(({ ok }) => ok)],
    ["a read of a key of 2,050 B", (kv) => kv.get(["x".repeat(2_048)]).then(({ value }) => value)],
    ["1,000 mutations", many(1_000, (atomic, i) => atomic.set(["m", i], 1))],
    ["1,001 mutations", many(1_001, (atomic, i) => atomic.set(["m", i], 1))],
    ["100 checks", many(100, (atomic, i) => atomic.check({ key: ["c", i], versionstamp: null }))],
    ["101 checks", many(101, (atomic, i) => atomic.check({ key: ["c", i], versionstamp: null }))],
    ["a check of nonsense", (kv) => kv.atomic().check({ key: ["c"], versionstamp: "z" }).commit()],
    ["780,000 B", many(12, (atomic, i) => atomic.set(["m", i], new Uint8Array(65_000)))],
    ["845,000 B", many(13, (atomic, i) => atomic.set(["m", i], new Uint8Array(65_000)))],
    ["keys of 81,400 B", many(41, (atomic, i) => atomic.set(["x".repeat(1_980) + i], 1))],
    ["keys of 83,400 B", many(42, (atomic, i) => atomic.set(["x".repeat(1_980) + i], 1))],
    ["11 keys", (kv) => kv.getMany(Array.from({ length: 11 }, (_, i) => ["m", i]))],
    ["a delay before now", (kv) => kv.atomic().enqueue(1, { delay: -1 }).commit()],
    ["a delay over 30 days", (kv) => kv.atomic().enqueue(1, { delay: 30 * 86_400_000 + 1 }).commit()],
    ["a message of 70,000 B", (kv) => kv.atomic().enqueue("x".repeat(70_000)).commit()],
    ["an expiry before now", (kv) => kv.atomic().set(["e"], 1, { expireIn: -1 }).commit()],
    ["an end before its start", (kv) => kv.list({ start: ["b"], end: ["a"] }).next()],
    ["a limit of 0", (kv) => kv.list({ prefix: ["a"] }, { limit: 0 }).next()],
    ["no writes", (kv) => kv.atomic().commit().then(({ ok }) => ok)],
  ];
  for (const [what, run] of cases) {
    assert.deepEqual(await outcome(() => run(sim)), await outcome(() => run(real)), what);
  }
  sim.close();
  await assert.rejects(sim.get(["a"]), Deno.errors.BadResource);
});

Deno.test("SimKv hands a queued message to a listener, as Deno KV does", async () => {
  for (const kv of [simKv(), await Deno.openKv(":memory:")]) {
    const heard = Promise.withResolvers<unknown>();
    const ended = kv.listenQueue((message) => heard.resolve(message));
    await kv.atomic().set(["a"], 1).enqueue({ bell: 1 }, { delay: 0 }).commit();
    assert.deepEqual(await heard.promise, { bell: 1 });
    assert.equal((await kv.get(["a"])).value, 1);
    kv.close();
    await ended;
  }
});

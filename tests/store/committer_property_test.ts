/** The committer against a plain model that runs the same units one after the other. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { makeCommitter, type Unit } from "../../lib/edge/committer.ts";
import type { KvKey, Write } from "../../lib/edge/kv.ts";
import { keyBytes, keyName, measure } from "../../lib/edge/measure.ts";

/** A unit over five keys: what it expects of some (a value seen by then, or nothing) and what it writes. */
interface Step {
  expect: { key: number; fresh: boolean }[];
  writes: { key: number; remove: boolean }[];
}

const step: fc.Arbitrary<Step> = fc.record({
  expect: fc.array(fc.record({ key: fc.nat(4), fresh: fc.boolean() }), { maxLength: 2 }),
  writes: fc.array(fc.record({ key: fc.nat(4), remove: fc.boolean() }), { minLength: 1, maxLength: 3 }),
});

const KEYS = [0, 1, 2, 3, 4];
const NO_SUCH_VERSION = "0".repeat(19) + "1";

/** A check that is not fresh expects nothing where there was something, and a version that never was where there was nothing. */
function unitOf(s: Step, value: string, stamps: (string | null)[]): Unit {
  return {
    checks: s.expect.map(({ key, fresh }) => {
      const stamp = stamps[key]!;
      return { key: ["p", key], versionstamp: fresh ? stamp : stamp === null ? NO_SUCH_VERSION : null };
    }),
    writes: s.writes.map((w): Write =>
      w.remove ? { op: "delete", key: ["p", w.key] } : { op: "set", key: ["p", w.key], value }
    ),
  };
}

/** The same on a map from key to the unit that wrote it last. */
function runOnModel(
  s: Step,
  value: string,
  model: Map<number, string>,
  before: Map<number, string>,
): boolean {
  const holds = s.expect.every(({ key, fresh }) => {
    if (fresh) return model.get(key) === before.get(key);
    return before.has(key) && !model.has(key);
  });
  if (!holds) return false;
  for (const w of s.writes) {
    if (w.remove) model.delete(w.key);
    else model.set(w.key, value);
  }
  return true;
}

Deno.test("committer: any units in any grouping leave what running them one by one leaves", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(1, 3),
      async (rounds, maxInFlight) => {
        const kv = await Deno.openKv(":memory:");
        try {
          const committer = makeCommitter(kv, { maxInFlight });
          const model = new Map<number, string>();
          for (const [round, steps] of rounds.entries()) {
            // Every unit of a round sees the versions of the round's start, as concurrent callers do.
            const stamps = await Promise.all(
              KEYS.map(async (key) => (await kv.get(["p", key])).versionstamp),
            );
            const before = new Map(model);
            const expected = steps.map((s, i) => runOnModel(s, `${round}/${i}`, model, before));
            const settled = await Promise.all(
              steps.map((s, i) => committer.commit(unitOf(s, `${round}/${i}`, stamps))),
            );
            assert.deepEqual(settled.map((r) => r.ok), expected);
          }
          for (const key of KEYS) {
            assert.equal((await kv.get(["p", key])).value, model.get(key) ?? null);
          }
        } finally {
          kv.close();
        }
      },
    ),
    { numRuns: 150 },
  );
});

const keyPart = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.double({ noNaN: true }).map((n) => n + 0),
  fc.bigInt(),
  fc.boolean(),
  fc.uint8Array({ maxLength: 5 }),
);

Deno.test("committer: two keys have one name exactly when they are one key", () => {
  fc.assert(fc.property(fc.array(keyPart), fc.array(keyPart), (a, b) => {
    let same = true;
    try {
      assert.deepEqual(a, b);
    } catch {
      same = false;
    }
    assert.equal(keyName(a) === keyName(b), same);
    assert.equal(keyName(a), keyName(structuredClone(a) as KvKey));
  }));
});

Deno.test("committer: the size estimate is never below what V8 and the KV store", async () => {
  const { serialize } = await import("node:v8");
  const encoder = new TextEncoder();
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: "binary" }), fc.uint8Array(), (value, text, bytes) => {
      const stored = { value, text, bytes: new Uint8Array(bytes) };
      assert.ok(
        measure([], [{ op: "set", key: [text], value: stored }]).maxValue >= serialize(stored).byteLength,
      );
      assert.ok(keyBytes([text]) >= encoder.encode(text).length);
    }),
  );
});

Deno.test("committer: a key made for its write is not asked about, and counts like any other", () => {
  const value = { a: 1 }, key: KvKey = ["p", "made"];
  const plain = measure([], [{ op: "set", key, value }]);
  const fresh = measure([], [{ op: "set", key, value, fresh: true }, { op: "delete", key: ["p", "x"] }]);
  assert.deepEqual(plain.writeNames, [keyName(key)]);
  assert.deepEqual(fresh.writeNames, [keyName(["p", "x"])]);
  assert.equal(fresh.bytes, plain.bytes + keyBytes(["p", "x"]));
  assert.equal(fresh.mutations, 2);
});

/** The committer over a real KV. Faked: only the answer of `commit()` where a KV failure is the case, or held to build a queue. */
import assert from "node:assert/strict";
import { COMBINE_MUTATIONS } from "../../lib/edge/commit_batch.ts";
import { CommitTooLargeError, makeCommitter, type Settled, type Unit } from "../../lib/edge/committer.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { MAX_CHECKS_PER_COMMIT, MAX_MUTATIONS_PER_COMMIT } from "../../lib/limits.ts";

/** A KV that counts its commits; `hold` keeps the first one from starting until it is released. */
function counted(kv: Deno.Kv, onCommit: (n: number) => Promise<void> | void = () => {}) {
  const stats = { commits: 0, open: 0, maxOpen: 0 };
  const port = {
    atomic: () => {
      const operation = kv.atomic();
      const commit = operation.commit.bind(operation);
      operation.commit = async () => {
        stats.commits++;
        stats.maxOpen = Math.max(stats.maxOpen, ++stats.open);
        try {
          await onCommit(stats.commits);
          return await commit();
        } finally {
          stats.open--;
        }
      };
      return operation;
    },
  } as unknown as Kv;
  return { port, stats };
}

const set = (name: string, value: unknown = 1): Unit => ({
  checks: [],
  writes: [{ op: "set", key: ["k", name], value }],
});
/** Written only if nobody wrote it before. */
const create = (name: string, value: unknown = 1): Unit => ({
  ...set(name, value),
  checks: [{ key: ["k", name], versionstamp: null }],
});

async function withKv(body: (kv: Deno.Kv) => Promise<void>): Promise<void> {
  const kv = await Deno.openKv(":memory:");
  try {
    await body(kv);
  } finally {
    kv.close();
  }
}

Deno.test("committer: what waits together is one commit, and each unit is told its versionstamp", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) => committer.commit(set("u" + i, i))));
    assert.equal(stats.commits, 1);
    const stored = await kv.get(["k", "u7"]);
    assert.deepEqual(all[7], { ok: true, versionstamp: stored.versionstamp });
    await committer.idle();
  }));

Deno.test("committer: one conflict never fails its neighbours", () =>
  withKv(async (kv) => {
    await kv.set(["k", "u13"], "other");
    const { port } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const all = await Promise.all(Array.from({ length: 40 }, (_, i) => committer.commit(create("u" + i))));
    assert.deepEqual(all.flatMap((s, i) => s.ok ? [] : [i]), [13]);
    assert.equal((await kv.get(["k", "u13"])).value, "other");
    assert.equal((await kv.get(["k", "u14"])).value, 1);
  }));

Deno.test("committer: a unit is all or nothing, also beside others", () =>
  withKv(async (kv) => {
    await kv.set(["k", "taken"], 0);
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    const unit = create("taken");
    unit.writes.push({ op: "set", key: ["k", "beside"], value: 1 });
    const [refused, fine] = await Promise.all([committer.commit(unit), committer.commit(set("fine"))]);
    assert.deepEqual([refused.ok, fine.ok], [false, true]);
    assert.equal((await kv.get(["k", "beside"])).value, null);
  }));

Deno.test("committer: of two units that create the same key in one queue the first wins, the second is refused", () =>
  withKv(async (kv) => {
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    const all = await Promise.all([
      committer.commit(create("a", "first")),
      committer.commit(create("a", "second")),
      committer.commit(set("b")),
    ]);
    assert.deepEqual(all.map((s) => s.ok), [true, false, true]);
    assert.equal((await kv.get(["k", "a"])).value, "first");
  }));

Deno.test("committer: two writers of one key get versionstamps of their own, in their order", () =>
  withKv(async (kv) => {
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    const all = await Promise.all([1, 2, 3].map((v) => committer.commit(set("a", v))));
    const stamps = all.map((s) => s.ok ? s.versionstamp : "");
    assert.equal(new Set(stamps).size, 3);
    const stored = await kv.get(["k", "a"]);
    assert.deepEqual([stored.value, stored.versionstamp], [3, stamps[2]]);
  }));

Deno.test("committer: units behind one that must wait still share the commit, unless they touch its keys", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const both: Unit = { checks: [], writes: [...set("a", 2).writes, ...set("c", 2).writes] };
    await Promise.all([
      committer.commit(set("a", 1)),
      committer.commit(both),
      committer.commit(set("c", 3)),
      ...Array.from({ length: 30 }, (_, i) => committer.commit(set("n" + i))),
    ]);
    assert.equal((await kv.get(["k", "c"])).value, 3);
    assert.equal(stats.commits, 3);
  }));

Deno.test("committer: the same check from many units counts once", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const units = Array.from({ length: 300 }, (_, i): Unit => ({
      ...set("u" + i),
      checks: [{ key: ["tenant"], versionstamp: null }],
    }));
    const all = await Promise.all(units.map((u) => committer.commit(u)));
    assert.ok(all.every((s) => s.ok));
    assert.equal(stats.commits, 1);
  }));

Deno.test("committer: a commit is closed at the limits of writes, checks, bytes and key bytes", () =>
  withKv(async (kv) => {
    const run = async (units: Unit[]) => {
      const { port, stats } = counted(kv);
      const committer = makeCommitter(port, { maxInFlight: 1 });
      assert.ok((await Promise.all(units.map((u) => committer.commit(u)))).every((s) => s.ok));
      return stats.commits;
    };
    const many = (n: number, unit: (i: number) => Unit) => Array.from({ length: n }, (_, i) => unit(i));
    assert.equal(await run(many(MAX_MUTATIONS_PER_COMMIT, (i) => set("m" + i))), 1);
    assert.equal(await run(many(MAX_MUTATIONS_PER_COMMIT + 1, (i) => set("m" + i))), 2);
    assert.equal(await run(many(MAX_CHECKS_PER_COMMIT, (i) => create("c" + i))), 1);
    assert.equal(await run(many(MAX_CHECKS_PER_COMMIT + 1, (i) => create("d" + i))), 2);
    assert.equal(await run(many(11, (i) => set("v" + i, new Uint8Array(60_000)))), 1);
    assert.equal(await run(many(12, (i) => set("v" + i, new Uint8Array(60_000)))), 2);
    assert.equal(await run(many(14, (i) => set("v" + i, { text: "é\u4e00".repeat(14_000) }))), 2);
    assert.equal(await run(many(48, (i) => set("k".repeat(1_900) + i))), 2);
  }));

Deno.test("committer: a unit too large for any commit is refused before anything is written", () =>
  withKv(async (kv) => {
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    const unit = (n: number, value: unknown, key = "x"): Unit => ({
      checks: [],
      writes: Array.from({ length: n }, (_, i) => ({ op: "set", key: [key, i], value })),
    });
    const checks = Array.from({ length: 101 }, (_, i) => ({ key: ["y", i], versionstamp: null }));
    const cases: [Unit, RegExp][] = [
      [unit(1_001, 1), /1001 writes are more than 1000/],
      [{ checks, writes: [] }, /101 checks are more than 100/],
      [unit(1, new Uint8Array(65_537)), /value of 65537 B/],
      [unit(1, 1, "k".repeat(2_047)), /a key of/],
      [unit(50, 1, "k".repeat(1_600)), /keys of/],
      [unit(12, new Uint8Array(60_000)), /B are over 700000 B/],
    ];
    for (const [large, message] of cases) {
      const settled = committer.commit(large);
      await assert.rejects(
        settled,
        (error) => error instanceof CommitTooLargeError && message.test(error.message),
      );
    }
    for await (const entry of kv.list({ prefix: [] })) assert.fail(String(entry.key));
    assert.ok((await committer.commit(unit(1_000, 1))).ok);
  }));

Deno.test("committer: a value that cannot be stored rejects alone and leaves no part of its unit", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const poison: Unit = {
      checks: [],
      writes: [...set("part").writes, { op: "set", key: ["k", "poison"], value: () => 1 }],
    };
    const results = await Promise.allSettled([
      committer.commit(set("before")),
      committer.commit(poison),
      committer.commit(set("after")),
    ]);
    assert.deepEqual(results.map((r) => r.status), ["fulfilled", "rejected", "fulfilled"]);
    assert.equal(stats.commits, 1);
    assert.equal((await kv.get(["k", "part"])).value, null);
    assert.equal((await kv.get(["k", "after"])).value, 1);
  }));

Deno.test("committer: a value the KV finds too large after all fails alone", () =>
  withKv(async (kv) => {
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    // A Date is stored in more bytes than the estimate grants it.
    const sneaky = set("sneaky", Array.from({ length: 7_500 }, () => new Date(0)));
    const results = await Promise.allSettled([set("a"), sneaky, set("b")].map((u) => committer.commit(u)));
    assert.deepEqual(results.map((r) => r.status), ["fulfilled", "rejected", "fulfilled"]);
  }));

Deno.test("D4: a commit that throws rejects its units, is not repeated, and the next one goes on", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv, (n) => {
      if (n === 1) throw new Error("disk I/O error");
    });
    const settled: boolean[] = [];
    const committer = makeCommitter(port, {
      maxInFlight: 1,
      combine: () => ({ writes: [], settled: (versionstamp) => settled.push(versionstamp !== null) }),
    });
    const results = await Promise.allSettled([
      committer.commit({ ...set("a"), carry: ["a"] }),
      committer.commit(set("b")),
    ]);
    assert.deepEqual(results.map((r) => r.status), ["rejected", "rejected"]);
    assert.equal(stats.commits, 1);
    assert.deepEqual(settled, [false]);
    assert.ok((await committer.commit(set("c"))).ok);
  }));

Deno.test("committer: combine gets the carried items of each commit once it is written, also after a split", () =>
  withKv(async (kv) => {
    await kv.set(["k", "u2"], "other");
    const log: [string[], boolean][] = [];
    let row = 0;
    const committer = makeCommitter(kv, {
      maxInFlight: 1,
      combine: (carried) => ({
        writes: [{ op: "set", key: ["job", row++], value: carried }],
        settled: (versionstamp) => log.push([carried as string[], versionstamp !== null]),
      }),
    });
    const all = await Promise.all(
      [0, 1, 2, 3].map((i) => committer.commit({ ...create("u" + i), carry: ["u" + i] })),
    );
    assert.deepEqual(all.map((s) => s.ok), [true, true, false, true]);
    const good = log.filter(([, ok]) => ok).map(([items]) => items);
    assert.deepEqual(good, [["u0", "u1"], ["u3"]]);
    const rows: unknown[] = [];
    for await (const entry of kv.list({ prefix: ["job"] })) rows.push(entry.value);
    assert.deepEqual(rows, good);
  }));

Deno.test("committer: combine is not called without anything carried, and its writes count against the limits", () =>
  withKv(async (kv) => {
    let calls = 0;
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, {
      maxInFlight: 1,
      combine: (carried) => {
        calls++;
        return { writes: carried.map((c, i) => ({ op: "set", key: ["c", String(c), i], value: 1 })) };
      },
    });
    await committer.commit(set("plain"));
    assert.equal(calls, 0);
    await committer.idle();
    // 600 units and 600 combined rows are over 1,000 writes: the commit is split, and all is written.
    const all = await Promise.all(
      Array.from({ length: 600 }, (_, i) => committer.commit({ ...set("u" + i), carry: [i] })),
    );
    assert.ok(all.every((s) => s.ok));
    assert.equal(stats.commits, 3);
    let rows = 0;
    for await (const _ of kv.list({ prefix: ["c"] })) rows++;
    assert.equal(rows, 600);
  }));

Deno.test("committer: a commit keeps the room that its carried items ask for, and no more", () =>
  withKv(async (kv) => {
    const run = async (count: number, rows: number, bytes: number) => {
      const { port, stats } = counted(kv);
      let calls = 0;
      const committer = makeCommitter(port, {
        maxInFlight: 1,
        roomOf: () => ({ mutations: rows, bytes: rows * (bytes + 100), keyBytes: rows * 50 }),
        combine: (carried) => {
          calls++;
          const row = (item: unknown, i: number) => ["c", String(item), i];
          return {
            writes: carried.flatMap((item) =>
              Array.from({ length: rows }, (_, i) => ({
                op: "set" as const,
                key: row(item, i),
                value: new Uint8Array(bytes),
              }))
            ),
          };
        },
      });
      const units = Array.from({ length: count }, (_, i) => ({ ...set("u" + i), carry: [i] }));
      assert.ok((await Promise.all(units.map((unit) => committer.commit(unit)))).every((s) => s.ok));
      assert.equal(calls, stats.commits, "what was combined was never refused");
      return stats.commits;
    };
    const each = (MAX_MUTATIONS_PER_COMMIT - COMBINE_MUTATIONS) / 3; // one of its own and two of the index
    assert.equal(await run(Math.floor(each), 2, 10), 1);
    assert.equal(await run(Math.floor(each) + 1, 2, 10), 2);
    assert.equal(await run(110, 1, 6_000), 1);
    assert.equal(await run(120, 1, 6_000), 2);
  }));

Deno.test("committer: one commit in flight on a file; what comes meanwhile is the next one", () =>
  withKv(async (kv) => {
    const gate = Promise.withResolvers<void>();
    const { port, stats } = counted(kv, (n) => n === 1 ? gate.promise : undefined);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    const first = committer.commit(set("first"));
    await Promise.resolve();
    const rest = Array.from({ length: 20 }, (_, i) => committer.commit(set("r" + i)));
    gate.resolve();
    await Promise.all([first, ...rest]);
    assert.deepEqual([stats.commits, stats.maxOpen], [2, 1]);
  }));

Deno.test("committer: callers that go on at once are two groups: one is built while the other is committed", () =>
  withKv(async (kv) => {
    const sizes: number[] = [];
    const committer = makeCommitter(kv, {
      maxInFlight: 1,
      combine: (carried) => (sizes.push(carried.length), { writes: [] }),
    });
    await Promise.all(Array.from({ length: 64 }, async (_, caller) => {
      for (let i = 0; i < 10; i++) await committer.commit({ ...set(`${caller} ${i}`), carry: [i] });
    }));
    assert.equal(sizes[0], 64, "what waits together is not parted");
    const between = sizes.slice(1, -2);
    assert.ok(between.every((size) => size >= 16 && size <= 48), `${sizes}`);
  }));

Deno.test("committer: what answers a result shares the next commit with the others that do", () =>
  withKv(async (kv) => {
    const { port, stats } = counted(kv);
    const committer = makeCommitter(port, { maxInFlight: 1 });
    await Promise.all(Array.from({ length: 8 }, async (_, caller) => {
      await committer.commit(set(`first ${caller}`));
      for (let hop = 0; hop < 2 * caller; hop++) await undefined; // one is sooner done than another
      await committer.commit(set(`second ${caller}`));
    }));
    assert.equal(stats.commits, 2);
  }));

Deno.test("committer: several in flight on a remote KV, never two that touch each other", () =>
  withKv(async (kv) => {
    const gate = Promise.withResolvers<void>();
    const { port, stats } = counted(kv, (n) => n === 1 ? gate.promise : undefined);
    const committer = makeCommitter(port, { maxInFlight: 4 });
    const first = committer.commit(create("a", "first"));
    await Promise.resolve();
    let second: Settled | undefined;
    const clash = committer.commit(create("a", "second")).then((s) => second = s);
    assert.ok((await committer.commit(set("free"))).ok);
    assert.equal(second, undefined);
    gate.resolve();
    assert.ok((await first).ok);
    assert.deepEqual(await clash, { ok: false });
    assert.equal(stats.maxOpen, 2);
    await committer.idle();
  }));

Deno.test("committer: enqueue rings in the same commit or not at all", () =>
  withKv(async (kv) => {
    await kv.set(["k", "taken"], 0);
    const heard: unknown[] = [];
    const done = Promise.withResolvers<void>();
    const listening = kv.listenQueue((message) => {
      heard.push(message);
      done.resolve();
    });
    const committer = makeCommitter(kv, { maxInFlight: 1 });
    const ring = (value: string) => ({ op: "enqueue" as const, value, delay: 0 });
    const refused = create("taken");
    refused.writes.push(ring("never"));
    const fine = create("free");
    fine.writes.push(ring("due"));
    await Promise.all([committer.commit(refused), committer.commit(fine)]);
    await done.promise;
    assert.deepEqual(heard, ["due"]);
    kv.close();
    await listening;
  }).catch((error) => {
    // The test closed the KV itself to end the listener.
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }));

/** The pump over a real KV, committer and job rows: what it claims, what it leaves, and when it looks again (DESIGN "Pump", J3). */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import type { EndpointId, EventId, EventKey, JobId } from "../../lib/ids.ts";
import { type DeliverJob, type Job, keys } from "../../lib/keys.ts";
import { MINUTE_MS, SECOND_MS, VISIBILITY_MS } from "../../lib/limits.ts";
import { job, withPump } from "./pump_bench.ts";

Deno.test(
  "J3: what is due is claimed in due order: the row moves to a time to come and the claim tells where it is",
  withPump(async (b) => {
    const now = b.time.now;
    await b.put("second", now);
    await b.put("first", now - 5);
    await b.put("later", now + 1);
    b.pump.start();
    await b.settle();
    assert.deepEqual(b.names(), ["first", "second"]);
    assert.deepEqual(
      (await b.rows()).sort((x, y) => x[1] - y[1]),
      [["later", now + 1, undefined], ["first", now + VISIBILITY_MS, "me"], [
        "second",
        now + VISIBILITY_MS,
        "me",
      ]],
    );
    for (const claim of b.taken) {
      const { value, versionstamp } = await b.kv.get<Job>(claim.key);
      assert.deepEqual([claim.job, claim.versionstamp, claim.until], [
        value,
        versionstamp,
        now + VISIBILITY_MS,
      ]);
    }
    assert.deepEqual([b.refused, b.failed], [[], []]);
  }),
);

Deno.test(
  "pump: it sleeps until the next row is due, to the millisecond, with one timer",
  withPump(async (b) => {
    await b.put("a", b.time.now + 5_000);
    await b.put("b", b.time.now + 7_000);
    b.pump.start();
    await b.settle();
    assert.equal(b.pending(), 1);
    const looked = b.kv.reads;
    await b.pass(4_999);
    assert.equal(b.kv.reads, looked, "nothing to look for until then");
    assert.deepEqual(b.names(), []);
    await b.pass(1);
    assert.deepEqual(b.names(), ["a"]);
    assert.equal(b.pending(), 1);
    await b.pass(2_000);
    assert.deepEqual(b.names(), ["a", "b"]);
  }),
);

Deno.test(
  "pump: with nothing to do it looks once a minute",
  withPump(async (b) => {
    b.pump.start();
    await b.settle();
    const looked = b.kv.reads;
    await b.put("by another isolate", b.time.now);
    await b.pass(MINUTE_MS - 1);
    assert.equal(b.kv.reads, looked);
    await b.pass(1);
    assert.deepEqual(b.names(), ["by another isolate"]);
  }),
);

Deno.test(
  "pump: an earlier due time moves the alarm, a later one does not, and one that has passed rings at once",
  withPump(async (b) => {
    b.pump.start();
    await b.settle();
    const looked = () => b.kv.reads;
    const before = looked();
    b.pump.noteDue(b.time.now + 9_000);
    b.pump.noteDue(b.time.now + 4_000);
    b.pump.noteDue(b.time.now + 8_000);
    assert.equal(b.pending(), 1);
    await b.pass(3_999);
    assert.equal(looked(), before);
    await b.pass(1);
    assert.equal(looked(), before + 1);
    await b.pass(20_000);
    assert.equal(looked(), before + 1, "the alarms it replaced do not ring");
    b.pump.noteDue(b.time.now - 1_000);
    await b.pass(0);
    assert.equal(looked(), before + 2);
  }),
);

Deno.test(
  "pump: with no room it stops at the first row that has none, leaves it where it is, and a poke goes on",
  withPump(async (b) => {
    for (const name of ["a", "b", "c"]) await b.put(name, b.time.now);
    let room = 1;
    b.at.admit = () => room-- > 0 ? "start" : "full";
    b.pump.start();
    await b.settle();
    assert.deepEqual([b.names(), b.asked], [["a"], ["a", "b"]]);
    assert.deepEqual((await b.rows()).filter(([name]) => name !== "a"), [
      ["b", b.time.now, undefined],
      ["c", b.time.now, undefined],
    ]);
    const looked = b.kv.reads;
    await b.pass(10_000);
    assert.equal(b.kv.reads, looked, "no turning in circles while there is none");
    room = 5;
    b.pump.poke();
    await b.settle();
    assert.deepEqual(b.names(), ["a", "b", "c"]);
    assert.deepEqual(b.refused, []);
  }),
);

Deno.test(
  "pump: a row without room of its own moves to when there may be some, unclaimed, and comes back then",
  withPump(async (b) => {
    const now = b.time.now;
    await b.put("busy", now);
    await b.put("free", now);
    b.at.admit = (name) => name === "busy" && b.time.now < now + 3_000 ? { later: now + 3_000 } : "start";
    b.pump.start();
    await b.settle();
    assert.deepEqual(b.names(), ["free"]);
    assert.deepEqual((await b.rows()).find(([name]) => name === "busy"), ["busy", now + 3_000, undefined]);
    await b.pass(2_999);
    assert.deepEqual(b.names(), ["free"]);
    await b.pass(1);
    assert.deepEqual(b.names(), ["free", "busy"]);
  }),
);

Deno.test(
  "J3: a claim another isolate was faster with is skipped, its room given back, and nothing is said of it",
  withPump(async (b) => {
    await b.put("gone", b.time.now);
    await b.put("ours", b.time.now);
    b.kv.beforeCommit = async () => {
      b.kv.beforeCommit = null;
      await b.kv.atomic().set(keys.job(0, b.time.now, "J-gone" as JobId), job("gone")).commit();
    };
    b.pump.start();
    await b.settle();
    assert.deepEqual([b.names(), b.refused, b.failed], [["ours"], ["gone"], []]);
    assert.equal((await b.rows()).filter(([name]) => name === "gone").length, 1, "claimed by nobody");
  }),
);

Deno.test(
  "doorbell: a claim that was lost takes its doorbell back, one that was made keeps it",
  withPump(async (b) => {
    const due = b.time.now + VISIBILITY_MS;
    const rings = () => b.jobs.write(job("x"), due).writes.some((write) => write.op === "enqueue");
    await b.put("lost", b.time.now);
    b.kv.beforeCommit = async () => {
      b.kv.beforeCommit = null;
      await b.kv.atomic().delete(keys.job(0, b.time.now, "J-lost" as JobId)).commit();
    };
    b.pump.start();
    await b.settle();
    assert.deepEqual(b.refused, ["lost"]);
    const undone = b.jobs.write(job("x"), due);
    assert.ok(undone.writes.some((write) => write.op === "enqueue"), "taken back");
    undone.undo();
    await b.put("made", b.time.now);
    b.pump.poke();
    await b.settle();
    assert.deepEqual(b.names(), ["made"]);
    assert.equal(rings(), false, "it has rung");
  }, { doorbell: true }),
);

for (const when of ["before", "after"] as const) {
  Deno.test(
    `J1: a claim whose commit fails ${when} it is made gives its room back, is reported, and the row comes again`,
    withPump(async (b) => {
      await b.put("a", b.time.now);
      const fails = () => {
        throw new Error("the store is gone");
      };
      if (when === "before") b.kv.beforeCommit = fails;
      else b.kv.afterCommit = fails;
      b.pump.start();
      await b.settle();
      assert.deepEqual([b.names(), b.refused, b.failed], [[], ["a"], ["claim"]]);
      const bell = b.jobs.write(job("x"), b.time.now + VISIBILITY_MS);
      assert.ok(bell.writes.some((write) => write.op === "enqueue"), "its doorbell was taken back");
      bell.undo();
      const tries = b.kv.commits;
      await b.pass(SECOND_MS - 1);
      assert.equal(b.kv.commits, tries, "not at once: the store may be down");
      b.kv.beforeCommit = b.kv.afterCommit = null;
      await b.pass(1);
      // What was written all the same comes back when its claim runs out.
      assert.deepEqual(b.names(), when === "before" ? ["a"] : []);
      await b.pass(VISIBILITY_MS);
      assert.deepEqual(b.names(), ["a"].concat(when === "before" ? ["a"] : []));
    }, { doorbell: true }),
  );

  Deno.test(
    `pump: moving a row to a later time that fails ${when} it is made is reported and tried again a second later`,
    withPump(async (b) => {
      await b.put("a", b.time.now);
      const later = b.time.now + 30_000;
      b.at.admit = () => b.time.now < later ? { later } : "start";
      const fails = () => {
        throw new Error("the store is gone");
      };
      if (when === "before") b.kv.beforeCommit = fails;
      else b.kv.afterCommit = fails;
      b.pump.start();
      await b.settle();
      assert.deepEqual([b.names(), b.refused, b.failed], [[], [], ["claim"]]);
      b.kv.beforeCommit = b.kv.afterCommit = null;
      const tries = b.kv.commits;
      await b.pass(SECOND_MS - 1);
      assert.equal(b.kv.commits, tries);
      const rings = b.jobs.write(job("x"), later);
      assert.ok(rings.writes.some((write) => write.op === "enqueue"), "its doorbell was taken back");
      rings.undo();
      await b.pass(29_001);
      assert.deepEqual(b.names(), ["a"]);
    }, { doorbell: true }),
  );
}

Deno.test(
  "pump: a row that another isolate was faster to move is left to it, and its doorbell taken back",
  withPump(async (b) => {
    await b.put("a", b.time.now);
    const later = b.time.now + 30_000;
    b.at.admit = () => ({ later });
    b.kv.beforeCommit = async () => {
      b.kv.beforeCommit = null;
      await b.kv.atomic().delete(keys.job(0, b.time.now, "J-a" as JobId)).commit();
    };
    b.pump.start();
    await b.settle();
    assert.deepEqual([await b.rows(), b.failed], [[], []]);
    assert.ok(b.jobs.write(job("x"), later).writes.some((write) => write.op === "enqueue"));
  }, { doorbell: true }),
);

for (const what of ["claimed", "moved"] as const) {
  Deno.test(
    `pump: a row that another isolate ${what} first holds up none of those behind it, page for page`,
    withPump(async (b) => {
      const name = (i: number) => `a${String(i).padStart(3, "0")}`;
      for (let i = 0; i < 150; i++) await b.put(name(i), b.time.now - 1_000 + i);
      if (what === "moved") b.at.admit = (one) => one === name(0) ? { later: b.time.now + 1 } : "start";
      b.kv.beforeCommit = async () => {
        b.kv.beforeCommit = null;
        await b.kv.atomic().delete(keys.job(0, b.time.now - 1_000, `J-${name(0)}` as JobId)).commit();
      };
      b.pump.start();
      await b.settle();
      assert.deepEqual(b.names().length, 149);
      assert.deepEqual(b.failed, []);
    }),
  );
}

Deno.test(
  "pump: a Fanout row that nobody had before is claimed as such, and is none any more; no other row is",
  withPump(async (b) => {
    await b.putJob({ ...job("new"), untouched: true }, b.time.now - 3, "J-new");
    await b.putJob(job("old"), b.time.now - 2, "J-old");
    b.pump.start();
    await b.settle();
    assert.deepEqual(b.names(), ["new", "old"]);
    assert.deepEqual(b.taken.map((claim) => claim.untouched), [true, undefined]);
    assert.ok((await b.stored()).every(({ job }) => !("untouched" in job)));
  }),
);

Deno.test(
  "D4: a store that answers no reads is reported and looked at again a second later",
  withPump(async (b) => {
    await b.put("a", b.time.now);
    b.kv.beforeRead = () => {
      throw new Error("the store is gone");
    };
    b.pump.start();
    await b.settle();
    assert.deepEqual(b.failed, ["pump"]);
    b.kv.beforeRead = null;
    await b.pass(SECOND_MS - 1);
    assert.deepEqual(b.names(), []);
    await b.pass(1);
    assert.deepEqual([b.names(), b.failed], [["a"], ["pump"]]);
  }),
);

Deno.test(
  "pump: stop waits for a claim under way also when the next shard cannot be read",
  withPump(async (b) => {
    await b.put("a", b.time.now, 0);
    const gate = Promise.withResolvers<void>(), claiming = Promise.withResolvers<void>();
    const unread = Promise.withResolvers<void>();
    b.kv.beforeCommit = () => (claiming.resolve(), gate.promise);
    b.kv.beforeRead = ([, shard]) => {
      if (shard !== 1) return;
      unread.resolve();
      throw new Error("this shard is gone");
    };
    b.pump.start();
    await Promise.all([claiming.promise, unread.promise]);
    let stopped = false;
    const stop = b.pump.stop().then(() => void (stopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(stopped, false);
    gate.resolve();
    await stop;
    assert.deepEqual([b.names(), b.failed], [["a"], ["pump"]]);
  }, { shards: 2 }),
);

Deno.test(
  "pump: a backlog longer than a page is taken whole; after each page the other shards have their turn",
  withPump(async (b) => {
    for (let i = 0; i < 600; i++) await b.put(`a${String(i).padStart(3, "0")}`, b.time.now - 1_000 + i, 0);
    await b.put("other", b.time.now, 1);
    b.pump.start();
    await b.pass(0);
    assert.equal(b.taken.length, 601);
    assert.equal(b.names().indexOf("other"), 64);
    assert.equal(new Set(b.names()).size, 601);
  }, { shards: 2 }),
);

Deno.test(
  "pump: rows of one endpoint that are moved go on as one, up to 20 items; what threw and what is no delivery stays alone",
  withPump(async (b) => {
    const now = b.time.now, order: string[] = [];
    const deliver = (endpoint: string, items: number, throws?: number): Job => ({
      v: 1,
      kind: "deliver",
      endpoint: endpoint as EndpointId,
      items: Array.from({ length: items }, (_, i) => {
        const event = `${endpoint}${order.push(endpoint)}.${i}` as EventKey;
        return { event, id: `evt_${event}` as EventId, type: "t", attempt: 1, first: 1, replay: false };
      }),
      ...throws === undefined ? {} : { throws },
    });
    const jobs = [
      deliver("a", 8),
      deliver("b", 1),
      deliver("a", 12),
      deliver("a", 1),
      deliver("a", 2, 1),
      job("f"),
      deliver("a", 3),
      job("g"),
    ];
    for (const [i, one] of jobs.entries()) await b.putJob(one, now - 100 + i, `J${i}`);
    let asked = 0;
    b.at.admit = () => ({ later: now + 60_000 + asked++ });
    b.pump.start();
    await b.settle();
    const itemsOf = (...from: number[]) => from.flatMap((i) => (jobs[i] as DeliverJob).items);
    const stored = (await b.stored()).map(({ due, job }) => ({ due: due - now - 60_000, job }));
    assert.deepEqual(stored, [
      { due: 1, job: jobs[1] },
      { due: 2, job: { ...jobs[0], items: itemsOf(0, 2) } },
      { due: 4, job: jobs[4] },
      { due: 5, job: jobs[5] },
      { due: 6, job: { ...jobs[3], items: itemsOf(3, 6) } },
      { due: 7, job: jobs[7] },
    ]);
  }),
);

Deno.test(
  "pump: each look starts with another shard, so that none is starved of room",
  withPump(async (b) => {
    const firsts: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (const shard of [0, 1, 2]) await b.put(`${round} of ${shard}`, b.time.now, shard);
      const before = b.asked.length;
      if (round === 0) b.pump.start();
      else b.pump.poke();
      await b.settle();
      firsts.push(b.asked[before]!);
      assert.equal(b.asked.length, before + 3, "every shard once");
    }
    assert.deepEqual(firsts, ["0 of 0", "1 of 1", "2 of 2", "3 of 0"]);
  }, { shards: 3 }),
);

Deno.test(
  "pump: the earliest due time of all shards is when it looks again",
  withPump(async (b) => {
    await b.put("soon", b.time.now + 2_000, 0);
    await b.put("late", b.time.now + 50_000, 1);
    b.pump.start();
    await b.settle();
    await b.pass(2_000);
    assert.deepEqual(b.names(), ["soon"]);
    await b.pass(48_000);
    assert.deepEqual(b.names(), ["soon", "late"]);
  }, { shards: 2 }),
);

Deno.test(
  "pump: a poke while it looks makes it look once more, not side by side",
  withPump(async (b) => {
    await b.put("a", b.time.now);
    b.at.taken = (name) => {
      if (name !== "a") return;
      void b.put("b", b.time.now).then(() => {
        b.pump.poke();
        b.pump.poke();
      });
    };
    b.pump.start();
    b.pump.poke();
    await b.settle();
    assert.deepEqual(b.names(), ["a", "b"]);
    assert.equal(b.asked.length, 2, "each row was asked for once");
  }),
);

Deno.test(
  "pump: stop waits for the claims under way, claims nothing more, and a start goes on",
  withPump(async (b) => {
    const gate = Promise.withResolvers<void>();
    await b.put("a", b.time.now, 0);
    await b.put("b", b.time.now, 1);
    const claiming = Promise.withResolvers<void>(), looked = Promise.withResolvers<void>();
    b.kv.beforeCommit = () => (claiming.resolve(), gate.promise);
    b.kv.beforeRead = ([, shard]) => void (shard === 1 && looked.resolve());
    b.pump.start();
    await Promise.all([claiming.promise, looked.promise]);
    b.kv.beforeRead = null;
    let stopped = false;
    const stop = b.pump.stop().then(() => void (stopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(stopped, false);
    gate.resolve();
    await stop;
    assert.deepEqual(b.names(), ["a", "b"]);
    await b.put("c", b.time.now, 0);
    b.pump.poke();
    b.pump.noteDue(b.time.now);
    await b.pass(10 * MINUTE_MS);
    assert.deepEqual([b.names(), b.pending()], [["a", "b"], 0]);
    b.pump.start();
    await b.settle();
    assert.ok(b.names().includes("c"));
  }, { shards: 2 }),
);

Deno.test(
  "pump: started again, it sleeps until the next row is due as it did before",
  withPump(async (b) => {
    b.pump.start();
    await b.settle();
    await b.pump.stop();
    await b.put("a", b.time.now + 90_000);
    b.pump.start();
    await b.settle();
    assert.equal(b.pending(), 1);
    await b.pass(90_000);
    assert.deepEqual(b.names(), ["a"]);
  }),
);

Deno.test(
  "pump: it does nothing before it is started",
  withPump(async (b) => {
    await b.put("a", b.time.now);
    b.pump.poke();
    b.pump.noteDue(b.time.now);
    await b.pass(MINUTE_MS);
    assert.deepEqual([b.names(), b.kv.reads, b.pending()], [[], 0, 0]);
  }),
);

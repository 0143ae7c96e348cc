import assert from "node:assert/strict";
import type { Timers } from "../../lib/edge/ports.ts";
import { keys } from "../../lib/keys.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { migrate, type Migration, SchemaTooNewError } from "../../migrations/runner.ts";

/** A clock that only moves when somebody waits: each wait is over at once and takes its time on the clock. */
function world(kv: Deno.Kv, instance: string) {
  let clock = 1_000_000;
  const timers: Timers = {
    after: (ms, run) => {
      clock += ms;
      queueMicrotask(run);
      return 0 as unknown as ReturnType<Timers["after"]>;
    },
    cancel: () => {},
  };
  return { kv, now: () => clock, timers, instance };
}

async function withKv(body: (kv: Deno.Kv) => Promise<void>): Promise<void> {
  const kv = await Deno.openKv(":memory:");
  try {
    await body(kv);
  } finally {
    kv.close();
  }
}

const ROWS = 50;
/** The version after this code's own. */
const NEXT = MIGRATIONS.length + 1;
const oldRow = (i: number) => ["old", i];

/** Moves rows to a new key, seven a step, and counts how often each row was moved. */
function moving(version: number, dieAtStep = Infinity) {
  let steps = 0;
  const migration: Migration = {
    version,
    name: "move",
    step: async (kv, cursor) => {
      if (++steps > dieAtStep) throw new Error("killed");
      const from = (cursor as number | null) ?? 0;
      const to = Math.min(ROWS, from + 7);
      const writes = [];
      for (let i = from; i < to; i++) {
        const row = await kv.get<number>(oldRow(i));
        const moved = await kv.get<number>(["new", i]);
        writes.push({ op: "set" as const, key: ["new", i], value: (moved.value ?? 0) + row.value! });
        writes.push({ op: "delete" as const, key: oldRow(i) });
      }
      return to === ROWS ? { writes, done: true } : { writes, cursor: to };
    },
  };
  return migration;
}

async function fill(kv: Deno.Kv): Promise<void> {
  for (let i = 0; i < ROWS; i++) await kv.set(oldRow(i), 1);
}

async function assertMovedOnce(kv: Deno.Kv): Promise<void> {
  const moved: unknown[] = [];
  for await (const entry of kv.list({ prefix: ["new"] })) moved.push(entry.value);
  assert.deepEqual(moved, Array(ROWS).fill(1));
  assert.equal((await kv.get(oldRow(0))).value, null);
}

Deno.test("migrations: an empty store gets the schema row of this code, and a second start changes nothing", () =>
  withKv(async (kv) => {
    assert.equal(await migrate(MIGRATIONS, world(kv, "a")), MIGRATIONS.length);
    const first = await kv.get(keys.schema());
    assert.deepEqual(first.value, { version: MIGRATIONS.length });
    await migrate(MIGRATIONS, world(kv, "a"));
    assert.equal((await kv.get(keys.schema())).versionstamp, first.versionstamp);
    assert.equal((await kv.get(keys.lease("migrations"))).value, null);
  }));

Deno.test("migrations: one killed half-way resumes at its cursor and moves no row twice", () =>
  withKv(async (kv) => {
    await fill(kv);
    const list = (move: Migration) => [...MIGRATIONS, move];
    await assert.rejects(migrate(list(moving(NEXT, 3)), world(kv, "a")), /killed/);
    assert.deepEqual((await kv.get(keys.schema())).value, { version: NEXT - 1, cursor: 21 });
    assert.equal(await migrate(list(moving(NEXT)), world(kv, "b")), NEXT);
    assert.deepEqual((await kv.get(keys.schema())).value, { version: NEXT });
    await assertMovedOnce(kv);
  }));

Deno.test("migrations: a runner that died without a word is waited for, then replaced", () =>
  withKv(async (kv) => {
    await fill(kv);
    const deps = world(kv, "b");
    const until = deps.now() + 9_000;
    await kv.set(keys.lease("migrations"), { by: "dead", until });
    await migrate([...MIGRATIONS, moving(NEXT)], deps);
    assert.ok(deps.now() >= until);
    await assertMovedOnce(kv);
  }));

Deno.test("migrations: of processes that start at once one migrates, and all start after it", () =>
  withKv(async (kv) => {
    await fill(kv);
    const starts = ["a", "b", "c"].map((name) => migrate([...MIGRATIONS, moving(NEXT)], world(kv, name)));
    assert.deepEqual(await Promise.all(starts), [NEXT, NEXT, NEXT]);
    await assertMovedOnce(kv);
  }));

Deno.test("migrations: a runner that lost its lease in a step writes nothing of it", () =>
  withKv(async (kv) => {
    await fill(kv);
    const thief = moving(NEXT);
    const inner = thief.step;
    let stolen = false;
    thief.step = async (port, cursor) => {
      const result = await inner(port, cursor);
      if (!stolen) {
        stolen = true;
        await kv.set(keys.lease("migrations"), { by: "thief", until: 0 });
      }
      return result;
    };
    await migrate([...MIGRATIONS, thief], world(kv, "a"));
    await assertMovedOnce(kv);
  }));

Deno.test("migrations: a store of a newer release is refused with the way out", () =>
  withKv(async (kv) => {
    await kv.set(keys.schema(), { version: 99 });
    await assert.rejects(
      migrate(MIGRATIONS, world(kv, "a")),
      (error) =>
        error instanceof SchemaTooNewError && /version 99/.test(error.message) &&
        /newer release/.test(error.message),
    );
  }));

/**
 * A process that migrates a store, for migration_kill_test.ts: moves rows, a few a step, and says so after each. Arguments: the
 * file, how many rows there are, how far its clock is ahead (ms).
 */
import { openKv } from "../../lib/edge/open_kv.ts";
import { realNow, realTimers } from "../../lib/edge/ports.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { migrate, type Migration } from "../../migrations/runner.ts";

const [file, rows, aheadMs] = [Deno.args[0]!, Number(Deno.args[1]), Number(Deno.args[2])];
const A_STEP = 5;

const move: Migration = {
  version: MIGRATIONS.length + 1,
  name: "move",
  async step(kv, cursor) {
    const from = (cursor as number | null) ?? 0, to = Math.min(rows, from + A_STEP);
    const writes = [];
    for (let i = from; i < to; i++) {
      const old = await kv.get<number>(["old", i]), moved = await kv.get<number>(["new", i]);
      writes.push({ op: "set" as const, key: ["new", i], value: (moved.value ?? 0) + old.value! });
      writes.push({ op: "delete" as const, key: ["old", i] });
    }
    console.log(`step from ${from}`);
    return to === rows ? { writes, done: true } : { writes, cursor: to };
  },
};

const { kv } = await openKv(file);
const now = () => realNow() + aheadMs;
const version = await migrate([...MIGRATIONS, move], {
  kv,
  now,
  timers: realTimers,
  instance: `${Deno.pid}`,
});
console.log(`version ${version}`);
kv.close();

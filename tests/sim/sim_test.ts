/** The simulator's own promises, and a quick batch of it. The long runs are `deno task sim --seeds 2000`. */
import assert from "node:assert/strict";
import { runBatch } from "../../sim/batch.ts";
import { runScript, scriptOf } from "../../sim/seed.ts";

const SEEDS = 100;

Deno.test(`never lose, never leak: ${SEEDS} seeds of faults, crashes and clock jumps break no rule`, async () => {
  const { failed, reports, tally } = await runBatch(1, SEEDS, 2);
  const first = failed[0];
  assert.equal(
    first,
    undefined,
    `seed ${first?.seed}: ${first?.violation?.rule} ${first?.violation?.what}; see deno task sim --seed ${first?.seed}`,
  );
  assert.equal(reports, SEEDS);
  const often = ["killed", "jump", "outage"].map((what) => what === "killed" ? what : `step_${what}`);
  assert.deepEqual(
    tally.missing([...often, "throw_after", "ended_delivered", "ended_dead", "ended_parked"]),
    [],
  );
});

Deno.test("a seed gives the same trace again, whatever ran before it", async () => {
  const first = await runScript(scriptOf(3));
  await runScript(scriptOf(4));
  const again = await runScript(scriptOf(3));
  assert.equal(again.hash, first.hash);
  assert.deepEqual(again.lines, first.lines);
  assert.notEqual((await runScript(scriptOf(5))).hash, first.hash);
});

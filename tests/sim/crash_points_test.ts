/**
 * Every crash point: a scenario that takes each turn of the pipeline, with the isolate killed before and after each of its commits,
 * then started again and drained. Then the same with lost answers, and with two crashes.
 */
import assert from "node:assert/strict";
import { scenario } from "../../sim/scenario.ts";
import type { Script } from "../../sim/script.ts";
import { Rng } from "../../sim/rng.ts";
import { type Result, runScript } from "../../sim/seed.ts";
import type { StoreFault } from "../../sim/weather.ts";

const SEEDS = [27, 61];
/** Between the two they take these turns of the pipeline. */
const TURNS = [
  "acknowledged",
  "duplicate_append",
  "handed_over",
  "replayed",
  "attempt_failed",
  "attempt_dead",
];

type Plan = Map<number, StoreFault>;

async function survives(script: Script, plan: Plan): Promise<void> {
  const { violation }: Result = await runScript(script, {
    seed: script.seed,
    atCommit: (index) => plan.get(index) ?? null,
  });
  const where = [...plan].map(([index, fault]) => `${fault} at commit ${index}`).join(" and ");
  assert.equal(violation, null, `scenario ${script.seed}, ${where}: ${violation?.rule} ${violation?.what}`);
}

Deno.test("outbox_at_least_once: a crash before or after any commit of a scenario loses and leaks nothing", async () => {
  const met = new Set<string>();
  for (const seed of SEEDS) {
    const script = scenario(seed);
    const smooth = await runScript(script);
    assert.equal(smooth.violation, null);
    for (const [what] of smooth.counts) met.add(what);
    assert.ok(smooth.commitsBeforeCalm > 40);
    for (let index = 0; index < smooth.commitsBeforeCalm; index++) {
      for (const fault of ["crash_before", "crash_after"] as const) {
        await survives(script, new Map([[index, fault]]));
      }
    }
  }
  assert.deepEqual(TURNS.filter((turn) => !met.has(turn)), []);
});

Deno.test("J1: a lost or late answer, or a second crash, at any sampled commits of it loses and leaks nothing", async () => {
  const rng = new Rng(7);
  const faults = [
    "crash_before",
    "crash_after",
    "throw_before",
    "throw_after",
    "throw_late",
    "conflict",
  ] as const;
  for (const seed of SEEDS) {
    const script = scenario(seed);
    const { commitsBeforeCalm } = await runScript(script);
    for (let i = 0; i < 40; i++) {
      const plan: Plan = new Map();
      for (let j = rng.between(1, 3); j > 0; j--) plan.set(rng.int(commitsBeforeCalm), rng.pick(faults));
      await survives(script, plan);
    }
  }
});

/**
 * `deno task bench [--quick] [--rounds N] [--only phase,…]`: the numbers the system is held to, each as a ratio within one run
 * on one machine. Every phase runs in a fresh process on a fresh KV file (fsync on), between runs of the yardstick, a
 * bare signing loop. Prints JSON lines and a table; exits 1 when a target is missed, naming it.
 */
import { parseArgs } from "node:util";
import { startReceiver, stopAll } from "./children.ts";
import type { Found } from "./engine.ts";
import { judge, MEASURES, type Round } from "./measures.ts";
import { makeOurs } from "./ours.ts";
import { recovery } from "./recovery.ts";
import { quiet } from "./quiet.ts";
import { report, say } from "./report.ts";

const FULL = {
  rounds: 3,
  n: 20_000,
  steadyS: 15,
  noisyS: 30,
  backlog: 1_000_000,
  memoryS: 20,
  quietMs: 6_000,
};
const QUICK = { rounds: 1, n: 6_000, steadyS: 3, noisyS: 3, backlog: 100_000, memoryS: 2, quietMs: 0 };

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
  },
});
const sizes = flags.quick ? QUICK : FULL;
const rounds = Number(flags.rounds ?? sizes.rounds);
const only = flags.only?.split(",") ?? null;
const wanted = (phase: string): boolean => only === null || only.includes(phase);

const dir = Deno.makeTempDirSync({ prefix: "pylota-bench-" });
const seeded = `${dir}/seeded.db`;

async function measureRound(index: number): Promise<Round> {
  const round: Round = { bare: [], phases: {} };
  const note = (name: string, found: Found) => {
    round.phases[name] = found;
    say({ round: index, phase: name, ...found });
  };
  const run = async (name: string, role = name, options: { seconds?: number; file?: string } = {}) => {
    if (!wanted(name)) return;
    await quiet(sizes.quietMs);
    note(name, await ours.phase(role, { n: sizes.n, ...options }));
  };
  const yardstick = async () => {
    const found = await ours.bare(sizes.n);
    round.bare.push(found.perSecond!);
    note("bare", found);
  };
  await yardstick();
  await run("flood");
  await yardstick();
  await run("drain");
  await yardstick();
  await run("fan");
  await run("flood_beside", "flood", { file: seeded });
  await run("append");
  await run("append_beside", "append", { file: seeded });
  await run("steady", "steady", { seconds: sizes.steadyS });
  await run("calm", "calm", { seconds: sizes.noisyS });
  await run("noisy", "noisy", { seconds: sizes.noisyS });
  return round;
}

/** Mostly waiting, so they go on beside the seeding of the store. */
async function recoverRounds(): Promise<Found[]> {
  const found: Found[] = [];
  for (let i = 0; wanted("recovery") && i < rounds; i++) {
    const own = await startReceiver();
    found.push(await recovery({ file: ours.newFile(), origin: own.origin }));
    say({ round: i + 1, phase: "recovery", ...found.at(-1) });
  }
  return found;
}

const needsSeed = ["flood_beside", "append_beside", "memory"].some(wanted);
const receiver = await startReceiver();
const ours = makeOurs(dir, receiver.origin);
let missed: string[];
try {
  const seeding = needsSeed ? ours.phase("seed", { file: seeded, n: sizes.backlog }) : Promise.resolve({});
  const [store, recovered] = await Promise.all([seeding, recoverRounds()]);
  say({ phase: "seed", rows: sizes.backlog, ...store });
  const measured: Round[] = [];
  for (let i = 1; i <= rounds; i++) measured.push(await measureRound(i));
  recovered.forEach((found, i) => measured[i]!.phases.recovery = found);
  if (wanted("memory")) {
    const found = await ours.phase("memory", { n: 0, file: seeded, seconds: sizes.memoryS });
    say({ phase: "memory", ...found });
    measured[0]!.phases.memory = found;
  }
  missed = report(judge(MEASURES, measured));
} finally {
  await stopAll();
  await Deno.remove(dir, { recursive: true });
}
Deno.exit(missed.length > 0 ? 1 : 0);

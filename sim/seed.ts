/** One run: a script acted out under faults, then calm, and virtual days until everything has come to rest. */
import { DEADLINE_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/limits.ts";
import { updatePartner } from "../actors/tenancy.ts";
import { act } from "./actions.ts";
import { type Account, checkEnd } from "./final.ts";
import type { Violation } from "./model.ts";
import { MOODS } from "./acts.ts";
import { Rng } from "./rng.ts";
import { makeScript, type Script } from "./script.ts";
import { type Cast, setUp } from "./setup.ts";
import type { StoreFault } from "./weather.ts";
import { World } from "./world.ts";

export interface Result {
  seed: number;
  /** The first broken rule; null: none. */
  violation: Violation | null;
  /** Of the whole trace: equal for equal seeds. */
  hash: number;
  /** The end of the trace. */
  lines: string[];
  counts: [string, number][];
  account: Account | null;
  commits: number;
  /** How many of them came before the calm. */
  commitsBeforeCalm: number;
  /** Virtual ms that the wall clock moved. */
  virtualMs: number;
}

/** Retries end after about 72 h; replays and held deliveries start again. */
const MAX_AHEAD_MS = 20 * 24 * HOUR_MS;
const MAX_ROUNDS = 1_500;
/** Long enough for a job to throw 13 times and become a dead letter. */
const POISONED_ROUNDS = 60;

export const scriptOf = (seed: number): Script => makeScript(new Rng(seed).fork("script"));

export async function runScript(
  script: Script,
  options: { seed: number; atCommit?: (index: number) => StoreFault | null } = { seed: script.seed },
): Promise<Result> {
  const world = new World(options.seed, script.config);
  world.atCommit = options.atCommit ?? null;
  const broken = () => world.model.violations.length > 0;
  const unhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    world.model.violated("unhandled", `${(event.reason as Error)?.stack ?? event.reason}`);
  };
  globalThis.addEventListener("unhandledrejection", unhandled);
  const began = world.clock.now();
  let account: Account | null = null, commitsBeforeCalm = 0;
  try {
    const cast = await setUp(world);
    for (let i = 0; i < script.config.isolates; i++) world.spawn();
    for (const step of script.steps) world.clock.after(step.at, () => act(world, cast, step));
    await world.clock.run((script.steps.at(-1)?.at ?? 0) + 30 * SECOND_MS, broken);
    commitsBeforeCalm = world.commits;
    if (!broken()) {
      await comeToRest(world, cast, broken);
      if (!broken()) account = checkEnd(world);
    }
  } finally {
    world.end();
    await world.clock.run(0);
    globalThis.removeEventListener("unhandledrejection", unhandled);
  }
  return {
    seed: options.seed,
    violation: world.model.violations[0] ?? null,
    hash: world.hash,
    lines: world.lines,
    counts: [...world.tally.counts],
    account,
    commits: world.commits,
    commitsBeforeCalm,
    virtualMs: world.clock.now() - began,
  };
}

/** The faults stop; time runs from one due job to the next until there is none. */
async function comeToRest(world: World, cast: Cast, broken: () => boolean): Promise<void> {
  const { clock, model, config } = world;
  world.weather.calm = true;
  world.weather.outageUntil = -1;
  world.cronStoppedUntil = -1;
  world.unopenable.clear();
  world.trace("calm");
  cast.hosts.forEach((host, i) =>
    world.net.mood(host, config.oneStaysDown && i === 0 ? MOODS.hopeless : MOODS.healthy)
  );
  await clock.run(45 * SECOND_MS, broken); // who is dead starts again, who is stopping has stopped
  if (!config.heldToTheEnd) await reactivateAll(world, cast);
  const limit = clock.now() + MAX_AHEAD_MS;
  for (let round = 0; round < MAX_ROUNDS && !broken() && clock.now() < limit; round++) {
    if (model.jobs.dead.size > 0 || round > POISONED_ROUNDS) world.poisoned.clear();
    await redrive(world);
    const { due } = model.jobs;
    if (
      due.size === 0 && model.jobs.dead.size === 0 && round > 0 && (round > 9 || !parkedForNothing(world))
    ) {
      await clock.run(DEADLINE_MS + SECOND_MS, broken); // attempts whose claims were lost end by themselves
      if (due.size === 0) return;
    }
    const wait = model.jobs.nextDue - clock.now();
    if (wait > 0 && wait < Infinity) clock.jump(Math.ceil(wait * 1.02)); // jobs due soon after go with it
    world.sweep();
    const idle = () =>
      broken() || model.jobs.nextDue > clock.now() && ![...due.values()].some(({ claimed }) => claimed);
    await clock.run(50, broken);
    await clock.run(MINUTE_MS, idle);
  }
}

/** Something is parked under a partner that is active: a sweep moves it. */
function parkedForNothing({ model }: World): boolean {
  for (const row of model.jobs.parked) {
    if (model.partners.get(row.split(" ")[1]!)?.now.status === "active") return true;
  }
  return false;
}

async function reactivateAll(world: World, cast: Cast): Promise<void> {
  await world.clock.run(MINUTE_MS, () => world.serving.length > 0);
  const isolate = world.serving[0];
  if (isolate === undefined) return world.model.violated("J1", "no isolate came back");
  for (const partner of cast.partners) {
    // Whatever an earlier reactivation left parked is for the sweep.
    const done = updatePartner(isolate.deps, partner, { status: "active" }, null);
    world.client(done.then(({ reactivated }) => reactivated && isolate.system.deliveries.unpark(partner)));
    await world.clock.run(SECOND_MS);
  }
}

/** An operator puts dead letters back. */
async function redrive(world: World): Promise<void> {
  for (const { id } of [...world.model.jobs.dead.values()]) {
    world.tally.count("redriven");
    const isolate = world.serving[0];
    if (isolate !== undefined) world.client(isolate.system.deliveries.redrive(id));
    await world.clock.run(SECOND_MS);
  }
}

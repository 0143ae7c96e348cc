/** What a seed does to its world: a configuration and timed steps. Each step has a seed of its own, so a script can be cut. */
import type { Rng } from "./rng.ts";

export interface Config {
  isolates: number;
  /** Scales the store's faults; 0: none. */
  severity: number;
  latencyMs: number;
  hotHandOff: boolean;
  doorbell: boolean;
  shards: number;
  commitsInFlight: number;
  maxInFlight: number;
  maxPerEndpoint: number;
  endpoints: number;
  /** The isolates' wall clocks differ by up to this. */
  skewMs: number;
  /** At the end one receiver stays broken, so that its deliveries die. */
  oneStaysDown: boolean;
  /** At the end a suspended partner stays so. */
  heldToTheEnd: boolean;
}

const STEPS = {
  append: 30,
  burst: 8,
  append_twice: 6,
  big: 1,
  create_endpoint: 3,
  disable: 3,
  enable: 3,
  change_endpoint: 3,
  delete_endpoint: 2,
  rotate: 3,
  suspend: 3,
  reactivate: 4,
  replay_ids: 4,
  replay_window: 3,
  replay_now: 5,
  poison: 1,
  test: 2,
  erase: 2,
  mood: 8,
  kill: 4,
  stop: 3,
  jump: 3,
  cron_stops: 2,
  outage: 2,
} satisfies Record<string, number>;

export type StepKind = keyof typeof STEPS;
export const STEP_KINDS = Object.keys(STEPS) as StepKind[];

export interface Step {
  /** Monotonic ms. */
  at: number;
  kind: StepKind;
  seed: number;
}

export interface Script {
  seed: number;
  config: Config;
  steps: Step[];
}

export function makeScript(rng: Rng): Script {
  const config: Config = {
    isolates: rng.between(1, 3),
    severity: rng.pick([0, 0.5, 1, 1, 2.5]),
    latencyMs: rng.pick([0, 1, 3, 10]),
    hotHandOff: rng.chance(0.85),
    doorbell: rng.chance(0.7),
    shards: rng.between(1, 3),
    commitsInFlight: rng.pick([1, 1, 3]),
    maxInFlight: rng.pick([2, 4, 16]),
    maxPerEndpoint: rng.pick([1, 2, 4]),
    endpoints: rng.pick([2, 3, 4, 5, 6, 14]),
    skewMs: rng.pick([0, 0, 40, 2_000]),
    oneStaysDown: rng.chance(0.3),
    heldToTheEnd: rng.chance(0.3),
  };
  // Each seed leaves out some kinds of steps, so that the others come more often together (swarm testing).
  const weights = { ...STEPS };
  for (const kind of STEP_KINDS) if (kind !== "append" && rng.chance(0.25)) weights[kind] = 0;
  const steps: Step[] = [];
  const pace = rng.pick([5, 60, 400, 2_500]);
  let at = 10;
  for (let i = rng.between(8, 60); i > 0; i--) {
    steps.push({ at, kind: rng.weighted(weights), seed: rng.int(2 ** 31) });
    at += rng.chance(0.1) ? rng.between(0, 20_000) : rng.between(0, pace);
  }
  return { seed: rng.seed, config, steps };
}

/** One isolate, no faults, every turn of the pipeline within seconds: what the tests of crash points cut at each commit. */
import { Rng } from "./rng.ts";
import type { Config, Script, Step, StepKind } from "./script.ts";

const CONFIG: Config = {
  ...{
    isolates: 1,
    severity: 0,
    latencyMs: 1,
    hotHandOff: true,
    doorbell: true,
    shards: 2,
    commitsInFlight: 1,
  },
  ...{ maxInFlight: 4, maxPerEndpoint: 2, endpoints: 5, skewMs: 0, oneStaysDown: false, heldToTheEnd: false },
};

const STEPS: StepKind[] = [
  ...([
    "append",
    "append_twice",
    "burst",
    "create_endpoint",
    "append",
    "replay_ids",
    "suspend",
    "suspend",
  ] as const),
  ...([
    "burst",
    "test",
    "rotate",
    "reactivate",
    "reactivate",
    "erase",
    "disable",
    "append",
    "enable",
  ] as const),
  ...([
    "replay_window",
    "mood",
    "burst",
    "replay_now",
    "delete_endpoint",
    "append",
    "stop",
    "append",
  ] as const),
];
const STEP_EVERY_MS = 130;

/** @param seed says which owners, endpoints and moods play it */
export function scenario(seed: number): Script {
  const rng = new Rng(seed);
  const steps = STEPS.map((kind, i): Step => ({ at: 40 + i * STEP_EVERY_MS, kind, seed: rng.int(2 ** 31) }));
  return { seed, config: CONFIG, steps };
}

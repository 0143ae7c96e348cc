/** Makes a failing script smaller while it breaks the same rule: fewer steps, fewer isolates, fewer faults. */
import type { Config, Script } from "./script.ts";
import { runScript } from "./seed.ts";

const SIMPLER: Partial<Config>[] = [
  { severity: 0 },
  { isolates: 1 },
  { doorbell: false },
  { latencyMs: 0 },
  { commitsInFlight: 1 },
  { shards: 1 },
  { skewMs: 0 },
  { endpoints: 1 },
  { endpoints: 2 },
  { oneStaysDown: false },
  { heldToTheEnd: false },
];

/** @param tries how many runs it may take */
export async function shrink(script: Script, rule: string, tries = 250): Promise<Script> {
  let best = script;
  const stillFails = async (candidate: Script): Promise<boolean> => {
    if (tries-- <= 0) return false;
    if ((await runScript(candidate)).violation?.rule !== rule) return false;
    best = candidate;
    return true;
  };
  for (const change of SIMPLER) await stillFails({ ...best, config: { ...best.config, ...change } });
  for (let size = Math.ceil(best.steps.length / 2); size >= 1 && tries > 0; size = size >> 1) {
    for (let from = 0; from < best.steps.length && tries > 0;) {
      const steps = best.steps.toSpliced(from, size);
      if (!await stillFails({ ...best, steps })) from += size;
    }
  }
  for (const change of SIMPLER) await stillFails({ ...best, config: { ...best.config, ...change } });
  return best;
}

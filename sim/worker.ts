/** Runs the seeds it is given, in a thread of its own. */
/// <reference lib="deno.worker" />
import { runScript, scriptOf } from "./seed.ts";
import type { Report } from "./batch.ts";

/** Every so many seeds one runs twice: the same seed must give the same trace. */
const TWICE_EVERY = 40;

self.onmessage = async ({ data: { from, count } }: MessageEvent<{ from: number; count: number }>) => {
  for (let seed = from; seed < from + count; seed++) {
    const { violation, hash, counts, commits, virtualMs } = await runScript(scriptOf(seed));
    const again = seed % TWICE_EVERY === 0 ? (await runScript(scriptOf(seed))).hash : hash;
    const report: Report = { seed, violation, counts, commits, virtualMs, deterministic: again === hash };
    self.postMessage(report);
  }
  self.postMessage(null);
};

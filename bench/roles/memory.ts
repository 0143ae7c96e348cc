/** Peak resident memory while a seeded backlog is all due at once: the clock is set past its due time. */
import type { Found, PhaseOptions } from "../engine.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { sleep } from "../payload.ts";
import { openWorld } from "../world.ts";
import { PENDING_MS } from "./backlog.ts";

const PENDING_ENDPOINT = 9;

export async function memory({ file, origin, seconds }: PhaseOptions): Promise<Found> {
  const paths = Array.from({ length: PENDING_ENDPOINT + 1 }, (_, i) => `/hook/${i}`);
  const world = await openWorld({ file, origin, paths, shiftMs: PENDING_MS + DAY_MS });
  await world.system.start();
  await sleep(seconds * 1_000);
  const found = { peakRssMb: peakRssMb(), deliveries: world.recorded() };
  if (found.deliveries === 0) throw new Error("Cannot trust this run: nothing of the backlog was delivered");
  return found;
}

/** The kernel's own high-water mark. */
function peakRssMb(): number {
  const status = Deno.readTextFileSync("/proc/self/status");
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)![1]) * 1_024 / 1e6);
}

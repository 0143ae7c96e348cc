/** Roles that measure append → receipt at a steady rate, open loop: alone, and beside an endpoint that never answers. */
import type { Found, PhaseOptions } from "../engine.ts";
import { atRate } from "../payload.ts";
import { openWorld } from "../world.ts";
import { confirm, forget, stats } from "./receipts.ts";

const PER_SECOND = 200;
const WARM_UP_S = 2;
const HEALTHY = 5;
const NOISY_PER_SECOND = 100;

/** 200 events a second to one endpoint. */
export async function steady({ file, origin, seconds }: PhaseOptions): Promise<Found> {
  const world = await openWorld({ file, origin, paths: ["/hook/0"] });
  await world.system.start();
  const warmed = world.until(PER_SECOND * WARM_UP_S);
  await atRate(PER_SECOND * WARM_UP_S, PER_SECOND, world.append);
  await warmed;
  await forget(origin);
  const n = PER_SECOND * seconds, delivered = world.until(n);
  await atRate(n, PER_SECOND, world.append);
  await delivered;
  const { latency } = await confirm(origin, n);
  await world.close();
  return { p50Ms: latency.p50, p99Ms: latency.p99 };
}

/** 100 events a second to five endpoints that answer and, with `hang`, to one more that lets every attempt time out. */
export async function noisy({ file, origin, seconds }: PhaseOptions, hang: boolean): Promise<Found> {
  const paths = Array.from({ length: HEALTHY }, (_, i) => `/hook/${i}`);
  if (hang) paths.unshift("/hang/0"); // first in the fan-out: the worst place for it
  const world = await openWorld({ file, origin, paths });
  await world.system.start();
  // The hanging endpoint fills its lane before the clock starts.
  await forget(origin);
  const warm = NOISY_PER_SECOND * WARM_UP_S;
  await atRate(warm, NOISY_PER_SECOND, world.append);
  await confirm(origin, warm * HEALTHY);
  await forget(origin);
  const n = NOISY_PER_SECOND * seconds;
  await atRate(n, NOISY_PER_SECOND, world.append);
  const { latency } = await confirm(origin, n * HEALTHY);
  const { hung } = await stats(origin);
  // Its attempts are open still: what is left of them is not waited for.
  return { p50Ms: latency.p50, p99Ms: latency.p99, hung };
}

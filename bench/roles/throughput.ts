/** Roles that count events or deliveries a second: append alone, both together, a ready backlog, one event to ten. */
import process from "node:process";
import type { Found, PhaseOptions } from "../engine.ts";
import { inParallel, spread, warmUp } from "../payload.ts";
import { openWorld, type World } from "../world.ts";
import { confirm, forget } from "./receipts.ts";

const CALLERS = 64;
const FAN = 10;

/** Rate of `work`, which does `n` things, and the CPU time this process took for each: what a busy machine disturbs least. */
async function timed(n: number, work: () => Promise<unknown>): Promise<{ perSecond: number; cpuUs: number }> {
  const cpu = process.cpuUsage(), start = performance.now();
  await work();
  const perSecond = Math.round(n / (performance.now() - start) * 1_000);
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond, cpuUs: Math.round((user + system) / n) };
}

/** Appends `n` events from 64 callers and waits until `deliveries` of them are recorded. */
async function appendAndDeliver(world: World, n: number, deliveries: number): Promise<void> {
  const delivered = world.until(deliveries);
  await inParallel(n, CALLERS, world.append);
  await delivered;
}

/** Durable appends through the owner actor while nothing is delivered. What it left due is delivered afterwards, untimed. */
export async function append({ file, origin, n }: PhaseOptions): Promise<Found> {
  const world = await openWorld({ file, origin, paths: ["/hook/0"], hotHandOff: false });
  const warm = warmUp(n);
  await inParallel(warm, CALLERS, world.append);
  const waits: number[] = [];
  const rate = await timed(n, () =>
    inParallel(n, CALLERS, async (i) => {
      const start = performance.now();
      await world.append(i);
      waits.push(performance.now() - start);
    }));
  const delivered = world.until(n + warm);
  await world.system.start();
  await delivered;
  await world.close();
  const { p50, p99 } = spread(waits);
  return { ...rate, p50Ms: p50, p99Ms: p99 };
}

/** Append and deliver together, from the first append to the last recorded attempt. */
export async function flood({ file, origin, n }: PhaseOptions): Promise<Found> {
  const world = await openWorld({ file, origin, paths: ["/hook/0"] });
  await world.system.start();
  await appendAndDeliver(world, warmUp(n), warmUp(n));
  await forget(origin);
  const rate = await timed(n, () => appendAndDeliver(world, n, n));
  await confirm(origin, n);
  await world.close();
  return { ...rate, rssMb: rss() };
}

/** Leaves `n` events due for an endpoint that never answers. */
export async function due({ file, origin, n }: PhaseOptions): Promise<Found> {
  const world = await openWorld({ file, origin, paths: ["/hold/0"], hotHandOff: false });
  await inParallel(n, CALLERS, world.append);
  await world.close();
  return { events: n };
}

/**
 * A backlog that is due, by the clock of the receiver: from the first receipt behind a warm-up to the last one, as the peers are
 * measured. The CPU time is that of the whole backlog.
 */
export async function drain({ file, origin, n }: PhaseOptions): Promise<Found> {
  const warm = warmUp(n), all = n + warm;
  const world = await openWorld({ file, origin, paths: ["/hook/0"], hotHandOff: false });
  await inParallel(all, CALLERS, world.append);
  await forget(origin);
  const delivered = world.until(all);
  const { cpuUs } = await timed(all, async () => {
    await world.system.start();
    await delivered;
  });
  const { first, last } = await confirm(origin, all, warm);
  await world.close();
  return { perSecond: Math.round(n / (last - first) * 1_000), cpuUs, rssMb: rss() };
}

/** One event to ten endpoints; `n` deliveries in all. */
export async function fan({ file, origin, n }: PhaseOptions): Promise<Found> {
  const paths = Array.from({ length: FAN }, (_, i) => `/hook/${i}`);
  const world = await openWorld({ file, origin, paths });
  await world.system.start();
  const events = Math.ceil(n / FAN), warm = warmUp(events);
  await appendAndDeliver(world, warm, warm * FAN);
  await forget(origin);
  const rate = await timed(events * FAN, () => appendAndDeliver(world, events, events * FAN));
  await confirm(origin, events * FAN);
  await world.close();
  return { ...rate, rssMb: rss() };
}

const rss = (): number => Math.round(Deno.memoryUsage().rss / 1e6);

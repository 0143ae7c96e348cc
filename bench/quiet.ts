/** Waits for the machine: what one side left to be written or tidied up must not be paid for by the next. */
import { sleep } from "./payload.ts";

const LOOK_MS = 500;
/** Share of one core that may be busy. */
const BUSY = 0.15;

/** Resolves when dirty pages are on disk and the machine is idle, after `atMostMs` in any case. */
export async function quiet(atMostMs: number): Promise<void> {
  if (atMostMs === 0) return;
  const until = performance.now() + atMostMs;
  await new Deno.Command("sync").output();
  while (performance.now() < until) {
    const before = busyMs();
    await sleep(LOOK_MS);
    if ((busyMs() - before) / LOOK_MS < BUSY) return;
  }
}

/** Time all cores were busy since the machine started, ms: everything but idle and waiting for the disk. */
function busyMs(): number {
  const [, ...ticks] = Deno.readTextFileSync("/proc/stat").split("\n")[0]!.split(/\s+/);
  const [user, nice, system, , , irq, softirq] = ticks.map(Number);
  return (user! + nice! + system! + irq! + softirq!) * 10;
}

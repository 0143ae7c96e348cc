/**
 * A real `main.ts` is killed with SIGKILL while it delivers, and started again at once: ms from the kill to the first
 * re-delivery of what it had in flight. The endpoint takes requests and never answers, so every attempt is in flight.
 */
import { Buffer } from "node:buffer";
import { answerOf, deno, lineOf, stop } from "./children.ts";
import type { Found } from "./engine.ts";
import { nowMs, sleep } from "./payload.ts";
import { stats } from "./roles/receipts.ts";
import { HASH_KEY, MASTER_KEY } from "./world.ts";

const EVENTS = 40;
const IN_FLIGHT = 10;
const GIVE_UP_MS = 90_000;

export async function recovery({ file, origin }: { file: string; origin: string }): Promise<Found> {
  await answerOf(deno("bench/engine.ts", ["due", JSON.stringify({ file, origin, n: EVENTS, seconds: 0 })]));
  const first = await startService(file, origin);
  while ((await stats(origin)).unique < IN_FLIGHT) await sleep(10);
  const killed = nowMs();
  await stop(first, "SIGKILL");
  const second = await startService(file, origin);
  let found = await stats(origin);
  while (found.firstRepeat === 0) {
    if (nowMs() - killed > GIVE_UP_MS) {
      throw new Error("Cannot measure the recovery: nothing came again in 90 s");
    }
    await sleep(20);
    found = await stats(origin);
  }
  await stop(second, "SIGKILL");
  return { ms: Math.round(found.firstRepeat - killed) };
}

async function startService(file: string, origin: string): Promise<Deno.ChildProcess> {
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
  const child = deno("main.ts", [], {
    PM_ENV: "local",
    PM_PORT: "0",
    PM_KV_PATH: file,
    PM_MASTER_KEY: base64(MASTER_KEY),
    PM_HASH_KEY: base64(HASH_KEY),
    PM_KEY_PEPPER: base64(new Uint8Array(32).fill(11)),
    PM_ALLOWED_TARGETS: new URL(origin).host,
  });
  await lineOf(child, /started/);
  return child;
}

/**
 * Patience with a store file that another process writes to: `pmail` beside the service, or two services. SQLite answers
 * "database is locked" at once, without waiting, when somebody else committed between the checks and the writes of an
 * `atomic()`, or while a file is being made; and after 5 s of its own when another one keeps the file. Nothing was written
 * then, so the same commit may be tried again (J2, D4).
 */
import { SECOND_MS } from "../limits.ts";
import type { TimerId, Timers } from "./ports.ts";
import { storeFault } from "./store_fault.ts";

/** After the first refusal: less than the 5 s SQLite itself waits, so that a file which is kept is waited for twice. */
const PATIENCE_MS = 4 * SECOND_MS;
/** The other one holds the file for an fsync. */
const MAX_PAUSE_MS = 10;

/** Runs `work` until the file is not locked; 4 s after the first refusal the next one comes out. */
export async function patiently<T>(work: () => Promise<T>, timers: Timers): Promise<T> {
  let limit: TimerId | null = null, over = false;
  try {
    for (let tries = 1;; tries++) {
      try {
        return await work();
      } catch (error) {
        if (storeFault(error) !== "locked" || over) throw error;
      }
      limit ??= timers.after(PATIENCE_MS, () => over = true);
      await new Promise<void>((resolve) => timers.after(Math.min(tries, MAX_PAUSE_MS), resolve));
    }
  } finally {
    if (limit !== null) timers.cancel(limit);
  }
}

/** The same store, whose commits are patient. */
export function patient(kv: Deno.Kv, timers: Timers): Deno.Kv {
  const begin = kv.atomic.bind(kv);
  kv.atomic = () => {
    const operation = begin();
    const commit = operation.commit.bind(operation);
    operation.commit = () => patiently(commit, timers);
    return operation;
  };
  return kv;
}

/**
 * Patience with a store file that another process writes to: `pmail` beside the service, or two services. SQLite answers
 * "database is locked" at once, without waiting, when somebody else committed between the checks and the writes of an
 * `atomic()`, or while a file is being made. Nothing was written then, so the same commit may be tried again; it is the
 * one error of a commit of which that is certain (J2, D4).
 */
import { SECOND_MS } from "../limits.ts";
import type { Timers } from "./ports.ts";

/** As long as SQLite itself waits for a lock. */
const PATIENCE_MS = 5 * SECOND_MS;
/** The other one holds the file for an fsync. */
const MAX_PAUSE_MS = 10;

/** Runs `work` until the file is not locked; after 5 s of pauses the error comes out. */
export async function patiently<T>(work: () => Promise<T>, timers: Timers): Promise<T> {
  for (let tries = 1, waited = 0;; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isLocked(error) || waited >= PATIENCE_MS) throw error;
    }
    const ms = Math.min(tries, MAX_PAUSE_MS);
    waited += ms;
    await new Promise<void>((resolve) => timers.after(ms, resolve));
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

const isLocked = (error: unknown): boolean =>
  error instanceof Error && error.message.includes("database is locked");

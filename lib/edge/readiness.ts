/** `GET /ready`: whether this instance can take work, each thing it needs with what is wrong in words. */
import { keys } from "../keys.ts";
import { HEARTBEAT_DEAD_AFTER_MS, SECOND_MS } from "../limits.ts";
import type { Kv } from "./kv.ts";
import type { Timers } from "./ports.ts";

export interface Check {
  name: "store" | "heartbeat" | "work";
  ok: boolean;
  message: string;
}

export interface ReadinessDeps {
  kv: Kv;
  now(): number;
  timers: Timers;
  /** Whose heartbeat row is looked at. */
  instance: string;
  /** False while it starts and stops. */
  working(): boolean;
}

const ANSWER_WITHIN_MS = 2 * SECOND_MS;

/** Never rejects and takes at most 2 s: a store that hangs is an answer, too. */
export async function readiness(d: ReadinessDeps): Promise<Check[]> {
  const beat = await read(d);
  return [store(beat), heartbeat(beat, d.now()), work(d.working())];
}

type Beat = { at: number | null } | { fault: string };

async function read({ kv, timers, instance }: ReadinessDeps): Promise<Beat> {
  const late = Promise.withResolvers<Beat>();
  const fault = `has not answered within ${ANSWER_WITHIN_MS / SECOND_MS} s`;
  const timer = timers.after(ANSWER_WITHIN_MS, () => late.resolve({ fault }));
  const row = kv.get<{ at: number }>(keys.heartbeat(instance)).then(
    ({ value }): Beat => ({ at: value?.at ?? null }),
    (error): Beat => ({ fault: `refuses to be read (${error instanceof Error ? error.name : "unknown"})` }),
  );
  const beat = await Promise.race([row, late.promise]);
  timers.cancel(timer);
  return beat;
}

function store(beat: Beat): Check {
  return "fault" in beat
    ? { name: "store", ok: false, message: `The store ${beat.fault}.` }
    : { name: "store", ok: true, message: "The store answers." };
}

/** Every second the instance writes a row: while it is fresh, the store takes writes and this process is not starved. */
function heartbeat(beat: Beat, now: number): Check {
  const check = (ok: boolean, message: string): Check => ({ name: "heartbeat", ok, message });
  if ("fault" in beat) return check(false, "The sign of life cannot be read.");
  if (beat.at === null) {
    return check(false, "There is no sign of life: the instance is starting or has ended.");
  }
  const age = now - beat.at;
  if (age <= HEARTBEAT_DEAD_AFTER_MS) return check(true, "The store takes writes.");
  const seconds = Math.round(age / SECOND_MS);
  return check(
    false,
    `The last sign of life is ${seconds} s old: the store takes no writes, or the process is starved.`,
  );
}

function work(working: boolean): Check {
  return working
    ? { name: "work", ok: true, message: "Events are taken and delivered." }
    : { name: "work", ok: false, message: "The instance is starting or stopping." };
}

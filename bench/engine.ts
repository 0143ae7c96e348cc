/**
 * One measured phase in a process of its own, so that memory and compiled code are its own:
 * `deno run -A bench/engine.ts <role> <options as JSON>`. Prints one JSON line.
 */
import { seed } from "./roles/backlog.ts";
import { memory } from "./roles/memory.ts";
import { noisy, steady } from "./roles/latency.ts";
import { append, drain, due, fan, flood } from "./roles/throughput.ts";

export interface PhaseOptions {
  /** KV file; made when it is not there. */
  file: string;
  /** The receiver's origin. */
  origin: string;
  /** Events, or seeded rows. */
  n: number;
  /** Length of a phase that runs by time, seconds. */
  seconds: number;
}

/** What a phase found, by name; numbers in the unit the name says. */
export type Found = Record<string, number>;

const ROLES: Record<string, (options: PhaseOptions) => Promise<Found>> = {
  append,
  flood,
  drain,
  fan,
  steady,
  calm: (options) => noisy(options, false),
  noisy: (options) => noisy(options, true),
  due,
  seed,
  memory,
};

if (import.meta.main) {
  const [name = "", options = "{}"] = Deno.args;
  const role = ROLES[name];
  if (role === undefined) {
    throw new Error(`Cannot run "${name}": the roles are ${Object.keys(ROLES).join(", ")}.`);
  }
  console.log(JSON.stringify(await role(JSON.parse(options))));
  Deno.exit(0);
}

/** What the commands share: reading options, and the store they work on. */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { type Committer, makeCommitter } from "../../lib/edge/committer.ts";
import { type Config, loadConfig } from "../../lib/edge/config.ts";
import { openKv } from "../../lib/edge/open_kv.ts";
import { realIds, realNow, realRandom, realTimers } from "../../lib/edge/ports.ts";
import type { Ids } from "../../lib/ids.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { migrate } from "../../migrations/runner.ts";

/** The command line is wrong: exit code 2. */
export class CommandLineError extends Error {}

export interface Store {
  config: Config;
  kv: Deno.Kv;
  committer: Committer;
  ids: Ids;
}

/** The options of a command, unknown ones refused. */
export function options<T extends NonNullable<ParseArgsConfig["options"]>>(args: string[], known: T) {
  try {
    return parseArgs({ args, options: known, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new CommandLineError((error as Error).message);
  }
}

/** Opens the configured store, brings it to this version, and closes it after `work`. */
export async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const config = await loadConfig(realRandom);
  const { kv, maxInFlight } = await openKv(config.kvPath);
  try {
    const ids = realIds();
    await migrate(MIGRATIONS, { kv, now: realNow, timers: realTimers, instance: ids.ulid() });
    return await work({ config, kv, committer: makeCommitter(kv, { maxInFlight }), ids });
  } finally {
    kv.close();
  }
}

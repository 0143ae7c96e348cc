/**
 * Brings the store to the version of the code, at start: numbered migrations, each in resumable steps. A step's writes,
 * the cursor after it and the lease it ran under are one commit, so a killed runner goes on where it was, no step counts
 * twice, and of several processes that start at once one migrates while the others wait.
 */
import { writeAll } from "../lib/edge/commit_batch.ts";
import { takeLease } from "../lib/edge/lease.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { Timers } from "../lib/edge/ports.ts";
import { invariant } from "../lib/errors.ts";
import { keys, schemaRow } from "../lib/keys.ts";

/** What one step did: its writes, and where the next one goes on. `done` ends the migration. */
export type StepResult = { writes: Write[]; cursor: unknown } | { writes: Write[]; done: true };

export interface Migration {
  /** 1, 2, 3 …: the store's version once it is done. */
  version: number;
  name: string;
  /** A bounded piece of work that fits one commit. `cursor` is null at first. It only reads; the runner writes. */
  step(kv: Kv, cursor: unknown): Promise<StepResult>;
}

export interface MigrateDeps {
  kv: Kv;
  now(): number;
  timers: Timers;
  instance: string;
}

/** A runner that died keeps others waiting this long. */
const LEASE_MS = 10_000;
const POLL_MS = 250;

/** The store was written by newer code. */
export class SchemaTooNewError extends Error {
  override name = "SchemaTooNewError";
  constructor(found: number, known: number) {
    super(
      `Cannot start: the store has version ${found}, this code knows ${known}. ` +
        "Start the newer release, or restore the backup made before it.",
    );
  }
}

/**
 * Runs what is missing; resolves to the version reached. Waits while another process migrates. Throws
 * `SchemaTooNewError`, and what a step throws (the next start resumes there).
 */
export async function migrate(migrations: readonly Migration[], deps: MigrateDeps): Promise<number> {
  migrations.forEach((m, i) => invariant(m.version === i + 1, "migrations are numbered 1, 2, 3 …"));
  for (;;) {
    const { version } = await readSchema(deps.kv);
    if (version > migrations.length) throw new SchemaTooNewError(version, migrations.length);
    if (version === migrations.length) return version;
    await runUnderLease(migrations, deps);
  }
}

async function readSchema(kv: Kv) {
  const entry = await kv.get(keys.schema());
  const row = entry.value === null ? { version: 0 } : schemaRow.parse(entry.value);
  return { ...row, versionstamp: entry.versionstamp };
}

/** Steps until all is done or the lease is lost; without the lease, waits a moment. */
async function runUnderLease(migrations: readonly Migration[], deps: MigrateDeps): Promise<void> {
  const lease = await takeLease("migrations", LEASE_MS, deps);
  if (!lease) return await pause(deps.timers);
  try {
    for (;;) {
      const schema = await readSchema(deps.kv);
      const migration = migrations[schema.version];
      if (!migration || !await lease.renew()) return;
      const result = await migration.step(deps.kv, schema.cursor ?? null);
      const row = "done" in result
        ? { version: migration.version }
        : { version: schema.version, cursor: result.cursor };
      const operation = deps.kv.atomic()
        .check(lease.check())
        .check({ key: keys.schema(), versionstamp: schema.versionstamp });
      writeAll(operation, result.writes);
      if (!(await operation.set(keys.schema(), row).commit()).ok) return;
    }
  } finally {
    await lease.release();
  }
}

const pause = (timers: Timers): Promise<void> =>
  new Promise((resolve) => void timers.after(POLL_MS, resolve));

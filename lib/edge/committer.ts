/** Contract of the committer; the implementation follows. */
import type { Check, Write } from "./kv.ts";

/** An independent all-or-nothing change. */
export interface Unit {
  checks: Check[];
  writes: Write[];
  /** Handed to `combine` with those of the units that share the commit (events that want one Fanout job row). */
  carry?: readonly unknown[];
}

/** `ok: false`: a check failed and nothing of the unit was written. A KV failure rejects: the result is then unknown. */
export type Settled = { ok: true; versionstamp: string } | { ok: false };

export interface Committer {
  commit(unit: Unit): Promise<Settled>;
  /** Resolves when nothing is waiting or in flight. */
  idle(): Promise<void>;
}

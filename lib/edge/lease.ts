/**
 * Leases: one holder at a time for a name, across processes, for as long as it renews. A commit that carries the lease's
 * check is fenced: it fails once the lease is in other hands.
 */
import { keys, leaseRow } from "../keys.ts";
import type { Check, Kv } from "./kv.ts";

export interface LeaseDeps {
  kv: Kv;
  now(): number;
  /** Names the holder in the row: the instance's id. */
  instance: string;
}

export interface Lease {
  /** Unix ms when it ends unless renewed. */
  readonly until: number;
  /** Fences a commit: it fails if the lease was lost. */
  check(): Check;
  /** Another `ttlMs` from now. False: it is lost. */
  renew(): Promise<boolean>;
  /** Gives it up, so the next one need not wait. Does nothing if it is lost already. */
  release(): Promise<void>;
}

/** Takes the lease, or null while another holds it. `ttlMs` is how long a holder that died keeps others out. */
export async function takeLease(name: string, ttlMs: number, deps: LeaseDeps): Promise<Lease | null> {
  const { kv, now, instance } = deps;
  const key = keys.lease(name);
  const entry = await kv.get(key);
  const row = leaseRow.safeParse(entry.value);
  // A row that cannot be read holds nobody out: the check below still lets only one replace it.
  const left = row.success ? row.data.until - now() : 0;
  // More is left than anybody takes: the clock went back since, and a holder that died would keep others out for as long.
  if (left > 0 && left <= 2 * ttlMs) return null;

  let versionstamp = entry.versionstamp;
  let until = 0;
  const renew = async (): Promise<boolean> => {
    const next = now() + ttlMs;
    const result = await kv.atomic().check({ key, versionstamp }).set(key, { by: instance, until: next })
      .commit();
    if (!result.ok) return false;
    versionstamp = result.versionstamp;
    until = next;
    return true;
  };
  if (!await renew()) return null;
  return {
    get until() {
      return until;
    },
    check: () => ({ key, versionstamp }),
    renew,
    release: async () => {
      await kv.atomic().check({ key, versionstamp }).delete(key).commit();
    },
  };
}

/** The faults of the store, drawn from a seed. Each seed has its own mix, so that rare pairs of faults meet (swarm testing). */
import type { Rng } from "./rng.ts";
import type { Tally } from "./tally.ts";

export type StoreFault =
  /** `{ ok: false }` though every check holds. */
  | "conflict"
  /** Throws; nothing was written. */
  | "throw_before"
  /** Written, then throws: the caller cannot know. */
  | "throw_after"
  /** Throws; written a while later. */
  | "throw_late"
  /** A read that throws. */
  | "read_throws"
  | "slow"
  /** The isolate dies with its commit not written, or written. */
  | "crash_before"
  | "crash_after";

export type BellFault = "bell_dropped" | "bell_repeated";

const RATES: Record<StoreFault, number> = {
  conflict: 0.08,
  throw_before: 0.05,
  throw_after: 0.05,
  throw_late: 0.03,
  read_throws: 0.02,
  slow: 0.04,
  crash_before: 0.004,
  crash_after: 0.004,
};

export class Weather {
  calm = false;
  /** Until when every operation throws, monotonic ms. */
  outageUntil = -1;
  #rates: Record<StoreFault, number>;
  #bells: Record<BellFault, number>;

  constructor(readonly rng: Rng, readonly tally: Tally, severity: number) {
    const rates = { ...RATES };
    for (const kind of Object.keys(rates) as StoreFault[]) {
      rates[kind] = rng.chance(0.5) ? rates[kind] * severity : 0;
    }
    this.#rates = rates;
    this.#bells = { bell_dropped: rng.chance(0.5) ? 0.3 : 0, bell_repeated: rng.chance(0.5) ? 0.2 : 0 };
  }

  commit(hasChecks: boolean, mono: number): StoreFault | null {
    if (this.calm) return null;
    if (mono < this.outageUntil) return this.#hit(this.rng.chance(0.2) ? "throw_after" : "throw_before");
    let at = this.rng.unit();
    for (const kind of COMMIT_FAULTS) {
      if ((at -= this.#rates[kind]) >= 0) continue;
      return kind === "conflict" && !hasChecks ? null : this.#hit(kind);
    }
    return null;
  }

  read(mono: number): "read_throws" | "slow" | null {
    if (this.calm) return null;
    if (mono < this.outageUntil || this.rng.chance(this.#rates.read_throws)) return this.#hit("read_throws");
    return this.rng.chance(this.#rates.slow) ? this.#hit("slow") : null;
  }

  bell(): BellFault | null {
    if (this.calm) return null;
    const at = this.rng.unit();
    if (at < this.#bells.bell_dropped) return this.#hit("bell_dropped");
    return at < this.#bells.bell_dropped + this.#bells.bell_repeated ? this.#hit("bell_repeated") : null;
  }

  #hit<K extends StoreFault | BellFault>(kind: K): K {
    this.tally.count(kind);
    return kind;
  }
}

const COMMIT_FAULTS = [
  "conflict",
  "throw_before",
  "throw_after",
  "throw_late",
  "slow",
  "crash_before",
  "crash_after",
] as const;

/** Time that moves when a test says so: one clock for all isolates of a world, timers in order, and who set them. */
import type { TimerId, Timers } from "../../lib/edge/ports.ts";

export const START = Date.UTC(2026, 9, 1);

interface Due {
  id: number;
  at: number;
  run(): void;
  group: object;
}

export class ManualTime {
  now = START;
  #next = 1;
  readonly #due = new Map<number, Due>();

  /** The timers of one isolate: dropped together when it crashes. */
  group(): { timers: Timers; drop(): void; pending(): number } {
    const group = {};
    const mine = () => [...this.#due.values()].filter((due) => due.group === group);
    const timers: Timers = {
      after: (ms, run) => {
        const id = this.#next++;
        this.#due.set(id, { id, at: this.now + Math.max(0, ms), run, group });
        return id as unknown as TimerId;
      },
      cancel: (id) => void this.#due.delete(id as unknown as number),
    };
    return {
      timers,
      drop: () => mine().forEach((due) => this.#due.delete(due.id)),
      pending: () => mine().length,
    };
  }

  /** Runs the earliest timer due by `end`, at its time; false when there is none. */
  step(end: number): boolean {
    let first: Due | null = null;
    for (const due of this.#due.values()) {
      if (due.at <= end && (first === null || due.at < first.at)) first = due;
    }
    if (first === null) return false;
    this.#due.delete(first.id);
    this.now = Math.max(this.now, first.at);
    first.run();
    return true;
  }

  /** Leaps to `end` as a suspended machine does: what is due by then runs once, late. */
  jump(end: number): void {
    this.now = Math.max(this.now, end);
    const late = [...this.#due.values()].filter((due) => due.at <= end).sort((a, b) => a.at - b.at);
    for (const due of late) if (this.#due.delete(due.id)) due.run();
  }
}

/** A small seeded generator (mulberry32), uniform in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

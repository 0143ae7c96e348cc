/**
 * Virtual time. Two clocks: the monotonic one that timers run on, and the wall clock, which may jump ahead of it. Between two
 * timers every microtask runs to its end, as in a real event loop, so a run depends on its seed alone.
 */
import type { TimerId, Timers } from "../lib/edge/ports.ts";

/** 2026-11-05T00:00:00Z: any fixed day will do. */
const EPOCH_MS = Date.UTC(2026, 10, 5);

interface Timer {
  at: number;
  /** Breaks ties: timers of one instant run in the order they were set. */
  order: number;
  run: (() => void) | null;
}

export class SimClock implements Timers {
  /** Monotonic ms since the run began. */
  mono = 0;
  /** How far the wall clock has jumped back in all, ms. */
  jumpedBack = 0;
  #ahead = 0;
  #order = 0;
  #heap: Timer[] = [];

  /** Unix ms. */
  readonly now = (): number => EPOCH_MS + this.mono + this.#ahead;

  /** The wall clock moves on without the timers. */
  jump(ms: number): void {
    this.#ahead += ms;
    this.jumpedBack += Math.max(0, -ms);
  }

  readonly after = (ms: number, run: () => void): TimerId => {
    const timer: Timer = { at: this.mono + Math.max(0, ms), order: this.#order++, run };
    push(this.#heap, timer);
    return timer as unknown as TimerId;
  };

  readonly cancel = (id: TimerId): void => {
    (id as unknown as Timer).run = null;
  };

  /** Runs all timers of the next `ms`, or until `done` says so. */
  async run(ms: number, done: () => boolean = () => false): Promise<void> {
    const end = this.mono + ms;
    await settled();
    while (!done()) {
      const next = this.#heap[0];
      if (next === undefined || next.at > end) {
        this.mono = end;
        return;
      }
      pop(this.#heap);
      if (next.run === null) continue;
      this.mono = Math.max(this.mono, next.at);
      next.run();
      await settled();
    }
  }
}

/** Every microtask that is waiting, and those they start, have run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const before = (a: Timer, b: Timer) => a.at < b.at || a.at === b.at && a.order < b.order;

function push(heap: Timer[], timer: Timer): void {
  let i = heap.push(timer) - 1;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (!before(timer, heap[parent]!)) break;
    heap[i] = heap[parent]!;
    i = parent;
  }
  heap[i] = timer;
}

function pop(heap: Timer[]): void {
  const last = heap.pop()!;
  if (heap.length === 0) return;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
    if (!before(heap[child]!, last)) break;
    heap[i] = heap[child]!;
    i = child;
  }
  heap[i] = last;
}

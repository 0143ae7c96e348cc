/**
 * Deadlines of everything in flight on ONE timer: it is armed for the earliest and, as each deadline lies as far ahead as
 * the next, it fires once in many requests. A timer and an AbortController per POST would cost more than the POST's own code.
 */
import type { TimerId, Timers } from "./ports.ts";

export interface Deadlined {
  /** On the same clock as `Deadlines`. */
  readonly deadline: number;
  expire(): void;
}

export class Deadlines {
  readonly #open = new Set<Deadlined>();
  #timer: TimerId | null = null;
  #armedFor = Infinity;

  /** @param clock monotonic ms */
  constructor(readonly timers: Timers, readonly clock: () => number) {}

  add(item: Deadlined): void {
    this.#open.add(item);
    if (item.deadline < this.#armedFor) this.#arm(item.deadline);
  }

  /** The timer stays armed: the next request will want it, and firing for nothing is cheap. */
  delete(item: Deadlined): void {
    this.#open.delete(item);
  }

  /** Everything still open, for a stop. */
  get open(): Iterable<Deadlined> {
    return [...this.#open];
  }

  close(): void {
    if (this.#timer !== null) this.timers.cancel(this.#timer);
    this.#timer = null;
    this.#armedFor = Infinity;
    this.#open.clear();
  }

  #arm(at: number): void {
    if (this.#timer !== null) this.timers.cancel(this.#timer);
    this.#armedFor = at;
    this.#timer = this.timers.after(Math.max(0, Math.ceil(at - this.clock())), () => this.#fire());
  }

  #fire(): void {
    this.#timer = null;
    this.#armedFor = Infinity;
    const now = this.clock();
    let next = Infinity;
    for (const item of [...this.#open]) {
      if (item.deadline > now) next = Math.min(next, item.deadline);
      else {
        this.#open.delete(item);
        item.expire();
      }
    }
    // An expiry may have added and armed an item already.
    if (next < this.#armedFor) this.#arm(next);
  }
}

/** The store's queue: messages with a delay, each handed to one listener of any isolate, some dropped, some twice. */
import type { Timers } from "../lib/edge/ports.ts";
import type { Rng } from "./rng.ts";
import type { BellFault } from "./weather.ts";

interface Listener {
  owner: object;
  handler(message: unknown): unknown;
  ended(): void;
}

export interface BellsDeps {
  timers: Timers;
  rng: Rng;
  fault(): BellFault | null;
  /** Told of each message that is handed out. */
  rang(): void;
}

const MAX_LATENESS_MS = 60;

export class Bells {
  #listeners: Listener[] = [];

  constructor(readonly d: BellsDeps) {}

  listen(owner: object, handler: (message: unknown) => unknown, ended: () => void): void {
    this.#listeners.push({ owner, handler, ended });
  }

  leave(owner: object): void {
    for (const listener of this.#listeners) if (listener.owner === owner) listener.ended();
    this.#listeners = this.#listeners.filter((listener) => listener.owner !== owner);
  }

  add(messages: readonly { value: unknown; delay: number }[]): void {
    for (const { value, delay } of messages) {
      const late = this.d.rng.int(MAX_LATENESS_MS);
      this.d.timers.after(delay + late, () => this.#deliver(value));
    }
  }

  #deliver(value: unknown): void {
    const fault = this.d.fault();
    if (fault === "bell_dropped" || this.#listeners.length === 0) return;
    if (fault === "bell_repeated") this.d.timers.after(this.d.rng.int(5_000), () => this.#hand(value));
    this.#hand(value);
  }

  #hand(value: unknown): void {
    if (this.#listeners.length === 0) return;
    this.d.rang();
    void this.d.rng.pick(this.#listeners).handler(value);
  }
}

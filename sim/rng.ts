/** Seeded randomness: every choice of a run comes from one number, in streams that do not disturb each other. */
import type { Random } from "../lib/edge/ports.ts";

/** One stream. `fork` starts another from a label: dropping a step of one stream leaves the choices of the rest. */
export class Rng implements Random {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  fork(label: string): Rng {
    let hash = (2166136261 ^ this.seed) >>> 0;
    for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 16777619) >>> 0;
    const mixed = new Rng(hash);
    mixed.unit();
    return new Rng(Math.floor(mixed.unit() * 2 ** 32));
  }

  /** Uniform in [0, 1): mulberry32. */
  unit(): number {
    let t = this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Uniform among 0 … n − 1. */
  int(n: number): number {
    return Math.floor(this.unit() * n);
  }

  /** Uniform among low … high, both included. */
  between(low: number, high: number): number {
    return low + this.int(high - low + 1);
  }

  chance(p: number): boolean {
    return this.unit() < p;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(from.length)]!;
  }

  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const names = Object.keys(weights) as T[];
    let at = this.unit() * names.reduce((sum, name) => sum + weights[name], 0);
    for (const name of names) if ((at -= weights[name]) < 0) return name;
    return names.at(-1)!;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length }, () => this.int(256));
  }
}

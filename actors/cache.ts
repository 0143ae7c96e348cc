/** A small cache of loads in flight or done: concurrent callers share one load, a failed load is not kept. */
export class Cache<K, V> {
  #entries = new Map<K, { value: Promise<V>; until: number }>();

  constructor(readonly now: () => number, readonly ttlMs: number, readonly maxEntries = 10_000) {}

  get(key: K, load: () => Promise<V>): Promise<V> {
    const hit = this.#entries.get(key);
    const now = this.now();
    // Neither too old nor, where the clock went back, from a time to come.
    if (hit !== undefined && hit.until > now && hit.until <= now + this.ttlMs) return hit.value;
    const entry = { value: load(), until: now + this.ttlMs };
    if (this.#entries.size >= this.maxEntries) this.#entries.clear();
    this.#entries.set(key, entry);
    entry.value.catch(() => this.#entries.get(key) === entry && this.#entries.delete(key));
    return entry.value;
  }

  clear(): void {
    this.#entries.clear();
  }
}

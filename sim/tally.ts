/** "Sometimes" counters: what must have happened at least once over a batch of seeds, or the batch proves little. */
export class Tally {
  readonly counts = new Map<string, number>();

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  add(other: Iterable<[string, number]>): void {
    for (const [what, by] of other) this.count(what, by);
  }

  missing(required: readonly string[]): string[] {
    return required.filter((what) => !this.counts.get(what));
  }
}

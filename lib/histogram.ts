/** Durations in buckets that each end a quarter above the one before: 1 ms to weeks in under 100 counters. Pure. */

const FACTOR = 1.25;
const LOG = Math.log(FACTOR);
/** Some 28 days; what took longer counts as that. */
const MAX_BUCKET = 97;

/** The bucket of a duration in ms: `i` holds what is over `FACTOR ** (i - 1)` and at most `FACTOR ** i`. */
export function bucketOf(ms: number): number {
  return ms <= 1 ? 0 : Math.min(MAX_BUCKET, Math.ceil(Math.log(ms) / LOG - 1e-9));
}

/** Counts one duration; the list grows as it needs to. */
export function countDuration(into: number[], ms: number): void {
  const bucket = bucketOf(ms);
  while (into.length <= bucket) into.push(0);
  into[bucket]! += 1;
}

/** Adds one histogram to another. */
export function addHistogram(into: number[], from: readonly number[]): void {
  for (const [i, count] of from.entries()) {
    if (into.length <= i) into.push(0);
    into[i]! += count;
  }
}

/** The q-quantile in ms, within a quarter of the true one; null of nothing. @param q in (0, 1] */
export function quantile(histogram: readonly number[], q: number): number | null {
  const total = histogram.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = Math.max(1, Math.ceil(q * total));
  for (const [i, count] of histogram.entries()) {
    if (left > count) {
      left -= count;
      continue;
    }
    const low = i === 0 ? 0 : FACTOR ** (i - 1);
    return Math.round(low + (FACTOR ** i - low) * left / count);
  }
  return null;
}

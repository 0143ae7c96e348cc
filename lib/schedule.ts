/** The retry schedule (reference §4, J4): when the next attempt comes after the k-th failed. Pure. */
import { HOUR_MS, MAX_ATTEMPTS, MAX_DELAY_S, MAX_RETRY_AFTER_MS, MINUTE_MS, SECOND_MS } from "./limits.ts";
import { invariant } from "./errors.ts";

/** After attempt k fails: `DELAYS_MS[k - 1]`, before jitter. About 72 hours in all. */
export const DELAYS_MS: readonly number[] = [
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  1 * HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
  12 * HOUR_MS,
  12 * HOUR_MS,
  12 * HOUR_MS,
  19 * HOUR_MS,
];
invariant(DELAYS_MS.length === MAX_ATTEMPTS - 1, "J4");

const JITTER = 0.1;

/**
 * Milliseconds until the next attempt, or null after the last.
 *
 * @param k Which attempt of this run failed: `attempt − first_attempt + 1`.
 * @param unit Uniform in [0, 1): the jitter of ±10 %.
 * @param retryAfterMs What the receiver asked for (429, 503): never earlier than that, at most 24 h.
 * @param scale `PM_RETRY_SCALE`, in (0, 1]: shortens the schedule in development. Retry-After is not scaled.
 */
export function nextDelayMs(k: number, unit: number, retryAfterMs = 0, scale = 1): number | null {
  const base = DELAYS_MS[k - 1];
  if (base === undefined) return null;
  const jittered = base * (1 - JITTER + 2 * JITTER * unit);
  const seconds = Math.min(Math.round(jittered / SECOND_MS), MAX_DELAY_S);
  const asked = Math.ceil(Math.min(Math.max(retryAfterMs, 0), MAX_RETRY_AFTER_MS) / SECOND_MS) * SECOND_MS;
  return Math.max(Math.round(seconds * SECOND_MS * scale), asked);
}

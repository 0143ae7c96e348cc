/** The arithmetic of the retry schedule at its roundings (reference §4: whole seconds, and ±10 %). */
import fc from "fast-check";
import assert from "node:assert/strict";
import { DELAYS_MS, nextDelayMs } from "../../lib/schedule.ts";
import { runs } from "./runs.ts";

Deno.test("j4_retry_schedule: half a second and more goes up, less goes down, before the scale and after it", () => {
  const table: [unit: number, scale: number, ms: number][] = [
    [0.6, 1, 31_000], // 30.6 s
    [0.56, 1, 30_000], // 30.36 s
    [0.6, 0.01, 310],
    [0.6, 0.0005, 16], // 15.5 ms
    [0.5, 0.00004, 1],
    [0.5, 0.01, 300],
  ];
  for (const [unit, scale, ms] of table) {
    assert.equal(nextDelayMs(1, unit, undefined, scale), ms, `${unit} ${scale}`);
  }
});

Deno.test("j4_retry_schedule: any jitter is the nearest whole second to the delay it stands for", () => {
  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: DELAYS_MS.length }), unit, (k, unit) => {
      const exact = DELAYS_MS[k - 1]! * (0.9 + 0.2 * unit);
      assert.ok(Math.abs(nextDelayMs(k, unit)! - exact) <= 500.001);
    }),
    runs(500),
  );
});

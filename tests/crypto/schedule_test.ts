import fc from "fast-check";
import assert from "node:assert/strict";
import { HOUR_MS, MAX_DELAY_S, SECOND_MS } from "../../lib/limits.ts";
import { nextDelayMs } from "../../lib/schedule.ts";

/** Reference §4, in seconds. */
const TABLE = [30, 120, 600, 1800, 3600, 7200, 14400, 28800, 43200, 43200, 43200, 68400];

Deno.test("j4_retry_schedule: 13 attempts at the delays ±10 %, then dead", () => {
  TABLE.forEach((seconds, i) => {
    assert.equal(nextDelayMs(i + 1, 0.5), seconds * SECOND_MS);
    assert.equal(nextDelayMs(i + 1, 0), Math.round(seconds * 0.9) * SECOND_MS);
    assert.ok(nextDelayMs(i + 1, 1 - 2 ** -53)! <= Math.round(seconds * 1.1) * SECOND_MS);
  });
  assert.equal(nextDelayMs(13, 0.5), null);
  assert.equal(nextDelayMs(14, 0.5), null);
});

Deno.test("j4_retry_schedule: the whole of it is about 72 hours", () => {
  const sum = TABLE.reduce((all, _, i) => all + nextDelayMs(i + 1, 0.5)!, 0);
  assert.ok(sum > 70 * HOUR_MS && sum < 74 * HOUR_MS, String(sum));
});

Deno.test("j4_retry_schedule: whole seconds within ±10 %, never over a day, never before Retry-After", () => {
  const k = fc.integer({ min: 1, max: 12 });
  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(
      k,
      unit,
      fc.option(fc.integer({ min: 0, max: 200_000_000 }), { nil: undefined }),
      (k, unit, asked) => {
        const delay = nextDelayMs(k, unit, asked)!;
        const base = TABLE[k - 1]! * SECOND_MS;
        assert.equal(delay % SECOND_MS, 0);
        assert.ok(delay <= MAX_DELAY_S * SECOND_MS);
        assert.ok(delay >= Math.min(asked ?? 0, 24 * HOUR_MS));
        assert.ok(delay >= base * 0.9 - SECOND_MS / 2);
        if (asked === undefined) assert.ok(delay <= base * 1.1 + SECOND_MS / 2);
      },
    ),
  );
});

Deno.test("j4_retry_schedule: Retry-After is rounded up, capped at a day, and not shortened by PM_RETRY_SCALE", () => {
  const cases: [number, number, number, number][] = [
    // k, Retry-After ms, scale, expected ms
    [1, 45_000, 1, 45_000],
    [1, 45_001, 1, 46_000],
    [1, 5_000, 1, 30_000],
    [1, 400 * HOUR_MS, 1, 24 * HOUR_MS],
    [1, -1, 1, 30_000],
    [1, 0, 0.01, 300],
    [12, 0, 0.0001, 6_840],
    [1, 2_000, 0.01, 2_000],
  ];
  for (const [k, asked, scale, expected] of cases) assert.equal(nextDelayMs(k, 0.5, asked, scale), expected);
});

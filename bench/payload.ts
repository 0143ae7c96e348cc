/**
 * What every side of the bench sends and how it counts: one realistic event of 1 KB, one signing secret, percentiles.
 * `peers/common.mjs` makes the same bytes for the peers.
 */
import { Buffer } from "node:buffer";

/** The secret every side signs with and the receiver checks. */
export const SECRET = new Uint8Array(Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
export const EVENT_TYPE = "invoice.paid";

/** Wall clock in ms with its fraction: comparable between processes of one machine. */
export const nowMs = (): number => performance.timeOrigin + performance.now();

/** Event data of about 800 B, so that the envelope is about 1 KB. `sent_at` is what the receiver's latency counts from. */
export function invoice(i: number): Record<string, unknown> {
  const number = String(i).padStart(8, "0");
  return {
    id: `in_${number}`,
    sent_at: nowMs(),
    customer: {
      id: `cus_${i % 997}`,
      name: "Aurélie Lindqvist",
      email: `billing+${i % 997}@example.com`,
      country: "SE",
    },
    currency: "EUR",
    amount_due: 12_900 + i % 100,
    amount_paid: 12_900 + i % 100,
    tax: { rate: 0.25, amount: 2_580, country: "SE", reverse_charge: false },
    lines: [
      { id: `il_${number}1`, description: "Pro plan, monthly, 5 seats", quantity: 5, unit_amount: 1_900 },
      { id: `il_${number}2`, description: "Extra storage, 100 GB", quantity: 2, unit_amount: 1_200 },
      { id: `il_${number}3`, description: "Support, business hours", quantity: 1, unit_amount: 1_000 },
    ],
    period: { start: "2026-11-01T00:00:00.000Z", end: "2026-12-01T00:00:00.000Z" },
    paid_at: "2026-12-01T08:15:30.125Z",
    hosted_url: `https://billing.example.com/i/${number}`,
    metadata: { order: `ord-${number}`, source: "renewal", region: "eu-north-1" },
  };
}

/** The same inside an envelope, for the side that has no system around it. */
export function envelope(i: number): string {
  return JSON.stringify({
    id: `evt_01BENCH${String(i).padStart(19, "0")}`,
    type: EVENT_TYPE,
    api_version: "2026-10-01",
    occurred_at: "2026-12-01T08:15:30.125Z",
    tenant_id: "ten_01BENCH0000000000000000000",
    identity_id: null,
    sequence: i + 1,
    data: invoice(i),
  });
}

export interface Spread {
  count: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

/** Percentiles, in the unit of the input, to a thousandth. */
export function spread(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort();
  const at = (p: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? NaN);
  return { count: sorted.length, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

const round = (x: number): number => Math.round(x * 1_000) / 1_000;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/**
 * How many go before the `n` that are measured, on every side: a service runs for days, so its code is compiled by then. With 2,000
 * the compiler is still at work in half of a phase.
 */
export const warmUp = (n: number): number => Math.min(Math.ceil(n / 2), 10_000);

/** Runs `one(i)` for i in 0..n-1 with `callers` in flight. */
export async function inParallel(
  n: number,
  callers: number,
  one: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(callers, n) }, async () => {
    while (next < n) await one(next++);
  }));
}

/** Open loop: starts `one(i)` at `perSecond`, whether or not the ones before have ended. */
export async function atRate(
  n: number,
  perSecond: number,
  one: (i: number) => Promise<unknown>,
): Promise<void> {
  const start = performance.now();
  const open: Promise<unknown>[] = [];
  for (let i = 0; i < n; i++) {
    const wait = start + i * 1_000 / perSecond - performance.now();
    if (wait > 0.5) await sleep(wait);
    open.push(one(i));
  }
  await Promise.all(open);
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

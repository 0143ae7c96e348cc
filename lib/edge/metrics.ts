/**
 * The metrics of the service (reference §8), one registry a process. Labels are codes and patterns, never a tenant's text
 * nor a message, thread or identity id.
 */
import { metrics as otel } from "@opentelemetry/api";
import { invariant } from "../errors.ts";
import { Instrument, type Labels, type MetricShape } from "./instruments.ts";

/** Bounds in ms. 30 s and 120 s are the service objective's (NFR-REL-3). */
const LATENCY_MS = [
  5,
  10,
  25,
  50,
  100,
  250,
  500,
  1_000,
  2_500,
  5_000,
  10_000,
  30_000,
  60_000,
  120_000,
  600_000,
  3_600_000,
];
const HTTP_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

export const METRICS = {
  webhook_attempts_total: { kind: "counter", help: "Delivery attempts by result.", labels: ["result"] },
  webhook_dead_total: {
    kind: "counter",
    help: "Deliveries whose 13th attempt failed.",
    labels: ["event_class"],
  },
  webhook_disabled_total: { kind: "counter", help: "Endpoints disabled by the service.", labels: ["reason"] },
  webhook_delivery_latency_ms: {
    kind: "histogram",
    help: "Milliseconds from occurred_at to the first success, once a delivery.",
    labels: ["event_class", "first_attempt"],
    buckets: LATENCY_MS,
  },
  outbox_undispatched_age_ms: {
    kind: "histogram",
    help: "Milliseconds from an event's commit to its fan-out.",
    labels: ["owner"],
    buckets: LATENCY_MS,
  },
  webhook_ssrf_blocked_total: { kind: "counter", help: "Attempts the SSRF guard refused.", labels: [] },
  http_requests_total: {
    kind: "counter",
    help: "API requests by route pattern, method, status class and code.",
    labels: ["route", "method", "status", "code"],
  },
  http_ms: {
    kind: "histogram",
    help: "Milliseconds from a request's head to its answer.",
    labels: ["route", "method", "status", "code"],
    buckets: HTTP_MS,
  },
  rate_limited_total: { kind: "counter", help: "Requests refused by a rate limit.", labels: ["bucket"] },
  dlq_items: { kind: "gauge", help: "Items in the dead-letter list.", labels: [] },
  jobs_oldest_due_age_ms: {
    kind: "gauge",
    help: "Milliseconds the oldest job has been due and not taken; 0 when none waits.",
    labels: [],
  },
} as const satisfies Record<string, MetricShape>;

export type MetricName = keyof typeof METRICS;

export interface Metrics {
  /** Adds `by` (default 1) to a counter. */
  count(name: MetricName, labels?: Labels, by?: number): void;
  /** Adds an observation to a histogram. */
  observe(name: MetricName, value: number, labels?: Labels): void;
  /** Sets a gauge. */
  gauge(name: MetricName, value: number, labels?: Labels): void;
  /** The Prometheus text exposition of all. */
  render(): string;
}

const NO_LABELS: Labels = {};

/** A registry with every metric of `METRICS`, mirrored to the global OpenTelemetry meter. */
export function makeMetrics(): Metrics {
  const meter = otel.getMeter("pylota-webhooks");
  const all = new Map<string, Instrument>();
  for (const [name, shape] of Object.entries(METRICS)) all.set(name, new Instrument(name, shape, meter));

  const record = (kind: MetricShape["kind"], name: string, value: number, labels: Labels): void => {
    const instrument = all.get(name);
    invariant(instrument?.shape.kind === kind, `metric ${name} is a ${kind}`);
    instrument.record(value, labels);
  };
  return {
    count: (name, labels = NO_LABELS, by = 1) => record("counter", name, by, labels),
    observe: (name, value, labels = NO_LABELS) => record("histogram", name, value, labels),
    gauge: (name, value, labels = NO_LABELS) => record("gauge", name, value, labels),
    render: () => [...all.values()].map((instrument) => instrument.render()).join(""),
  };
}

/** The `event_class` label: `inbound` for mail that came in, `other` for the rest. */
export const eventClass = (type: string): "inbound" | "other" =>
  type === "message.received" || type === "message.quarantined" ? "inbound" : "other";

/** Reference §8, the table: the labels of each metric, no more and no fewer. */
import assert from "node:assert/strict";
import { type MetricName, METRICS } from "../../lib/edge/metrics.ts";

const HTTP = ["route", "method", "status", "code"];

const TABLE: Partial<Record<MetricName, [kind: string, labels: string[]]>> = {
  webhook_attempts_total: ["counter", ["result"]],
  webhook_dead_total: ["counter", ["event_class"]],
  webhook_disabled_total: ["counter", ["reason"]],
  webhook_delivery_latency_ms: ["histogram", ["event_class", "first_attempt"]],
  outbox_undispatched_age_ms: ["histogram", ["owner"]],
  webhook_ssrf_blocked_total: ["counter", []],
  http_requests_total: ["counter", HTTP],
  http_ms: ["histogram", HTTP],
  rate_limited_total: ["counter", ["bucket"]],
  dlq_items: ["gauge", []],
};

Deno.test("metrics: kind and labels of each are the reference's", () => {
  for (const [name, [kind, labels]] of Object.entries(TABLE)) {
    const metric = METRICS[name as MetricName];
    assert.deepEqual([metric.kind, metric.labels], [kind, labels], name);
  }
});

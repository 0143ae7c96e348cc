import assert from "node:assert/strict";
import { MAX_SERIES } from "../../lib/edge/instruments.ts";
import { eventClass, makeMetrics, type MetricName, METRICS } from "../../lib/edge/metrics.ts";

/** Sample lines of one metric. */
function samples(text: string, name: string): string[] {
  return text.split("\n").filter((line) => line.startsWith(name) && !line.startsWith("#"));
}

Deno.test("metrics: every metric of the reference is there, with help and type", () => {
  const text = makeMetrics().render();
  for (const [name, shape] of Object.entries(METRICS)) {
    assert.ok(text.includes(`# HELP ${name} ${shape.help}\n# TYPE ${name} ${shape.kind}\n`), name);
  }
  assert.deepEqual(samples(text, "webhook_ssrf_blocked_total"), ["webhook_ssrf_blocked_total 0"]);
  assert.ok(text.endsWith("\n"));
});

Deno.test("metrics: counters add up per label set, gauges keep the last value", () => {
  const m = makeMetrics();
  m.count("webhook_attempts_total", { result: "succeeded" });
  m.count("webhook_attempts_total", { result: "succeeded" }, 4);
  m.count("webhook_attempts_total", { result: "timeout" });
  m.gauge("dlq_items", 3);
  m.gauge("dlq_items", 2);
  const text = m.render();
  assert.deepEqual(samples(text, "webhook_attempts_total"), [
    'webhook_attempts_total{result="succeeded"} 5',
    'webhook_attempts_total{result="timeout"} 1',
  ]);
  assert.deepEqual(samples(text, "dlq_items"), ["dlq_items 2"]);
});

Deno.test("metrics: a histogram's buckets are cumulative, the bound itself included, with sum and count", () => {
  const m = makeMetrics();
  const labels = { event_class: "inbound", first_attempt: "succeeded" };
  for (const ms of [5, 5.5, 30_000, 120_001, 9e9]) m.observe("webhook_delivery_latency_ms", ms, labels);
  const lines = samples(m.render(), "webhook_delivery_latency_ms");
  const at = (bound: string) => Number(lines.find((line) => line.includes(`le="${bound}"`))!.split(" ")[1]);
  assert.deepEqual(["5", "10", "10000", "30000", "120000", "600000", "+Inf"].map(at), [1, 2, 2, 3, 3, 4, 5]);
  assert.equal(
    lines.at(-1),
    'webhook_delivery_latency_ms_count{event_class="inbound",first_attempt="succeeded"} 5',
  );
  assert.match(lines.at(-2)!, /_sum\{.*\} 9000150011\.5$/);
});

Deno.test("metrics: label values are escaped, unknown labels ignored, missing ones empty", () => {
  const m = makeMetrics();
  m.count("rate_limited_total", { bucket: 'a"b\\c\nd', other: "x" });
  m.count("rate_limited_total");
  assert.deepEqual(samples(m.render(), "rate_limited_total"), [
    'rate_limited_total{bucket="a\\"b\\\\c\\nd"} 1',
    'rate_limited_total{bucket=""} 1',
  ]);
});

Deno.test("metrics: label sets are bounded, and a wrong name or kind is a broken invariant", () => {
  const m = makeMetrics();
  for (let i = 0; i < MAX_SERIES + 10; i++) m.count("rate_limited_total", { bucket: String(i) });
  assert.equal(samples(m.render(), "rate_limited_total").length, MAX_SERIES);
  assert.throws(() => m.count("dlq_items"), /Invariant metric dlq_items is a counter/);
  assert.throws(() => m.count("no_such" as MetricName), /Invariant/);
});

Deno.test("metrics: no label names a tenant, message, thread or identity", () => {
  for (const { labels } of Object.values(METRICS)) {
    for (const label of labels) assert.doesNotMatch(label, /tenant|message|thread|identity/);
  }
  assert.deepEqual(
    ["message.received", "message.quarantined", "message.released", "domain.created"].map(eventClass),
    [
      "inbound",
      "inbound",
      "other",
      "other",
    ],
  );
});

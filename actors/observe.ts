/**
 * What the pipeline tells the outside: metrics of reference §8, log lines and spans of ids and codes, never content (P1).
 */
import type { Log } from "../lib/edge/log.ts";
import { eventClass, type Metrics } from "../lib/edge/metrics.ts";
import type { Spans } from "../lib/edge/spans.ts";
import type { FlowObserver } from "./flow.ts";
import type { StoredEvent } from "./event_store.ts";
import type { Settlement } from "./work.ts";

export interface ObserveDeps {
  metrics: Metrics;
  log: Log;
  now(): number;
  /** Null when nothing exports them: they cost one comparison then. */
  spans: Spans | null;
}

export function makeObserver(d: ObserveDeps): FlowObserver {
  const { metrics, log, spans } = d;
  return {
    ...(spans === null
      ? {}
      : { appended: (events: readonly StoredEvent[]) => tellAppended(spans, events, d.now()) }),
    fanned(event, since) {
      const now = d.now();
      if (event.kind !== "platform") {
        metrics.observe("outbox_undispatched_age_ms", Math.max(0, now - event.at), { owner: event.kind });
      }
      if (spans !== null) {
        const attributes = { "event.id": event.id, "event.type": event.type, "event.age_ms": now - event.at };
        spans.record("fan_out", event.key, { from: since, to: now }, attributes);
      }
    },
    recorded(settlement, dead) {
      if (settlement.kind === "succeeded" || settlement.kind === "failed") {
        attempted(metrics, settlement, dead);
        if (spans !== null) tellAttempt(spans, settlement, dead, d.now());
      } else if (settlement.kind === "dead") {
        metrics.count("webhook_attempts_total", { result: settlement.error }); // an attempt row, without a request
      }
    },
    disabled(endpoint, reason) {
      metrics.count("webhook_disabled_total", { reason });
      log.warn("webhook_disabled", { endpoint_id: endpoint, reason });
    },
    handOffFailed(event, error) {
      log.warn("notifier_handoff_failed", {
        event_id: event.id,
        tenant_id: event.tenant,
        error: error instanceof Error ? error.name : "unknown",
      });
    },
    failed(what, error) {
      log.error("pipeline_fault", { stage: what, error: error instanceof Error ? error.name : "unknown" });
    },
  };
}

type Attempted = Extract<Settlement, { kind: "succeeded" | "failed" }>;

function attempted(metrics: Metrics, settlement: Attempted, dead: boolean): void {
  const { item, event } = settlement.work;
  const result = settlement.kind === "succeeded" ? "succeeded" : settlement.error;
  metrics.count("webhook_attempts_total", { result });
  if (result === "ssrf_blocked") metrics.count("webhook_ssrf_blocked_total");
  if (dead) metrics.count("webhook_dead_total", { event_class: eventClass(item.type) });
  if (result !== "succeeded" || item.replay || event === null) return;
  metrics.observe(
    "webhook_delivery_latency_ms",
    Math.max(0, settlement.at + settlement.durationMs - event.at),
    {
      event_class: eventClass(item.type),
      first_attempt: item.attempt === item.first ? "succeeded" : "failed",
    },
  );
}

function tellAppended(spans: Spans, events: readonly StoredEvent[], now: number): void {
  for (const event of events) {
    const attributes = { "event.id": event.id, "event.type": event.type, "event.owner_kind": event.kind };
    spans.record("append", event.key, { from: event.at, to: now }, attributes);
  }
}

function tellAttempt(spans: Spans, settlement: Attempted, dead: boolean, now: number): void {
  const { item, target } = settlement.work;
  const ended = settlement.at + settlement.durationMs;
  const attributes = {
    "event.id": item.id,
    "event.type": item.type,
    "webhook.endpoint_id": target.row.id,
    "webhook.attempt": item.attempt,
    "webhook.replay": item.replay,
    ...(settlement.httpStatus === null ? {} : { "http.response.status_code": settlement.httpStatus }),
  };
  const error = settlement.kind === "failed" ? settlement.error : undefined;
  spans.record("deliver", item.event, { from: settlement.at, to: ended }, attributes, error);
  spans.record("record", item.event, { from: ended, to: now }, { ...attributes, "webhook.dead": dead });
}

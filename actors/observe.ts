/** What the pipeline tells the outside: metrics of reference §8 and log lines of ids and codes, never content (P1). */
import type { Log } from "../lib/edge/log.ts";
import { eventClass, type Metrics } from "../lib/edge/metrics.ts";
import type { FlowObserver } from "./flow.ts";

export function makeObserver(d: { metrics: Metrics; log: Log; now(): number }): FlowObserver {
  const { metrics, log } = d;
  return {
    fanned(event) {
      if (event.kind !== "platform") {
        metrics.observe("outbox_undispatched_age_ms", Math.max(0, d.now() - event.at), { owner: event.kind });
      }
    },
    recorded(settlement, dead) {
      if (settlement.kind !== "succeeded" && settlement.kind !== "failed") return;
      const { item, event } = settlement.work;
      const result = settlement.kind === "succeeded" ? "succeeded" : settlement.error;
      metrics.count("webhook_attempts_total", { result });
      if (result === "ssrf_blocked") metrics.count("webhook_ssrf_blocked_total");
      if (dead) metrics.count("webhook_dead_total", { event_class: eventClass(item.type) });
      if (result === "succeeded" && !item.replay && event !== null) {
        const latency = Math.max(0, settlement.at + settlement.durationMs - event.at);
        const first_attempt = item.attempt === item.first ? "succeeded" : "failed";
        metrics.observe("webhook_delivery_latency_ms", latency, {
          event_class: eventClass(item.type),
          first_attempt,
        });
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

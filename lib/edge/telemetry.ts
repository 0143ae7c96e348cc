/**
 * What the service tells of itself: logs, metrics and spans in one object. Spans go to Deno's built-in OpenTelemetry
 * (`OTEL_DENO=true`); without it they cost next to nothing.
 */
import { type Attributes, SpanStatusCode, trace } from "@opentelemetry/api";
import { type Log, type LogLevel, makeLog } from "./log.ts";
import { makeMetrics, type Metrics } from "./metrics.ts";

export interface Telemetry {
  log: Log;
  metrics: Metrics;
  /** Runs `work` in a span. `attributes` are ids and codes only; of an error the span keeps the class, not the text. */
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
}

export interface TelemetryOptions {
  /** `PM_LOG`. */
  level: LogLevel | "off";
  now(): number;
  /** Takes a log line without its end. */
  write(line: string): void;
}

export function makeTelemetry(options: TelemetryOptions): Telemetry {
  const tracer = trace.getTracer("pylota-webhooks");
  return {
    log: makeLog(options.level, options.now, options.write),
    metrics: makeMetrics(),
    span: (name, attributes, work) =>
      tracer.startActiveSpan(name, { attributes }, async (span) => {
        try {
          return await work();
        } catch (error) {
          const message = error instanceof Error ? error.constructor.name : typeof error;
          span.setStatus({ code: SpanStatusCode.ERROR, message });
          throw error;
        } finally {
          span.end();
        }
      }),
  };
}

/**
 * What the service tells of itself: logs, metrics and spans in one object. Spans go to Deno's built-in OpenTelemetry
 * (`OTEL_DENO=true`); without it there are none.
 */
import { type Log, type LogLevel, makeLog } from "./log.ts";
import { makeMetrics, type Metrics } from "./metrics.ts";
import { makeSpans, type Spans } from "./spans.ts";

export interface Telemetry {
  log: Log;
  metrics: Metrics;
  /** Null when nothing exports them. */
  spans: Spans | null;
}

export interface TelemetryOptions {
  /** `PM_LOG`. */
  level: LogLevel | "off";
  now(): number;
  /** Takes a log line without its end. */
  write(line: string): void;
}

export function makeTelemetry(options: TelemetryOptions): Telemetry {
  return {
    log: makeLog(options.level, options.now, options.write),
    metrics: makeMetrics(),
    spans: makeSpans(),
  };
}

/**
 * Spans of OpenTelemetry, written after the fact from the times the pipeline knows anyway. All spans of an event are one trace,
 * whatever process they come from and however many days lie between: an event's key is a ULID, 128 bits as a trace id is, so the
 * trace id is the key in hexadecimal and every span finds its trace without anything being stored or handed on.
 * Attributes are ids and codes, never content (P1).
 */
import {
  type Attributes,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";
import type { EventKey } from "../ids.ts";

export type SpanName = "append" | "fan_out" | "deliver" | "record";

export interface SpanTimes {
  /** Unix ms. */
  from: number;
  /** Unix ms. */
  to: number;
}

export interface Spans {
  /** One span in the trace of the event. @param error a code: the span is marked as failed. */
  record(name: SpanName, event: EventKey, times: SpanTimes, attributes: Attributes, error?: string): void;
}

const KINDS: Record<SpanName, SpanKind> = {
  append: SpanKind.PRODUCER,
  fan_out: SpanKind.INTERNAL,
  deliver: SpanKind.CLIENT,
  record: SpanKind.INTERNAL,
};
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The trace id of an event: its key, a ULID, as 32 hexadecimal digits. */
export function traceIdOf(key: EventKey): string {
  let bits = 0n;
  for (const digit of key) bits = bits * 32n + BigInt(CROCKFORD.indexOf(digit));
  return bits.toString(16).padStart(32, "0");
}

/** Null when nothing exports spans (`OTEL_DENO` is not `true`): then nothing of all this is called. */
export function makeSpans(): Spans | null {
  if (!exporting()) return null;
  const tracer = trace.getTracer("pylota-webhooks");
  return {
    record(name, event, times, attributes, error) {
      const traceId = traceIdOf(event);
      // The parent that all spans of the event share: nobody sends it, it only joins them.
      const parent = { traceId, spanId: traceId.slice(16), traceFlags: TraceFlags.SAMPLED, isRemote: true };
      const context = trace.setSpanContext(ROOT_CONTEXT, parent);
      const options = { kind: KINDS[name], startTime: times.from, attributes };
      const span = tracer.startSpan(`webhook.${name}`, options, context);
      if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      span.end(Math.max(times.from, times.to));
    },
  };
}

/** Whether Deno has registered a provider of its own; the API's stand-in does nothing, at a microsecond a span. */
function exporting(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) ||
    provider.getDelegate().constructor.name !== "NoopTracerProvider";
}

/** Counters, gauges and histograms in memory, with their Prometheus text and a mirror in OpenTelemetry. */
import type { Attributes, Meter } from "@opentelemetry/api";

export type Labels = Readonly<Record<string, string>>;

/** What a metric is: `labels` in the order they are shown; `buckets` (upper bounds) for a histogram. */
export interface MetricShape {
  kind: "counter" | "gauge" | "histogram";
  help: string;
  labels: readonly string[];
  buckets?: readonly number[];
}

/** A metric holds at most this many label combinations: a mistake in a label cannot eat the memory. */
export const MAX_SERIES = 2_000;

interface Series {
  /** `{a="b"}` without the braces. */
  labels: string;
  value: number;
  /** Histograms: observations at or below each bound, not yet cumulative; the last is for those above all. */
  counts: number[];
  observations: number;
}

/** One metric. `add` costs a string and a map look-up. */
export class Instrument {
  readonly #series = new Map<string, Series>();
  readonly #mirror: (value: number, labels: Labels) => void;

  constructor(readonly name: string, readonly shape: MetricShape, meter: Meter) {
    this.#mirror = mirror(name, shape, meter);
    // A counter without labels is there from the start, at 0.
    if (shape.labels.length === 0) this.#at({});
  }

  /** Adds to a counter, sets a gauge, observes in a histogram. A label not given is empty; unknown ones are ignored. */
  record(value: number, labels: Labels): void {
    const series = this.#at(labels);
    if (!series) return;
    this.#mirror(value, labels);
    if (this.shape.kind === "gauge") series.value = value;
    else series.value += value;
    if (this.shape.kind !== "histogram") return;
    const bounds = this.shape.buckets!;
    let i = 0;
    while (i < bounds.length && value > bounds[i]!) i++;
    series.counts[i]!++;
    series.observations++;
  }

  #at(labels: Labels): Series | undefined {
    const names = this.shape.labels;
    let id = "";
    for (const name of names) id += (labels[name] ?? "") + "\0";
    const known = this.#series.get(id);
    if (known || this.#series.size >= MAX_SERIES) return known;
    const made: Series = {
      labels: names.map((name) => `${name}="${escape(labels[name] ?? "")}"`).join(","),
      value: 0,
      counts: Array(1 + (this.shape.buckets?.length ?? 0)).fill(0),
      observations: 0,
    };
    this.#series.set(id, made);
    return made;
  }

  /** Prometheus text exposition, version 0.0.4. */
  render(): string {
    const { name, shape } = this;
    let text = `# HELP ${name} ${shape.help}\n# TYPE ${name} ${shape.kind}\n`;
    for (const series of this.#series.values()) {
      if (shape.kind === "histogram") text += this.#renderHistogram(series);
      else text += `${name}${braced(series.labels)} ${series.value}\n`;
    }
    return text;
  }

  #renderHistogram(series: Series): string {
    const { name } = this, before = series.labels && series.labels + ",";
    let text = "", sum = 0;
    const bounds = [...this.shape.buckets!.map(String), "+Inf"];
    for (const [i, bound] of bounds.entries()) {
      sum += series.counts[i]!;
      text += `${name}_bucket{${before}le="${bound}"} ${sum}\n`;
    }
    const labels = braced(series.labels);
    return `${text}${name}_sum${labels} ${series.value}\n${name}_count${labels} ${series.observations}\n`;
  }
}

/** The same in OpenTelemetry. Without an exporter each call is a no-op of some 10 ns. */
function mirror(name: string, shape: MetricShape, meter: Meter): (value: number, labels: Labels) => void {
  const options = { description: shape.help };
  if (shape.kind === "counter") {
    const counter = meter.createCounter(name, options);
    return (value, labels) => counter.add(value, labels as Attributes);
  }
  if (shape.kind === "gauge") {
    const gauge = meter.createGauge(name, options);
    return (value, labels) => gauge.record(value, labels as Attributes);
  }
  const advice = { explicitBucketBoundaries: [...shape.buckets!] };
  const histogram = meter.createHistogram(name, { ...options, advice });
  return (value, labels) => histogram.record(value, labels as Attributes);
}

const braced = (labels: string): string => labels && `{${labels}}`;
const escape = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

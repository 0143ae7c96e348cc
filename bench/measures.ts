/** What `deno task bench` measures, from what the phases of a round found, and the targets it is held to. */
import type { Found } from "./engine.ts";
import { median } from "./payload.ts";

/** One round: what each phase found, and the bare loop's rate each time it ran. */
export interface Round {
  bare: number[];
  phases: Record<string, Found>;
}

export interface Measure {
  name: string;
  unit: string;
  value(round: Round): number | undefined;
  /** Against what it is held: the bare loop, or an empty store. Absent: the value itself is. */
  ratio?(round: Round): number | undefined;
  target?: { kind: "at least" | "at most"; bound: number };
}

export interface Line {
  name: string;
  unit: string;
  value: { median: number; min: number; max: number };
  ratio: { median: number; min: number; max: number } | null;
  target: string;
  met: boolean | null;
}

const of = (phase: string, name: string) => (round: Round): number | undefined => round.phases[phase]?.[name];

function quotient(over: Measure["value"], under: Measure["value"]): Measure["value"] {
  return (round) => {
    const above = over(round), below = under(round);
    return above === undefined || below === undefined ? undefined : above / below;
  };
}

/** The bare loop just before and just after a phase, so that a drift of the machine's speed hits both alike. */
const bareAround = (index: number) => ({ bare }: Round): number => (bare[index]! + bare[index + 1]!) / 2;

const rate = (name: string, phase: string, rest: Partial<Measure> = {}): Measure => ({
  name,
  unit: "/s",
  value: of(phase, "perSecond"),
  ...rest,
});

export const MEASURES: readonly Measure[] = [
  { name: "bare signing undici loop", unit: "/s", value: ({ bare }) => median(bare) },
  rate("append, 64 callers, 1,000 owners", "append"),
  { name: "append p99", unit: "ms", value: of("append", "p99Ms") },
  rate("flood: append and deliver / bare loop", "flood", {
    ratio: quotient(of("flood", "perSecond"), bareAround(0)),
    target: { kind: "at least", bound: 0.6 },
  }),
  rate("drain of a ready backlog / bare loop", "drain", {
    ratio: quotient(of("drain", "perSecond"), bareAround(1)),
    target: { kind: "at least", bound: 0.7 },
  }),
  rate("one event to 10 endpoints, deliveries / bare loop", "fan", {
    ratio: quotient(of("fan", "perSecond"), ({ bare }) => bare.at(-1)),
  }),
  ...["bare", "append", "flood", "drain"].map((phase): Measure => ({
    name: `CPU time an event: ${phase}`,
    unit: "µs",
    value: of(phase, "cpuUs"),
  })),
  { name: "append to receipt at 200/s, p50", unit: "ms", value: of("steady", "p50Ms") },
  { name: "append to receipt at 200/s, p99", unit: "ms", value: of("steady", "p99Ms") },
  rate("append beside a backlog; cost / empty store", "append_beside", {
    ratio: quotient(of("append", "perSecond"), of("append_beside", "perSecond")),
    target: { kind: "at most", bound: 1.2 },
  }),
  rate("flood beside a backlog; cost / empty store", "flood_beside", {
    ratio: quotient(of("flood", "perSecond"), of("flood_beside", "perSecond")),
    target: { kind: "at most", bound: 1.2 },
  }),
  {
    name: "healthy p99 beside one that times out / without",
    unit: "ms",
    value: of("noisy", "p99Ms"),
    ratio: quotient(of("noisy", "p99Ms"), of("calm", "p99Ms")),
    target: { kind: "at most", bound: 1.2 },
  },
  {
    name: "peak resident memory over a due backlog",
    unit: "MB",
    value: of("memory", "peakRssMb"),
    target: { kind: "at most", bound: 300 },
  },
  {
    name: "kill -9 to first re-delivery",
    unit: "ms",
    value: of("recovery", "ms"),
    target: { kind: "at most", bound: 8_000 },
  },
];

/** Medians with the least and the most over the rounds; a measure no round has is left out. */
export function judge(measures: readonly Measure[], rounds: readonly Round[]): Line[] {
  return measures.flatMap((measure): Line[] => {
    const value = over(rounds, measure.value);
    if (value === null) return [];
    const ratio = measure.ratio === undefined ? null : over(rounds, measure.ratio);
    const { target } = measure;
    const held = (ratio ?? value).median;
    const met = target === undefined
      ? null
      : target.kind === "at least"
      ? held >= target.bound
      : held <= target.bound;
    const said = target === undefined ? "" : `${target.kind} ${target.bound}`;
    return [{ name: measure.name, unit: measure.unit, value, ratio, target: said, met }];
  });
}

function over(rounds: readonly Round[], of: Measure["value"]): Line["value"] | null {
  const values = rounds.map(of).filter((value) => value !== undefined);
  if (values.length === 0) return null;
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

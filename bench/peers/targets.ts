/** What our side is held to against the peers. */
import type { Measure, Round } from "../measures.ts";

export const PHASES = ["append", "flood", "drain", "fan", "steady"] as const;
export const PEERS = ["bullmq-always", "bullmq-everysec", "graphile-worker", "pg-boss"] as const;

/** Where a round keeps what a side found in a phase. */
export const slot = (phase: string, side: string): string => `${phase} ${side}`;

const of = (phase: string, side: string, name: string) => (round: Round): number | undefined =>
  round.phases[slot(phase, side)]?.[name];

function best(phase: string, sides: readonly string[]): Measure["value"] {
  return (round) => {
    const values = sides.map((side) => of(phase, side, "perSecond")(round)).filter((value) =>
      value !== undefined
    );
    return values.length === 0 ? undefined : Math.max(...values);
  };
}

function against(
  name: string,
  phase: string,
  field: string,
  theirs: Measure["value"],
  target: Measure["target"],
): Measure {
  const ours = of(phase, "ours", field);
  return {
    name,
    unit: field === "perSecond" ? "/s" : "ms",
    value: ours,
    ratio: (round) => {
      const [above, below] = [ours(round), theirs(round)];
      return above === undefined || below === undefined ? undefined : above / below;
    },
    ...(target === undefined ? {} : { target }),
  };
}

const atLeast = (bound: number) => ({ kind: "at least" as const, bound });
const atMost = (bound: number) => ({ kind: "at most" as const, bound });
const ALWAYS = "bullmq-always";

const rates = (["append", "flood", "drain", "fan"] as const).flatMap((phase): Measure[] =>
  PEERS.map((peer) => ({ name: `${phase}: ${peer}`, unit: "/s", value: of(phase, peer, "perSecond") }))
);
const latencies = PEERS.flatMap((peer): Measure[] => [
  { name: `200/s p50: ${peer}`, unit: "ms", value: of("steady", peer, "p50Ms") },
  { name: `200/s p99: ${peer}`, unit: "ms", value: of("steady", peer, "p99Ms") },
]);

export const MEASURES: readonly Measure[] = [
  ...rates,
  ...latencies,
  against("append / BullMQ always", "append", "perSecond", of("append", ALWAYS, "perSecond"), atLeast(1.2)),
  against("flood / BullMQ always", "flood", "perSecond", of("flood", ALWAYS, "perSecond"), atLeast(2)),
  against(
    "flood / BullMQ everysec",
    "flood",
    "perSecond",
    of("flood", "bullmq-everysec", "perSecond"),
    atLeast(1.5),
  ),
  against(
    "flood / best on PostgreSQL",
    "flood",
    "perSecond",
    best("flood", ["graphile-worker", "pg-boss"]),
    atLeast(5),
  ),
  against("drain / best peer", "drain", "perSecond", best("drain", PEERS), atLeast(1.3)),
  against("one event to 10 / best peer", "fan", "perSecond", best("fan", PEERS), atLeast(1.5)),
  against("200/s p50 / BullMQ always", "steady", "p50Ms", of("steady", ALWAYS, "p50Ms"), atMost(1)),
  against("200/s p99 / BullMQ always", "steady", "p99Ms", of("steady", ALWAYS, "p99Ms"), atMost(1)),
];

/**
 * The trace of an event as a picture: the event, and a line to each endpoint that receives it or does not. Drawn on the server,
 * without a script or a style of its own. It comes in two shapes, of which the sheet shows the one that fits the screen: scaled
 * to a phone, the wide one's words could not be read. Its description says the same in words; the table below it says more.
 */
import type { TraceRule, TraceState } from "../../actors/trace.ts";
import { MAX_ATTEMPTS } from "../../lib/limits.ts";
import { plural, relative } from "./format.ts";
import type { Delivery } from "./shapes.ts";
import { outcomeText } from "./status.tsx";
import type { Tone } from "./ui.tsx";

/** One endpoint. `word` and `tone` are those the table shows. Times are RFC 3339 text. */
export interface Lane {
  url: string;
  state: TraceState;
  tone: Tone;
  word: string;
  rule: TraceRule | null;
  attempts: Delivery[];
  next: { attempt: number; at: string | null; error: string | null } | null;
}

/** More lines than this are a thicket: the table has them all. */
export const MAX_LANES = 20;
const DOT_STEP = 20;

const WHY: Record<TraceRule, string> = {
  deleted: "deleted",
  disabled: "disabled",
  test_events_are_never_fanned_out: "another's test",
  other_scope: "outside what it sees",
  about_itself: "it is about itself",
  event_type: "other event types",
  identity_filter: "other identities",
  created_after_event: "created after the event",
  changed_since: "changed since",
};

export function TracePicture({ type, lanes, now }: { type: string; lanes: readonly Lane[]; now: number }) {
  const shown = lanes.slice(0, MAX_LANES), more = lanes.length - shown.length;
  return (
    <div class="inset trace">
      <Drawing shape="wide" type={type} lanes={shown} more={more} now={now} />
      <Drawing shape="narrow" type={type} lanes={shown} more={more} now={now} />
      {more === 0 ? null : <p class="small muted">{moreText(more)}</p>}
    </div>
  );
}

/** Units are CSS pixels at full size. `lane`: the middle of the first line, then the step to the next. `chars` fit in the room. */
const SHAPES = {
  wide: { width: 940, box: 168, lane: [24, 48], from: 232, to: 560, chars: { type: 20, url: 46 } },
  narrow: { width: 320, box: 320, lane: [78, 62], from: 28, to: 306, chars: { type: 38, url: 38 } },
} as const;

interface Drawn {
  shape: keyof typeof SHAPES;
  type: string;
  lanes: readonly Lane[];
  more: number;
  now: number;
}

function Drawing({ shape, type, lanes, more, now }: Drawn) {
  const { width, box, lane: [first, step], from, chars } = SHAPES[shape];
  const wide = shape === "wide", id = `trace-${shape}`, height = first + step * lanes.length - step + 30;
  /** The middle of the event's box. */
  const middle = wide ? first + step * (lanes.length - 1) / 2 : 18;
  return (
    <svg
      class={shape}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-labelledby={`${id}-title ${id}-desc`}
    >
      <title id={`${id}-title`}>Where {type} goes</title>
      <desc id={`${id}-desc`}>
        {[...lanes.map((lane) => describe(lane, now)), more === 0 ? "" : moreText(more)].join(" ").trim()}
      </desc>
      {wide ? null : <path class="trunk" d={`M12 ${middle}V${first + step * (lanes.length - 1) - 10}`} />}
      {lanes.map((lane, i) => {
        const y = first + i * step;
        const way = wide
          ? `M${box} ${middle}C${box + 40} ${middle} ${from - 44} ${y} ${from} ${y}`
          : `M12 ${y - 10}Q12 ${y} 22 ${y}H${from}`;
        return <LaneOf lane={lane} shape={shape} way={way} y={y} now={now} />;
      })}
      <rect class="box" x="0.5" y={middle - 17} width={box - 1} height="34" rx="6" />
      <text class="name" x="12" y={middle + 4.5}>{cut(type, chars.type)}</text>
    </svg>
  );
}

function LaneOf(
  { lane, shape, way, y, now }: { lane: Lane; shape: Drawn["shape"]; way: string; y: number; now: number },
) {
  const { from, to, chars } = SHAPES[shape], wide = shape === "wide";
  const dots = lane.attempts.slice(-MAX_ATTEMPTS), earlier = lane.attempts.length - dots.length;
  const x = wide ? to + 18 : from + 2;
  const off = lane.state === "not_matched";
  return (
    <g class={`lane ${lane.tone} ${lane.state}`}>
      <title>{describe(lane, now)}</title>
      {/* What is not for it stops on the way, at a bar. */}
      <path class="way" d={off ? `${way}h26` : `${way}H${to - 6}`} />
      {off ? <path class="stop" d={`M${from + 26} ${y - 7}v14`} /> : null}
      <End lane={lane} x={to} y={y} />
      {dots.map((one, i) => (
        <Dot ok={one.status === "succeeded"} said={attemptText(one)} x={from + 8 + i * DOT_STEP} y={y} />
      ))}
      <text class="name" x={x} y={wide ? y - 3 : y - 13}>
        {cut(lane.url.replace(/^https:\/\//, ""), chars.url)}
      </text>
      <text class="said" x={x} y={wide ? y + 14 : y + 21}>
        {stateText(lane, now)}
        {earlier === 0 ? "" : `, the last ${dots.length} shown`}
      </text>
    </g>
  );
}

/** Told apart without colours: reached is full, given up is crossed, the others are open. */
function End({ lane, x, y }: { lane: Lane; x: number; y: number }) {
  if (lane.tone === "bad") return <path class="cross" d={`M${x - 5} ${y - 5}l10 10m0-10l-10 10`} />;
  return <circle class={lane.tone === "ok" ? "end full" : "end"} cx={x} cy={y} r="5" />;
}

function Dot({ ok, said, x, y }: { ok: boolean; said: string; x: number; y: number }) {
  return (
    <g class={ok ? "dot ok" : "dot bad"}>
      <title>{said}</title>
      <circle cx={x} cy={y} r="7" />
      <path
        d={ok ? `M${x - 3} ${y}l2.2 2.4l4-4.6` : `M${x - 2.6} ${y - 2.6}l5.2 5.2m0-5.2l-5.2 5.2`}
      />
    </g>
  );
}

/** `Retrying: attempt 3 in 4 min` */
export function stateText({ state, word, rule, attempts, next }: Lane, now: number): string {
  const tried = plural(attempts.length, "attempt");
  switch (state) {
    case "not_matched":
      return rule === null ? word : `${word}: ${WHY[rule]}`;
    case "succeeded":
      return `${word} with ${tried}`;
    case "dead":
      return `${word} after ${tried}`;
    case "held":
      return `${word}: its partner is suspended`;
    case "dead_lettered":
      return `${word}: an operator redrives it`;
    case "forgotten":
      return `${word}: past retention`;
    case "unknown":
      return `${word}: too many jobs wait`;
    default: {
      if (next === null) return word;
      const at = next.at === null ? null : Date.parse(next.at);
      const due = at === null || at <= now ? "at any moment" : relative(at, now);
      return `${word}: attempt ${next.attempt} ${due}${next.error === null ? "" : ", ends dead"}`;
    }
  }
}

const attemptText = (one: Delivery): string => `Attempt ${one.attempt}: ${outcomeText(one)}`;

function describe(lane: Lane, now: number): string {
  const tried = lane.attempts.slice(-MAX_ATTEMPTS).map(attemptText).join(", ");
  return `${lane.url}: ${stateText(lane, now)}.${tried === "" ? "" : ` ${tried}.`}`;
}

const moreText = (more: number): string => `${plural(more, "more endpoint")} in the table below.`;

const cut = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, chars - 1)}…`;

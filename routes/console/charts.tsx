/** Charts drawn on the server as SVG: a name and a description for who cannot see them, the same figures as a table below. */
import { type Hour, totalOf } from "../../actors/stats.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { clock, count, plural } from "./format.ts";

const WIDTH = 960, HEIGHT = 200, LEFT = 56, TOP = 12, BOTTOM = 30;

/** Columns of delivered and failed attempts, one an hour. */
export function HourChart({ id, hours }: { id: string; hours: readonly Hour[] }) {
  const top = niceTop(Math.max(...hours.map((hour) => hour.succeeded + hour.failed)));
  const room = HEIGHT - TOP - BOTTOM, step = (WIDTH - LEFT) / hours.length;
  const y = (value: number) => TOP + room * (1 - value / top);
  const total = totalOf(hours);
  return (
    <>
      <svg
        class="chart"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-labelledby={`${id}-title ${id}-desc`}
      >
        <title id={`${id}-title`}>Attempts by hour, last {hours.length} hours</title>
        <desc id={`${id}-desc`}>{describe(hours)}</desc>
        <Hatch id={`${id}-hatch`} />
        {[0, 0.5, 1].map((part) => (
          <>
            <line
              class={part === 0 ? "axis" : "grid"}
              x1={LEFT}
              x2={WIDTH}
              y1={y(part * top)}
              y2={y(part * top)}
            />
            <text x={LEFT - 8} y={y(part * top) + 4} text-anchor="end">{short(part * top)}</text>
          </>
        ))}
        {total.succeeded + total.failed > 0
          ? null
          : (
            <text x={LEFT + (WIDTH - LEFT) / 2} y={TOP + room / 2 - 8} text-anchor="middle">
              No attempts in this time
            </text>
          )}
        {hours.map((hour, i) => {
          const x = LEFT + i * step;
          const bad = room * hour.failed / top, good = room * hour.succeeded / top;
          return (
            <g class="column">
              <title>{hourText(hour)}</title>
              <rect class="hit" x={x} y={TOP} width={step} height={room} />
              <rect class="ok" x={x + step * 0.16} y={y(0) - good} width={step * 0.68} height={floor(good)} />
              <rect
                class="bad"
                x={x + step * 0.16}
                y={y(0) - good - floor(bad)}
                width={step * 0.68}
                height={floor(bad)}
              />
              <rect
                fill={`url(#${id}-hatch)`}
                x={x + step * 0.16}
                y={y(0) - good - floor(bad)}
                width={step * 0.68}
                height={floor(bad)}
              />
              {i % 4 === 0
                ? <text x={x + step / 2} y={HEIGHT - 6} text-anchor="middle">{clock(hour.hour)}</text>
                : null}
            </g>
          );
        })}
      </svg>
      <ul class="key">
        <li>
          <svg width="11" height="11" aria-hidden="true">
            <rect class="ok" width="11" height="11" />
          </svg>
          Delivered ({count(total.succeeded)})
        </li>
        <li>
          <svg width="11" height="11" aria-hidden="true">
            <rect class="bad" width="11" height="11" />
            <path class="hatch" d="M-2 5 5 -2M0 12 12 0M6 14 14 6" />
          </svg>
          Failed attempts ({count(total.failed)})
        </li>
        <li>Hours in UTC</li>
      </ul>
    </>
  );
}

/** The same as `HourChart`, in words and rows. */
export function HourTable({ hours }: { hours: readonly Hour[] }) {
  return (
    <details class="more">
      <summary>Show as a table</summary>
      <div class="scroll" tabindex={0} role="region" aria-label="Attempts by hour">
        <table>
          <thead>
            <tr>
              <th scope="col">Hour (UTC)</th>
              <th scope="col" class="num">Delivered</th>
              <th scope="col" class="num">Failed attempts</th>
              <th scope="col" class="num">Gone dead</th>
            </tr>
          </thead>
          <tbody>
            {hours.map((hour) => (
              <tr>
                <th scope="row" class="nowrap">{clock(hour.hour)}–{clock(hour.hour + HOUR_MS)}</th>
                <td class="num">{count(hour.succeeded)}</td>
                <td class="num">{count(hour.failed)}</td>
                <td class="num">{count(hour.dead)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** A day at a glance, for a row of a table. */
export function Spark({ hours }: { hours: readonly Hour[] }) {
  const top = Math.max(1, ...hours.map((hour) => hour.succeeded + hour.failed));
  const total = totalOf(hours);
  const said = total.succeeded + total.failed === 0
    ? "No attempts in the last 24 hours"
    : `Last 24 hours: ${count(total.succeeded)} delivered, ${plural(total.failed, "failed attempt")}`;
  /** One path of all hours' bars: where each begins above the ground, and its height. */
  const shape = (bar: (hour: Hour) => [from: number, height: number]) =>
    hours.map((hour, i) => {
      const [from, height] = bar(hour);
      return height === 0
        ? ""
        : `M${5 * i} ${(26 - from).toFixed(1)}v-${height.toFixed(1)}h4v${height.toFixed(1)}z`;
    }).join("");
  return (
    <svg class="spark" width="120" height="26" viewBox="0 0 120 26" role="img" aria-label={said}>
      <title>{said}</title>
      <path class="zero" d={shape((hour) => [0, hour.succeeded + hour.failed === 0 ? 1 : 0])} />
      <path class="ok" d={shape((hour) => [0, floor(24 * hour.succeeded / top)])} />
      <path class="bad" d={shape((hour) => [24 * hour.succeeded / top, floor(24 * hour.failed / top)])} />
    </svg>
  );
}

/** Stripes over what failed: it is told apart without its colour. */
const Hatch = ({ id }: { id: string }) => (
  <defs>
    <pattern id={id} width="7" height="7" patternUnits="userSpaceOnUse">
      <path class="hatch" d="M-1 8 8 -1M-1 1 1 -1M6 8 8 6" />
    </pattern>
  </defs>
);

/** Something that is there is seen. */
const floor = (height: number): number => height === 0 ? 0 : Math.max(1.5, height);

const hourText = (hour: Hour): string =>
  `${clock(hour.hour)}–${clock(hour.hour + HOUR_MS)} UTC: ${count(hour.succeeded)} delivered, ${
    plural(hour.failed, "failed attempt")
  }`;

function describe(hours: readonly Hour[]): string {
  const total = totalOf(hours);
  if (total.succeeded + total.failed === 0) return "No attempts in this time.";
  const busiest = hours.reduce((a, b) => b.succeeded + b.failed > a.succeeded + a.failed ? b : a);
  return `${count(total.succeeded)} delivered and ${plural(total.failed, "failed attempt")} in all; busiest ${
    hourText(busiest)
  }.`;
}

/** The next of 1, 2, 5 times a power of ten, and at least 4. */
function niceTop(value: number): number {
  if (value <= 4) return 4;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 4, 6, 8, 10]) if (factor * power >= value) return factor * power;
  return 10 * power;
}

const short = (value: number): string =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value);

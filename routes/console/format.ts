/** How times, spans and numbers read on a page. Pure: `now` comes in. Times are UTC and say so. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";

/** `2026-10-09 12:00:05` */
export const stamp = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace("T", " ");

/** `12:00` */
export const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 16);

const whole = new Intl.NumberFormat("en");
export const count = (n: number): string => whole.format(n);

/** `1 event`, `2 events` */
export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${count(n)} ${n === 1 ? one : many}`;

/** A span in its largest sensible unit: `85 ms`, `1.2 s`, `4 min`, `3 h`, `2 days`. */
export function span(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND_MS) return `${(ms / SECOND_MS).toFixed(1)} s`;
  if (ms < MINUTE_MS) return `${Math.round(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / HOUR_MS)} h`;
  return `${Math.round(ms / DAY_MS)} days`;
}

/** `3 min ago`, `in 2 h`, `just now`. */
export function relative(ms: number, now: number): string {
  const away = ms - now;
  if (Math.abs(away) < SECOND_MS) return "just now";
  const far = Math.abs(away) < MINUTE_MS
    ? `${Math.round(Math.abs(away) / SECOND_MS)} s`
    : span(Math.abs(away));
  return away < 0 ? `${far} ago` : `in ${far}`;
}

/** A share as people say it: never "100 %" when something failed. */
export function share(part: number, total: number): string {
  if (total === 0) return "none";
  const percent = 100 * part / total;
  if (part < total && percent > 99.9) return "> 99.9 %";
  if (part > 0 && percent < 0.1) return "< 0.1 %";
  return `${Number.isInteger(percent) ? percent : percent.toFixed(1)} %`;
}

/** `datetime-local` text of a time, in UTC and whole minutes. */
export const inputTime = (ms: number): string => new Date(ms).toISOString().slice(0, 16);

/** The API's RFC 3339 of a `datetime-local` value taken as UTC; undefined of nothing. Text that is no time goes on as it is. */
export function fromInputTime(text: string | null): string | undefined {
  if (!text) return undefined;
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)
    ? `${text}:00Z`
    : /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)
    ? `${text}Z`
    : text;
}

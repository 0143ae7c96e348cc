/**
 * What endpoints did hour by hour, for the console: counted in memory as attempts are recorded, for each endpoint, its partner
 * and all of them, and written to one row a subject, hour and instance every few seconds. No read, no check and no write on the path of a delivery. A crash loses
 * what was counted since the last write; the attempts themselves are in the log.
 */
import { addHistogram, countDuration } from "../lib/histogram.ts";
import { type HourRow, keys, within } from "../lib/keys.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { TimerId, Timers } from "../lib/edge/ports.ts";
import type { FlowObserver } from "./flow.ts";

/** How late the figures are at the most. */
export const STATS_FLUSH_MS = 5 * SECOND_MS;
/** A day and what a page may look back beyond it. */
const KEEP_MS = 2 * DAY_MS;
const ROWS_PER_UNIT = 200;

export interface StatsDeps {
  committer: Committer;
  timers: Timers;
  now(): number;
  /** Names this instance's rows. */
  instance: string;
}

/** The subject of everything. */
export const ALL_ENDPOINTS = "all";

interface Entry {
  subject: string;
  hour: number;
  row: HourRow;
  dirty: boolean;
}

export class Stats {
  #entries = new Map<string, Entry>();
  #timer: TimerId | null = null;
  #stopped = false;

  constructor(readonly d: StatsDeps) {}

  /** Counts what was recorded: attempts that were made, and deliveries given up. */
  recorded: FlowObserver["recorded"] = (settlement, dead) => {
    const { kind, work } = settlement;
    if (kind !== "succeeded" && kind !== "failed" && kind !== "dead") return;
    const { row, partner } = work.target;
    const hour = hourOf(this.d.now());
    for (const subject of partner === null ? [row.id, ALL_ENDPOINTS] : [row.id, partner, ALL_ENDPOINTS]) {
      const counted = this.#row(subject, hour);
      if (dead || kind === "dead") counted.dead++;
      if (kind === "dead") continue;
      counted[kind]++;
      countDuration(counted.took, settlement.durationMs);
      if (kind === "succeeded" && !work.item.replay && work.event !== null) {
        countDuration(counted.latency, Math.max(0, settlement.at + settlement.durationMs - work.event.at));
      }
    }
  };

  #row(subject: string, hour: number): HourRow {
    const name = `${subject} ${hour}`;
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      const row: HourRow = { succeeded: 0, failed: 0, dead: 0, took: [], latency: [] };
      this.#entries.set(name, entry = { subject, hour, row, dirty: true });
    }
    entry.dirty = true;
    this.#arm();
    return entry.row;
  }

  #arm(): void {
    if (this.#timer !== null || this.#stopped) return;
    this.#timer = this.d.timers.after(STATS_FLUSH_MS, () => {
      this.#timer = null;
      void this.flush();
    });
  }

  /** Writes what changed. A failed write is made up for by the next, because rows hold totals. Never rejects. */
  async flush(): Promise<void> {
    const dirty = [...this.#entries.values()].filter((entry) => entry.dirty);
    const commits: Promise<unknown>[] = [];
    for (let i = 0; i < dirty.length; i += ROWS_PER_UNIT) {
      const part = dirty.slice(i, i + ROWS_PER_UNIT);
      const writes = part.map(({ subject, hour, row }): Write => ({
        op: "set",
        key: keys.hour(subject, hour, this.d.instance),
        value: structuredClone(row),
        expireIn: KEEP_MS,
      }));
      for (const entry of part) entry.dirty = false;
      commits.push(
        this.d.committer.commit({ checks: [], writes }).catch(() => {
          for (const entry of part) entry.dirty = true;
          this.#arm();
        }),
      );
    }
    await Promise.all(commits);
    const current = hourOf(this.d.now());
    for (const [name, entry] of this.#entries) {
      if (!entry.dirty && entry.hour < current) this.#entries.delete(name);
    }
  }

  /** The last write. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) this.d.timers.cancel(this.#timer);
    await this.flush();
  }
}

/** The start of the hour a time lies in, Unix ms. */
export const hourOf = (time: number): number => Math.floor(time / HOUR_MS) * HOUR_MS;

export interface Hour extends HourRow {
  /** Its start, Unix ms. */
  hour: number;
}

/** The last `count` hours of a subject, oldest first, the present one included; hours without an attempt are zeros. */
export async function readHours(kv: Kv, subject: string, now: number, count = 24): Promise<Hour[]> {
  const last = hourOf(now);
  const hours = Array.from({ length: count }, (_, i) => emptyHour(last - (count - 1 - i) * HOUR_MS));
  const family = keys.hoursOf(subject);
  const start = within(family, hours[0]!.hour), end = within(family, last + HOUR_MS);
  for await (const { key, value } of kv.list<HourRow>({ start, end }, { batchSize: 100 })) {
    const hour = hours[((key[2] as number) - hours[0]!.hour) / HOUR_MS];
    if (hour !== undefined) addHour(hour, value);
  }
  return hours;
}

const emptyHour = (hour: number): Hour => ({
  hour,
  succeeded: 0,
  failed: 0,
  dead: 0,
  took: [],
  latency: [],
});

function addHour(into: HourRow, from: HourRow): void {
  into.succeeded += from.succeeded;
  into.failed += from.failed;
  into.dead += from.dead;
  addHistogram(into.took, from.took);
  addHistogram(into.latency, from.latency);
}

/** Several endpoints' hours as one list. */
export function sumHours(lists: readonly Hour[][], now: number, count = 24): Hour[] {
  const last = hourOf(now);
  const sum = Array.from({ length: count }, (_, i) => emptyHour(last - (count - 1 - i) * HOUR_MS));
  for (const hours of lists) for (const [i, hour] of hours.entries()) addHour(sum[i]!, hour);
  return sum;
}

/** All hours as one. */
export function totalOf(hours: readonly Hour[]): HourRow {
  const total = emptyHour(0);
  for (const hour of hours) addHour(total, hour);
  return total;
}

/** What happened, from the requests that came and the events as stored: a table for people, and what is missing. Pure. */
import type { Arrival } from "./receiver.ts";

/** An event that was acknowledged, and the envelope `GET /v1/events/{id}` shows. */
export interface StoredEvent {
  id: string;
  type: string;
  /** Unix ms. */
  occurredAt: number;
  envelope: string;
}

export interface Endpoint {
  name: string;
  path: string;
  /** Whether it is subscribed to an event's type. */
  wants(type: string): boolean;
}

const HEAD = [
  "endpoint",
  "events of",
  "events",
  "attempts",
  "retries",
  "verified",
  "as stored",
  "first try p50",
  "accepted p50",
];
const LEFT_COLUMNS = 2;

const familyOf = (type: string): string => `${type.split(".")[0]}.*`;

/** @returns Rows of the table with its head, and one line for everything that is not as it has to be. */
export function report(
  events: readonly StoredEvent[],
  endpoints: readonly Endpoint[],
  arrivals: readonly Arrival[],
) {
  const rows: string[][] = [HEAD];
  const missing: string[] = [];
  const byId = new Map(events.map((event) => [event.id, event]));

  for (const { id, path, verified, body } of arrivals) {
    if (!byId.has(id)) {
      missing.push(`${path} was sent ${id || "something without an id"}, which nobody appended`);
    } else if (body !== byId.get(id)!.envelope) {
      missing.push(`${path} was sent ${id} with other bytes than are stored`);
    }
    if (!verified) missing.push(`${path} was sent ${id} with a signature that does not verify`);
  }
  for (const endpoint of endpoints) {
    const wanted = events.filter(({ type }) => endpoint.wants(type));
    for (const family of new Set(wanted.map(({ type }) => familyOf(type)))) {
      const members = wanted.filter(({ type }) => familyOf(type) === family);
      const first: number[] = [], accepted: number[] = [];
      let attempts = 0, verified = 0, asStored = 0;
      for (const { id, occurredAt, envelope } of members) {
        const came = arrivals.filter((arrival) => arrival.path === endpoint.path && arrival.id === id);
        const taken = came.filter(({ status }) => status < 300);
        attempts += came.length;
        verified += came.filter((arrival) => arrival.verified).length;
        if (came[0]) first.push(came[0].at - occurredAt);
        if (taken[0]) accepted.push(taken[0].at - occurredAt);
        if (taken[0]?.body === envelope) asStored++;
        if (taken.length !== 1) {
          missing.push(`${endpoint.name} accepted ${id} ${taken.length} times, not once`);
        }
      }
      rows.push([
        endpoint.name,
        family,
        String(members.length),
        String(attempts),
        String(attempts - members.length),
        `${verified}/${attempts}`,
        `${asStored}/${members.length}`,
        shown(median(first)),
        shown(median(accepted)),
      ]);
    }
  }
  return { rows, missing };
}

function median(values: number[]): number | null {
  return values.length === 0 ? null : values.sort((a, b) => a - b)[values.length >> 1]!;
}

const shown = (ms: number | null): string => ms === null ? "never" : `${ms} ms`;

/** Columns in line: words to the left, numbers to the right. */
export function aligned(rows: readonly string[][]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  const line = (row: string[]) =>
    row.map((cell, i) => i < LEFT_COLUMNS ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)).join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

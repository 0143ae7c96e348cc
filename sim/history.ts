/** What rows said when: endpoints, partners and events as their commits landed. The model's memory. */
import type { EndpointRow, EventRow, PartnerRow } from "../lib/keys.ts";
import { receives, type Seen } from "./match.ts";

export interface Version<T> {
  /** Monotonic ms at which it became durable. */
  from: number;
  row: T;
}

export class History<T> {
  readonly versions: Version<T>[] = [];

  add(from: number, row: T): void {
    this.versions.push({ from, row });
  }

  get now(): T {
    return this.versions.at(-1)!.row;
  }

  /** The rows in effect at some moment of [from, to]. */
  during(from: number, to: number): T[] {
    return this.versions.filter(({ from: began }, i) =>
      began <= to && (this.versions[i + 1]?.from ?? Infinity) >= from
    )
      .map(({ row }) => row);
  }
}

export interface EventRecord extends Seen {
  key: string;
  id: string;
  kind: EventRow["kind"];
  owner: string;
  seq: number | null;
  at: number;
  body: Uint8Array;
  committed: number;
  /** When its commit was asked for: the hot path reads who is there beside it. */
  asked: number;
  erased: boolean;
}

export type EndpointHistory = History<EndpointRow>;
export type PartnerHistory = History<PartnerRow>;

/** Whether the endpoint matched at every moment from when the event's commit was asked for to `until`: then fan-out cannot but choose it. */
export function matchedThroughout(event: EventRecord, endpoint: EndpointHistory, until: number): boolean {
  const first = endpoint.versions[0]!;
  // In one millisecond nobody can tell which was first.
  if (first.from >= event.asked || first.row.created_at > event.at) return false;
  return endpoint.during(event.asked, until).every((row) => receives(event, row));
}

/** The same bytes in the same order. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

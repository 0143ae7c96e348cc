/**
 * The rows that first attempts share (attempt_store.ts), as text. Positions are the last parts of their keys, among the ids of the
 * endpoint's attempts: a block is right behind the first of its own, pointers are where an attempt named by their first event would be,
 * and the mark is in front of all of its bucket.
 */
import {
  type DeliveryId,
  type EndpointId,
  type EventId,
  type EventKey,
  firstDelivery,
  PREFIX,
  ulidTime,
} from "../lib/ids.ts";
import type { AttemptBlock, AttemptPointers, AttemptRow, StoredAttempt } from "../lib/keys.ts";
import { BUCKET_CHARS, column, inColumn, joined, parts, TAIL_CHARS } from "./blocks.ts";

const DELIVERY = `${PREFIX.delivery}_`;
export const PREFIX_CHARS = DELIVERY.length;
const ULID_CHARS = BUCKET_CHARS + TAIL_CHARS;

export const blockAt = (first: DeliveryId): string => first + "+";
export const pointersAt = (first: EventKey): string => `${DELIVERY}${first}-`;
/** The mark that is written with the block or the pointers that have the event's first attempt. */
export const markOf = (event: EventKey): string => DELIVERY + event.slice(0, BUCKET_CHARS);
/** The position behind all of a bucket: letters of ULIDs sort before it. @param mark the bucket's. */
export const behindBucket = (mark: string): string => mark + "~";

/** A block of attempts that are named by their events. */
export const namedText = (rows: readonly AttemptRow[]): string =>
  textOf(rows, { events: joined(rows, (row) => row.event.slice(BUCKET_CHARS)) });

/** A block of attempts with ids of their own. */
export const lateText = (rows: readonly AttemptRow[]): string =>
  textOf(rows, {
    events: joined(rows, (row) => row.event),
    ends: joined(rows, (row) => row.id.slice(PREFIX_CHARS + BUCKET_CHARS)),
  });

export function pointersText(rows: readonly AttemptRow[]): string {
  const pointers: AttemptPointers = {
    of: joined(rows, (row) => row.event.slice(BUCKET_CHARS)),
    at: joined(rows, (row) => row.id.slice(PREFIX_CHARS)),
  };
  return JSON.stringify(pointers);
}

function textOf(rows: readonly AttemptRow[], names: Pick<AttemptBlock, "events" | "ends">): string {
  const block: AttemptBlock = {
    ...names,
    ids: column(rows, ({ event, event_id }) => event_id === idOf(event) ? null : event_id),
    types: column(rows, (row) => row.event_type),
    tenants: column(rows, (row) => row.tenant_id),
    http: column(rows, (row) => row.http_status),
    took: column(rows, (row) => row.duration_ms),
    lags: column(rows, (row) => row.created_at - ulidTime(names.ends === undefined ? row.event : row.id)),
  };
  return JSON.stringify(block);
}

/** The attempts that a row of an endpoint is of. */
export function attemptsOfRow(endpoint: EndpointId, position: string, value: StoredAttempt): AttemptRow[] {
  if (value === true || isPointers(position)) return [];
  if (typeof value !== "string") return [value];
  const block = JSON.parse(value) as AttemptBlock, { events, ends } = block;
  const bucket = bucketOf(position);
  if (ends === undefined) {
    return parts(events, TAIL_CHARS).map((tail, i) => {
      const event = bucket + tail as EventKey;
      return attemptAt(block, i, event, firstDelivery(endpoint, event), ulidTime(event));
    });
  }
  const tails = parts(ends, TAIL_CHARS);
  return parts(events, ULID_CHARS).map((event, i) => {
    const id = DELIVERY + bucket + tails[i]! as DeliveryId;
    return attemptAt(block, i, event as EventKey, id, ulidTime(id));
  });
}

function attemptAt(
  block: AttemptBlock,
  i: number,
  event: EventKey,
  id: DeliveryId,
  since: number,
): AttemptRow {
  return {
    id,
    event,
    event_id: inColumn(block.ids, i) ?? idOf(event),
    event_type: inColumn(block.types, i),
    tenant_id: inColumn(block.tenants, i),
    attempt: 1,
    first_attempt: 1,
    status: "succeeded",
    http_status: inColumn(block.http, i),
    error: null,
    duration_ms: inColumn(block.took, i),
    next_attempt_at: null,
    created_at: since + inColumn(block.lags, i),
  };
}

/** A first attempt that succeeded, and its event. */
export interface Lead {
  event: EventKey;
  id: DeliveryId;
}

/** What a row tells of first attempts that succeeded, of those events. */
export function leadsOfRow(
  endpoint: EndpointId,
  position: string,
  value: StoredAttempt,
  wanted: ReadonlySet<EventKey>,
): Lead[] {
  if (value === true) return [];
  if (typeof value !== "string") {
    const { event, id, status } = value;
    return wanted.has(event) && status === "succeeded" && id === firstDelivery(endpoint, event)
      ? [value]
      : [];
  }
  if (isPointers(position)) return pointersOf(position, value).filter(({ event }) => wanted.has(event));
  const { events, ends } = JSON.parse(value) as AttemptBlock;
  if (ends !== undefined) return [];
  return parts(events, TAIL_CHARS).map((tail) => bucketOf(position) + tail as EventKey)
    .filter((event) => wanted.has(event))
    .map((event) => ({ event, id: firstDelivery(endpoint, event) }));
}

function pointersOf(position: string, value: StoredAttempt): Lead[] {
  const { of, at } = JSON.parse(value as string) as AttemptPointers, ids = parts(at, ULID_CHARS);
  return parts(of, TAIL_CHARS).map((tail, i) => ({
    event: bucketOf(position) + tail as EventKey,
    id: DELIVERY + ids[i]! as DeliveryId,
  }));
}

/** The events whose pairs a row tells of: when none of them has a row of its own any more, it may leave. */
export function eventsOfRow(endpoint: EndpointId, position: string, value: StoredAttempt): EventKey[] {
  const told = isPointers(position) ? pointersOf(position, value) : attemptsOfRow(endpoint, position, value);
  return told.map(({ event }) => event);
}

const bucketOf = (position: string): string => position.slice(PREFIX_CHARS, PREFIX_CHARS + BUCKET_CHARS);

const isPointers = (position: string): boolean => position.endsWith("-");

/** The id of an event that is named by its key. */
const idOf = (event: EventKey) => `${PREFIX.event}_${event}` as EventId;

/** The row of an attempt, as its settlement tells it ("Delivering an attempt", step 5): the document's `webhook_deliveries`. */
import { type DeliveryId, ulidTime } from "../lib/ids.ts";
import type { AttemptRow } from "../lib/keys.ts";
import { MAX_FIRST_LAG_MS } from "../lib/limits.ts";
import type { Settlement, Work } from "./work.ts";

/** A settlement that is on record: an attempt was made, or none can be made any more. */
export type Recorded = Settlement & { kind: "succeeded" | "failed" | "dead" };

/** @param next when the next attempt comes, Unix ms; null: never. A failure without one is dead. */
export function attemptRow(settlement: Recorded, id: DeliveryId, next: number | null): AttemptRow {
  const { work: { item, target, event }, kind, at } = settlement;
  const dead = kind === "dead" || (kind === "failed" && next === null);
  return {
    id,
    event: item.event,
    event_id: item.id,
    event_type: item.type,
    tenant_id: event === null ? target.row.tenant_id : event.tenant,
    attempt: item.attempt,
    first_attempt: item.first,
    status: dead ? "dead" : kind === "succeeded" ? "succeeded" : "failed",
    http_status: kind === "dead" ? null : settlement.httpStatus,
    error: kind === "succeeded" ? null : settlement.error,
    duration_ms: kind === "dead" ? 0 : Math.round(settlement.durationMs),
    next_attempt_at: next,
    created_at: at,
  };
}

/** Whether the event names the attempt's row: nobody else may have tried it, and its time is that of the event, nearly. */
export function isHotFirst({ work: { item, pair }, at }: { work: Work; at: number }): boolean {
  const lag = at - ulidTime(item.event);
  return pair === null && item.attempt === 1 && lag >= 0 && lag <= MAX_FIRST_LAG_MS;
}

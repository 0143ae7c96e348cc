/**
 * Exports: the events of a tenant or an identity up to the moment it was asked for. The job counts them and says when it is
 * ready; what is read is the live event store, never a copy, so an erasure after an export holds for the export too.
 */
import { rfc3339 } from "../../lib/envelope.ts";
import { type EventIndexRow, keys, type OwnerRef } from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import type { ExportRow } from "../../lib/payloads/job_rows.ts";
import { behind, eventsIn } from "../event_index.ts";
import { ending, type JobDeps, step, tell } from "./job_store.ts";

export const EXPORT_KEPT_MS = 7 * DAY_MS;
const COUNTED_PER_STEP = 10_000;

/** Whether an export holds this event. */
export const exported = (row: ExportRow, event: EventIndexRow): boolean =>
  row.identity_id === null || event.identity === row.identity_id;

export async function exportStep(d: JobDeps, owner: OwnerRef, row: ExportRow): Promise<void> {
  const from = row.cursor === null ? "" : behind(row.cursor);
  let scanned = 0, events = row.events, cursor = row.cursor;
  for await (const event of eventsIn(d.kv, keys.eventsOfTenant(owner.tenant), { from, to: row.until })) {
    scanned++;
    cursor = event.key;
    if (exported(row, event)) events++;
    if (scanned === COUNTED_PER_STEP) break;
  }
  await step<ExportRow>(d, owner, row, async (tx) => {
    if (scanned === COUNTED_PER_STEP) return { events, cursor };
    const expires_at = tx.now + EXPORT_KEPT_MS;
    const event = await tell(tx, "export.completed", { export_id: row.id, expires_at: rfc3339(expires_at) });
    return {
      events,
      cursor: null,
      status: "completed",
      completed_at: tx.now,
      due: null,
      expires_at,
      event: ending(event),
    };
  });
}

/**
 * A store with a past and a future: N events delivered to the first endpoint (event, index and attempt rows), and N
 * jobs pending for a second one, one item each, due in ten years. Rows are the pipeline's own, in commits as large as they go.
 */
import type { Found, PhaseOptions } from "../engine.ts";
import { firstWrites } from "../../actors/attempt_store.ts";
import { indexWrites } from "../../actors/event_index.ts";
import { eventWrites, type StoredEvent } from "../../actors/event_store.ts";
import { writeAll } from "../../lib/edge/commit_batch.ts";
import type { Write } from "../../lib/edge/kv.ts";
import { buildEnvelope } from "../../lib/envelope.ts";
import { type EventId, type EventKey, firstDelivery, type Ids, type JobId } from "../../lib/ids.ts";
import { type AttemptRow, type DeliverJob, keys } from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { realIds } from "../../lib/edge/ports.ts";
import { EVENT_TYPE, invoice } from "../payload.ts";
import { endpointId, openWorld, TENANT } from "../world.ts";

/** How far ahead the pending jobs are due: nothing of a bench reaches it but a shifted clock. */
export const PENDING_MS = 3_650 * DAY_MS;
const SHARDS = 8;
const PER_COMMIT = 190;
/** Endpoint of the delivered past, and of the jobs. */
const DELIVERED = endpointId(0), PENDING = endpointId(9);

export async function seed({ file, origin, n }: PhaseOptions): Promise<Found> {
  const world = await openWorld({ file, origin, paths: ["/hook/0"] });
  const ids = realIds(), due = Date.now() + PENDING_MS;
  const start = performance.now();
  for (let done = 0; done < n;) {
    const commit = world.kv.atomic(), events: StoredEvent[] = [];
    for (let i = 0; i < PER_COMMIT && done < n; i++, done++) {
      const event = eventOf(done, ids);
      events.push(event);
      writeAll(commit, [
        ...eventWrites(event),
        pendingWrite(event, done, due, ids),
      ]);
    }
    writeAll(commit, [
      ...indexWrites(events),
      ...firstWrites(DELIVERED, { named: events.map(deliveredOf), late: [] }),
    ]);
    await commit.commit();
  }
  await world.close();
  return {
    seconds: Math.round((performance.now() - start) / 1_000),
    fileMb: Math.round(Deno.statSync(file).size / 1e6),
  };
}

function eventOf(i: number, ids: Ids): StoredEvent {
  const key = ids.ulid() as EventKey, id = `evt_${key}` as EventId, owner = `old-${i % 1_000}`;
  const at = Date.now(), sequence = 1 + Math.floor(i / 1_000);
  const data = invoice(i);
  const body = buildEnvelope({
    id,
    type: EVENT_TYPE,
    occurredAt: at,
    tenant: TENANT,
    identity: null,
    sequence,
    data,
  });
  const scope = { tenant: TENANT, partner: null, identity: null, about: null };
  return { key, id, type: EVENT_TYPE, ...scope, kind: "custom", owner, seq: sequence, at, body };
}

function deliveredOf(event: StoredEvent): AttemptRow {
  return {
    id: firstDelivery(DELIVERED, event.key),
    event: event.key,
    event_id: event.id,
    event_type: event.type,
    tenant_id: TENANT,
    attempt: 1,
    first_attempt: 1,
    status: "succeeded",
    http_status: 204,
    error: null,
    duration_ms: 12,
    next_attempt_at: null,
    created_at: event.at,
  };
}

function pendingWrite(event: StoredEvent, i: number, due: number, ids: Ids): Write {
  const item = { event: event.key, id: event.id, type: event.type, attempt: 1, first: 1, replay: false };
  const value: DeliverJob = { v: 1, kind: "deliver", endpoint: PENDING, items: [item] };
  return { op: "set", key: keys.job(i % SHARDS, due + i, ids.ulid() as JobId), value };
}

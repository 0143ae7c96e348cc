/**
 * Test deliveries ("Test deliveries"): a `webhook.test` platform event, one attempt within the request, its rows. Never retried,
 * fanned out or replayed; works on a disabled endpoint. A fault of ours records nothing (D4).
 */
import { ApiError, notFound } from "../lib/errors.ts";
import { buildEnvelope } from "../lib/envelope.ts";
import { type EndpointId, type EventId, type EventKey, idAt, type Ids, ulidTime } from "../lib/ids.ts";
import type { AttemptRow } from "../lib/keys.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Write } from "../lib/edge/kv.ts";
import { type DeliverDeps, request } from "./deliver.ts";
import { attemptWrite, pairWrite } from "./attempt_store.ts";
import { indexWrites } from "./event_index.ts";
import { eventWrites, type StoredEvent } from "./event_store.ts";

export interface TestDeps extends Pick<DeliverDeps, "directory" | "secrets" | "http" | "userAgent" | "now"> {
  committer: Committer;
  ids: Ids;
}

/** One attempt now; the row it recorded. @throws ApiError 404, or 503 when the fault is ours. */
export async function testDelivery(
  endpoint: EndpointId,
  d: TestDeps,
  extra: Write[] = [],
): Promise<AttemptRow> {
  await d.directory.refresh();
  const target = await d.directory.endpoint(endpoint);
  if (target === null || target.row.deleted_at !== null) throw notFound("webhook");
  const key = d.ids.ulid() as EventKey;
  const id = `evt_${key}` as EventId;
  const at = ulidTime(key);
  const { tenant_id } = target.row;
  const event: StoredEvent = {
    key,
    id,
    type: "webhook.test",
    tenant: tenant_id,
    partner: target.partner,
    identity: null,
    about: null,
    kind: "platform",
    owner: "platform",
    seq: null,
    at,
    body: buildEnvelope({
      id,
      type: "webhook.test",
      occurredAt: at,
      tenant: tenant_id,
      identity: null,
      sequence: null,
      data: { message: "hello" },
    }),
  };
  const started = d.now();
  const sent = await request(target, event, started, d);
  const outcome = sent === "secret_unavailable"
    ? { kind: "failed" as const, error: sent, httpStatus: null }
    : sent.outcome;
  if (outcome.kind === "ours") {
    throw new ApiError(
      "unavailable",
      "Cannot test the endpoint: the fault is on our side.",
      "Try again in a moment.",
    );
  }
  const row: AttemptRow = {
    id: idAt(d.ids, "delivery", started),
    event: key,
    event_id: id,
    event_type: "webhook.test",
    tenant_id,
    attempt: 1,
    first_attempt: 1,
    status: outcome.kind,
    http_status: outcome.httpStatus,
    error: outcome.kind === "failed" ? outcome.error : null,
    duration_ms: sent === "secret_unavailable" ? 0 : Math.round(sent.durationMs),
    next_attempt_at: null,
    created_at: started,
  };
  await d.committer.commit({
    checks: [],
    writes: [
      ...eventWrites(event),
      ...indexWrites([event]),
      attemptWrite(endpoint, row),
      pairWrite(endpoint, key, null, row),
      ...extra,
    ],
  });
  return row;
}

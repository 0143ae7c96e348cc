/**
 * Stage 2, deliver: load → act → settle, for one endpoint and event ("Delivering an attempt", steps 1 to 4). Invariants:
 * O3 (exactly the stored bytes), D2 (no dialling of a disabled or deleted endpoint), D3 (the guard judges in this very
 * attempt), D4 (faults of ours are not charged).
 */
import type { DeliverJob } from "../lib/keys.ts";
import { COMMIT_SLACK_MS, DEADLINE_MS, JOB_RETRY_MS } from "../lib/limits.ts";
import type { Outcome } from "../lib/outcome.ts";
import { signatureHeader } from "../lib/signing.ts";
import { type GuardedHttp, WITHDRAWN } from "../lib/edge/http.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Directory, Target } from "./directory.ts";
import { loadEvents, type StoredEvent } from "./event_store.ts";
import { readPairs } from "./pair_state.ts";
import type { Secrets } from "./secrets.ts";
import type { Held, Settlement, Work } from "./work.ts";

/** The guarded client: judges, resolves, judges again, dials the judged address. */
export type Send = Pick<GuardedHttp, "send">;

export interface DeliverDeps {
  kv: Kv;
  now(): number;
  directory: Directory;
  secrets: Secrets;
  http: Send;
  userAgent: string;
  /** The tenant's `retention.events_days` in ms, at most the replay window. */
  windowOf(event: StoredEvent): Promise<number>;
}

/** The works of a Deliver job, with payload and pair state, read in batches. None when the endpoint was never there. */
export async function openDeliver(held: Held<DeliverJob>, d: DeliverDeps): Promise<Work[]> {
  await d.directory.refresh();
  const target = await d.directory.endpoint(held.job.endpoint);
  if (target === null) return [];
  const events = await loadEvents(d.kv, held.job.items.map((item) => item.event));
  const works = held.job.items.map((item): Work => {
    const event = events.get(item.event) ?? null;
    return { held, target, item, event: event?.body ? event : null, pair: null, started: false };
  });
  await readPairs(d.kv, works);
  return works;
}

/** What is known before a request is made: a settlement, or null when the attempt has to be made. */
export async function settleWithoutRequest(work: Work, d: DeliverDeps): Promise<Settlement | null> {
  const { item, target, event } = work;
  const pair = work.pair?.row ?? null;
  if (target.row.deleted_at !== null) return { kind: "nothing", work };
  if (pair !== null) {
    if (item.first < pair.first) return { kind: "nothing", work }; // superseded by a replay
    if (item.attempt <= pair.attempt) return { kind: "nothing", work }; // recorded, and its retry with it
    if (pair.succeeded && !item.replay) return { kind: "nothing", work };
  }
  if (!target.row.enabled) return { kind: "dead", work, error: "endpoint_disabled", at: d.now() };
  if (event === null) return { kind: "dead", work, error: "event_unavailable", at: d.now() };
  if (target.held) {
    const past = d.now() > event.at + await d.windowOf(event); // R1
    return past ? { kind: "dead", work, error: "event_unavailable", at: d.now() } : { kind: "parked", work };
  }
  return null;
}

/** One attempt: open the secret, sign, POST. Never rejects. */
export async function attempt(work: Work, d: DeliverDeps): Promise<Settlement> {
  const at = d.now();
  // A claim that could run out under way is left to whoever takes it next (J3).
  if (work.held.until - at < DEADLINE_MS + COMMIT_SLACK_MS) return { kind: "later", work, due: at };
  const wanted = async () => {
    const now = await d.directory.current(work.target);
    return now !== null && now.row.enabled && now.row.deleted_at === null && !now.held;
  };
  const sent = await request(work.target, work.event!, at, d, wanted);
  if (sent === "secret_unavailable") {
    return { kind: "failed", work, error: "secret_unavailable", httpStatus: null, durationMs: 0, at };
  }
  const { outcome, durationMs } = sent;
  switch (outcome.kind) {
    case "succeeded":
      return { kind: "succeeded", work, httpStatus: outcome.httpStatus, durationMs, at };
    case "failed":
      return { ...outcome, work, durationMs, at };
    case "ours": // what was withdrawn is looked at again at once, and settled by what it is now
      return { kind: "later", work, due: outcome.reason === WITHDRAWN ? d.now() : d.now() + JOB_RETRY_MS };
  }
}

/** Signs the stored bytes for this moment and sends them. Shared with the test delivery. */
export async function request(
  target: Target,
  event: Pick<StoredEvent, "id" | "body">,
  at: number,
  d: Pick<DeliverDeps, "secrets" | "http" | "userAgent">,
  wanted?: () => Promise<boolean>,
): Promise<{ outcome: Outcome; durationMs: number } | "secret_unavailable"> {
  const secrets = await d.secrets.of(target.row, at);
  if (secrets === null) return "secret_unavailable";
  const timestamp = Math.floor(at / 1_000);
  const body = event.body!;
  const headers = {
    ...secrets.headers, // first: none of ours can be overwritten
    "content-type": "application/json",
    "user-agent": d.userAgent,
    "webhook-id": event.id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatureHeader(secrets.signers, event.id, timestamp, body),
  };
  return await d.http.send({ url: target.row.url, headers, body, ...wanted && { wanted } });
}

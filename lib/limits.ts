/**
 * Every limit of the system, with its unit in its name, and the relations between them.
 * Source: DESIGN-level limits are restated in ARCHITECTURE.md; the document's are cited at the line.
 */
import { invariant } from "./errors.ts";

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

// --- Deno KV (measured platform limits, kept below the edge) -----------------------------------------
export const MAX_MUTATIONS_PER_COMMIT = 1_000;
export const MAX_CHECKS_PER_COMMIT = 100;
/** The platform's limit is 819,200 B; the rest is room for keys and framing we only estimate. */
export const MAX_COMMIT_BYTES = 700_000;
export const MAX_COMMIT_KEY_BYTES = 72_000;
export const MAX_VALUE_BYTES = 65_536;
export const MAX_KEY_BYTES = 2_048;
export const MAX_CHUNK_BYTES = 60_000;
/** A block: a row that tells of several events or attempts. */
export const MAX_BLOCK_BYTES = 60_000;
export const MAX_GET_MANY_KEYS = 10;

// --- Jobs --------------------------------------------------------------------------------------------
/** A claim lasts this long (J3). */
export const VISIBILITY_MS = 60 * SECOND_MS;
export const COMMIT_SLACK_MS = 10 * SECOND_MS;
export const MAX_ITEMS_PER_JOB = 20;
/** Attempts still open after this are moved off their Fanout job onto Deliver rows. */
export const HANDOVER_AFTER_MS = 2 * SECOND_MS;
/**
 * A first attempt that begins so soon after its event has the id the event gives it (`firstDelivery`), of the event's time. So a row's
 * `created_at` is that of its id, or up to this much later.
 */
export const MAX_FIRST_LAG_MS = 3 * SECOND_MS;
export const JOB_RETRY_MS = 30 * SECOND_MS;
export const MAX_JOB_THROWS = 13;
export const HEARTBEAT_EVERY_MS = 1 * SECOND_MS;
export const HEARTBEAT_DEAD_AFTER_MS = 5 * SECOND_MS;
export const FANOUT_BACKOFF_MIN_MS = 30 * SECOND_MS;
export const FANOUT_BACKOFF_MAX_MS = 5 * MINUTE_MS;
export const GRACEFUL_STOP_MS = 20 * SECOND_MS;
/** The same on Deno Deploy, which kills an instance 5 s after it asked it to end. */
export const DEPLOY_STOP_MS = 4 * SECOND_MS;
/** How long the sweep of an instance on Deno Deploy stays up for what it set going: less than until the next one. */
export const DEPLOY_STAY_MS = 50 * SECOND_MS;

// --- Delivery ----------------------------------------------------------------------------------------
/** The whole attempt, DNS included. */
export const DEADLINE_MS = 15 * SECOND_MS;
export const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
/** One look-up, and the question to the resolver itself after one has failed. */
export const DNS_TIMEOUT_MS = 5 * SECOND_MS;
export const DNS_PROBE_MS = 2 * SECOND_MS;
/** How long creating an endpoint waits for DNS before it leaves the answer to the first attempt. */
export const DNS_CHECK_MS = 3 * SECOND_MS;
/** Shorter than the idle time-out of common servers (5 s and up), so that we close an idle connection first. */
export const KEEP_ALIVE_MS = 4 * SECOND_MS;
/** Connection pools: one per origin and judged address. */
export const MAX_POOLS = 1_024;
export const POOL_IDLE_MS = 60 * SECOND_MS;
export const MAX_RESPONSE_BYTES = 4_096;
export const MAX_ATTEMPTS = 13;
export const MAX_DELAY_S = 86_400;
export const FAILURES_TO_DISABLE = 100;
export const FAILING_SPAN_MS = 24 * HOUR_MS;
export const ENDPOINT_CACHE_MS = 30 * SECOND_MS;
export const SECRET_CACHE_MS = 60 * SECOND_MS;
export const REPLAY_WINDOW_MS = 30 * DAY_MS;
export const MAX_RETRY_AFTER_MS = 24 * HOUR_MS;

// --- HTTP API ----------------------------------------------------------------------------------------
export const MAX_BODY_BYTES = 1_048_576;
export const MAX_URL_BYTES = 2_048;
export const LIST_LIMIT_DEFAULT = 25;
export const LIST_LIMIT_MAX = 100;
export const CURSOR_TTL_MS = 24 * HOUR_MS;
export const IDEMPOTENCY_TTL_MS = 30 * DAY_MS;
export const MAX_ENDPOINTS_PER_SCOPE_OWNER = 20;
export const MAX_REPLAY_EVENTS = 1_000;
export const MAX_REPLAY_IDS = 100;
export const MAX_BATCH_EVENTS = 100;
export const MAX_OWNER_KEY_BYTES = 256;
export const RATE_PER_MINUTE_KEY = 600;
export const RATE_PER_MINUTE_TENANT = 1_800;
/** Failed authentications a client address may make. */
export const FAILED_AUTH_PER_MINUTE = 60;
/** How long a write of another isolate (a revoked key) may go unnoticed. */
export const KEY_CACHE_MS = 5 * SECOND_MS;
/** A `POST` under an `Idempotency-Key` that has not ended by then died with its process, and may be taken over. */
export const IDEMPOTENCY_RUNNING_MS = 2 * MINUTE_MS;
export const BODY_DEADLINE_MS = 30 * SECOND_MS;
export const MAX_OVERLAP_HOURS = 168;
export const DEFAULT_OVERLAP_HOURS = 24;

// --- Content -----------------------------------------------------------------------------------------
export const TEXT_BYTES_DEFAULT = 16_384;
export const TEXT_BYTES_MAX = 65_536;
export const EVENTS_DAYS_DEFAULT = 30;
/** An envelope travels in one commit with its index rows, in chunks. */
export const MAX_ENVELOPE_BYTES = 512 * 1024;
/** Nesting of a request's JSON: deep enough for people, shallow enough for recursive readers. */
export const MAX_JSON_DEPTH = 64;

invariant(VISIBILITY_MS > DEADLINE_MS + COMMIT_SLACK_MS, "J3");
invariant(HANDOVER_AFTER_MS < VISIBILITY_MS, "J1");
invariant(CONNECT_TIMEOUT_MS < DEADLINE_MS, "D4");
invariant(DNS_TIMEOUT_MS + DNS_PROBE_MS + CONNECT_TIMEOUT_MS < DEADLINE_MS, "D4");
invariant(HEARTBEAT_EVERY_MS * 3 < HEARTBEAT_DEAD_AFTER_MS, "J3");
invariant(MAX_CHUNK_BYTES < MAX_VALUE_BYTES, "O3");
invariant(MAX_BLOCK_BYTES < MAX_VALUE_BYTES, "O1");
invariant(MAX_ENVELOPE_BYTES < MAX_COMMIT_BYTES, "O1");

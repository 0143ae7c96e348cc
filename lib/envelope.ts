/**
 * The event envelope (document, "Event envelope and payloads"; reference §5): built once, as the bytes that are signed
 * and sent by every attempt (O3).
 */
import { createHmac } from "node:crypto";
import { type ApiError, invalidRequest } from "./errors.ts";
import { type EndpointId, type EventId, PREFIX, ulidFrom } from "./ids.ts";
import { JsonText } from "./json.ts";
import { MAX_ENVELOPE_BYTES } from "./limits.ts";

/**
 * Every version of the envelope there was, the one in use last. Stored rows name the version of their head by its place here
 * (lib/event_row.ts): a version is added at the end, and what an old one's head looks like never changes (O3).
 */
export const API_VERSIONS = ["2026-10-01"] as const;
export const API_VERSION = API_VERSIONS[API_VERSIONS.length - 1]!;

/** What stands before an envelope's data. */
export interface EnvelopeHead {
  id: string;
  type: string;
  /** Unix ms. */
  occurredAt: number;
  tenant: string | null;
  identity: string | null;
  /** Null for platform events. */
  sequence: number | null;
}

export interface EnvelopeParts extends EnvelopeHead {
  /** A JSON value, with `JSON.rawJSON` numbers if need be, or a `JsonText` that goes out as the producer wrote it. */
  data: unknown;
}

const encoder = new TextEncoder();
/** Ids, type names and dates hold nothing that JSON escapes: quoting them is enough. */
const quoted = (safe: string | null) => safe === null ? "null" : `"${safe}"`;

// One event a millisecond is slow for us: the last date is nearly always the next one too.
let dateMs = NaN;
let dateText = "";

/** RFC 3339 UTC with milliseconds. */
export function rfc3339(ms: number): string {
  if (ms !== dateMs) {
    dateText = new Date(ms).toISOString();
    dateMs = ms;
  }
  return dateText;
}

/** An envelope's text up to the value of `data`; that and a closing brace are all that follows. */
export function envelopeHead(e: EnvelopeHead, version: string): string {
  return `{"id":"${e.id}","type":"${e.type}","api_version":"${version}","occurred_at":"${
    rfc3339(e.occurredAt)
  }","tenant_id":${quoted(e.tenant)},"identity_id":${quoted(e.identity)},"sequence":${e.sequence},"data":`;
}

/**
 * The envelope's bytes: `id`, `type`, `api_version`, `occurred_at`, `tenant_id`, `identity_id`, `sequence`, `data`, in
 * that order, without white space between them.
 * @throws ApiError 400 at path `data` when the envelope is over 512 KiB.
 */
export function buildEnvelope(e: EnvelopeParts): Uint8Array<ArrayBuffer> {
  const data = e.data instanceof JsonText ? e.data.text : JSON.stringify(e.data);
  const bytes = encoder.encode(`${envelopeHead(e, API_VERSION)}${data}}`);
  if (bytes.length > MAX_ENVELOPE_BYTES) throw tooLarge(bytes.length);
  return bytes;
}

function tooLarge(length: number): ApiError {
  return invalidRequest(
    [{
      path: "data",
      message: `makes an event of ${length} bytes; at most ${MAX_ENVELOPE_BYTES} are allowed`,
    }],
    "Send a smaller event: put the content elsewhere and refer to it.",
  );
}

/**
 * The deterministic id of a `webhook.disabled` (document, "Platform events"): a ULID of the triggering delivery row's
 * `created_at` and the first 10 bytes of HMAC-SHA256(`PM_HASH_KEY`, "webhook.disabled:" + webhook + ":" + event + ":" +
 * attempt), so that a record that runs twice writes the same event.
 * @param createdAt Unix ms of the delivery row that tripped it.
 */
export function webhookDisabledId(
  hashKey: Uint8Array,
  createdAt: number,
  webhook: EndpointId,
  triggerEvent: EventId,
  attempt: number,
): EventId {
  const mac = createHmac("sha256", hashKey).update(`webhook.disabled:${webhook}:${triggerEvent}:${attempt}`);
  return `${PREFIX.event}_${ulidFrom(createdAt, mac.digest())}` as EventId;
}

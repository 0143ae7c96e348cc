/**
 * What an attempt came to, and the tables that say so (the document, "HTTP client"; reference §6, "Outcomes"). Pure.
 * `ours` is a fault on our side (D4): it uses no attempt and counts no failure, the job just comes again.
 */
import type { AttemptError } from "./keys.ts";
import { MAX_RETRY_AFTER_MS, SECOND_MS } from "./limits.ts";

export type Outcome =
  | { kind: "succeeded"; httpStatus: number }
  | Failed
  /** `reason` is a code for logs, never content: `dns_unreachable`, `shutdown`, `EMFILE`, … */
  | { kind: "ours"; reason: string };

/** `retryAfterMs`: the receiver asked for at least this pause (429 and 503), at most 24 h. */
export type Failed = {
  kind: "failed";
  error: AttemptError;
  httpStatus: number | null;
  retryAfterMs?: number;
};

/**
 * The outcome of an HTTP answer. The body plays no part.
 * @param retryAfter the `Retry-After` header, or null @param now Unix ms, for a `Retry-After` that is a date
 */
export function classifyResponse(status: number, retryAfter: string | null, now: number): Outcome {
  if (status >= 200 && status < 300) return { kind: "succeeded", httpStatus: status };
  const failed: Failed = { kind: "failed", error: statusError(status), httpStatus: status };
  if (status === 429 || status === 503) {
    const pause = parseRetryAfter(retryAfter, now);
    if (pause !== null) failed.retryAfterMs = pause;
  }
  return failed;
}

function statusError(status: number): AttemptError {
  if (status === 410) return "status_410";
  if (status >= 500) return "status_5xx";
  if (status >= 400) return "status_4xx";
  if (status >= 300) return "redirect"; // also 304: nothing in 3xx takes an event
  return "connect"; // no final answer at all
}

/** `Retry-After` in ms from `now`, at most 24 h; null when it is absent, unreadable or not in the future. */
export function parseRetryAfter(value: string | null, now: number): number | null {
  const text = value?.trim();
  if (!text) return null;
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND_MS : dateOf(text) - now;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : null;
}

/** An HTTP date in Unix ms, or NaN. One of its three forms (RFC 9110 §5.6.7) names no zone, and all of them are UTC. */
function dateOf(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text)) return NaN;
  return Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text);
}

/** A failure with no HTTP answer. */
export const failed = (error: AttemptError): Failed => ({ kind: "failed", error, httpStatus: null });

/**
 * Codes of socket and client errors that say something about us, not about the receiver (D4): no file descriptors, ports or
 * buffers left, no permission to use the network, a request we built wrongly, a client closed by our own shutdown.
 */
const OUR_CODES = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRNOTAVAIL",
  "EACCES",
  "EPERM",
  "NotCapable",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_DESTROYED",
  "UND_ERR_CLOSED",
  "shutdown",
]);

/** True for a code of our own making (D4). */
export const isOurCode = (code: string): boolean => OUR_CODES.has(code);

/**
 * The one table from error codes to outcomes. What it does not name is `connect`, or `tls` by its prefix.
 * A connect or handshake that takes too long is a `timeout` like any other limit of time.
 */
const CODE_ERRORS: Record<string, "timeout" | "tls" | "connect"> = {
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  ETIMEDOUT: "timeout",
  TimeoutError: "timeout",
  deadline: "timeout",
  "23": "timeout", // DOMException.TIMEOUT_ERR, the `code` of a TimeoutError
  EPROTO: "tls",
  CERT_HAS_EXPIRED: "tls",
  CERT_NOT_YET_VALID: "tls",
  CERT_REVOKED: "tls",
  CERT_UNTRUSTED: "tls",
  CERT_REJECTED: "tls",
  CERT_SIGNATURE_FAILURE: "tls",
  DEPTH_ZERO_SELF_SIGNED_CERT: "tls",
  SELF_SIGNED_CERT_IN_CHAIN: "tls",
  UNABLE_TO_GET_ISSUER_CERT: "tls",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls",
  INVALID_PURPOSE: "tls",
  HOSTNAME_MISMATCH: "tls",
};

/** The outcome code of a socket or client error code. */
export function classifyCode(code: string): "timeout" | "tls" | "connect" {
  if (Object.hasOwn(CODE_ERRORS, code)) return CODE_ERRORS[code]!;
  return code.startsWith("ERR_TLS_") || code.startsWith("ERR_SSL_") ? "tls" : "connect";
}

/** What states are called, how bad they are, and what to do about them. */
import type { AttemptError, EndpointRow, HealthRow } from "../../lib/keys.ts";
import { MAX_ATTEMPTS } from "../../lib/limits.ts";
import type { Delivery } from "./shapes.ts";
import { Pill, type Tone } from "./ui.tsx";

/** Failures in a row from which an endpoint is called failing, not just unsteady. */
export const FAILING_FROM = 5;

export interface Health {
  tone: Tone;
  word: string;
  /** What a person should know or do; null when nothing. */
  advice: string | null;
}

export function healthOf(row: EndpointRow, health: HealthRow | null): Health {
  if (row.deleted_at !== null) {
    return {
      tone: "idle",
      word: "Deleted",
      advice: "Nothing is delivered. The log stays readable until retention.",
    };
  }
  if (!row.enabled) return disabled(row);
  const streak = health?.consecutive_failures ?? 0;
  if (streak >= FAILING_FROM) {
    return {
      tone: "bad",
      word: "Failing",
      advice:
        `The last ${streak} attempts failed. Retries go on; after 100 failures over 24 hours the endpoint is disabled.`,
    };
  }
  if (streak > 0) return { tone: "warn", word: "Unsteady", advice: null };
  if (health === null || health.last_success_at === null) {
    return { tone: "idle", word: "No deliveries", advice: null };
  }
  return { tone: "ok", word: "Healthy", advice: null };
}

function disabled(row: EndpointRow): Health {
  switch (row.disabled_reason) {
    case "gone":
      return {
        tone: "bad",
        word: "Disabled: gone",
        advice:
          "The receiver answered 410 Gone. Correct its address, then enable it and replay what it missed.",
      };
    case "failing":
      return {
        tone: "bad",
        word: "Disabled: failing",
        advice:
          "100 attempts in a row failed over 24 hours or more. Repair the receiver, enable it and replay what it missed.",
      };
    default:
      return {
        tone: "idle",
        word: "Disabled",
        advice: "Disabled by hand. Events that occur meanwhile are not delivered.",
      };
  }
}

export const needsPerson = (row: EndpointRow, health: HealthRow | null): boolean =>
  healthOf(row, health).tone === "bad";

export function HealthPill({ row, health }: { row: EndpointRow; health: HealthRow | null }) {
  const { tone, word } = healthOf(row, health);
  return <Pill tone={tone}>{word}</Pill>;
}

/** A failure is being retried as long as its next attempt is to come. */
export function deliveryState(
  d: Pick<Delivery, "status" | "next_attempt_at">,
  now: number,
): { tone: Tone; word: string } {
  if (d.status === "succeeded") return { tone: "ok", word: "Delivered" };
  if (d.status === "dead") return { tone: "bad", word: "Dead" };
  const next = d.next_attempt_at === null ? 0 : Date.parse(d.next_attempt_at);
  return { tone: "warn", word: next > now ? "Failed, retrying" : "Failed" };
}

export function DeliveryPill(
  { delivery, now }: { delivery: Pick<Delivery, "status" | "next_attempt_at">; now: number },
) {
  const { tone, word } = deliveryState(delivery, now);
  return <Pill tone={tone}>{word}</Pill>;
}

/** A code of the log in words, and what usually helps. */
export const ERROR_TEXT: Record<AttemptError, string> = {
  timeout: "No answer within the 15 seconds an attempt has. Answer first, do the work after.",
  dns: "The host name does not resolve.",
  tls:
    "The TLS handshake failed: an expired, self-signed or mismatched certificate, or a missing intermediate.",
  connect: "No connection: refused, reset, or closed before an answer.",
  redirect: "The receiver answered with a redirect, which is never followed. Give the final address.",
  status_4xx:
    "The receiver refused the request. Often a signature that did not verify, or a route that moved.",
  status_410: "The receiver says it is gone for good; the endpoint was disabled.",
  status_5xx: "The receiver failed while it handled the request.",
  ssrf_blocked: "The name leads to an address that may not be dialled (private or reserved).",
  invalid_url: "The endpoint's address breaks the rules for URLs.",
  secret_unavailable:
    "The signing secret could not be opened. Whoever runs the service has to look at the master key.",
  event_unavailable: "The event's payload is gone, by retention or erasure, so it can no longer be sent.",
  endpoint_disabled: "The endpoint was disabled when this delivery was due. Enable it and replay.",
};

/** `204`, `timeout`, `503 status_5xx` */
export function outcomeText(d: Pick<Delivery, "http_status" | "error">): string {
  const status = d.http_status === null ? "" : String(d.http_status);
  return [status, d.error ?? ""].filter((part) => part !== "").join(" ") || "–";
}

/** `Attempt 3 of 13`, counted within its run. */
export const attemptText = (d: Pick<Delivery, "attempt" | "first_attempt">): string =>
  `${d.attempt - d.first_attempt + 1} of ${MAX_ATTEMPTS}`;

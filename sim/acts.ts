/** What a receiver, its DNS or our own machine can do to a request, and the habits of receivers. */
import type { AttemptError } from "../lib/keys.ts";

/** Every row of the outcome table, and what the far side or our own machine can do to a request. */
export type Act =
  | "ok"
  | "slow_ok"
  | "redirect"
  | "gone"
  | "refused"
  | "throttled"
  | "broken"
  | "unavailable"
  | "timeout"
  | "tls"
  | "connect"
  | "reset_after"
  | "no_name"
  | "name_fault"
  | "dns_hangs"
  | "rebound"
  | "our_dns"
  | "our_socket";

/** Acts that an endpoint is charged for, each with the error code that must be on record for it. */
export const CHARGED: Partial<Record<Act, AttemptError>> = {
  redirect: "redirect",
  gone: "status_410",
  refused: "status_4xx",
  throttled: "status_4xx",
  broken: "status_5xx",
  unavailable: "status_5xx",
  timeout: "timeout",
  tls: "tls",
  connect: "connect",
  reset_after: "connect",
  no_name: "dns",
  name_fault: "dns",
  dns_hangs: "timeout",
  rebound: "ssrf_blocked",
};

/** A receiver's habits: weights of its acts. */
export type Mood = Partial<Record<Act, number>>;

export const MOODS = {
  healthy: { ok: 1 },
  lagging: { ok: 1, slow_ok: 2 },
  sluggish: { ok: 3, slow_ok: 2, timeout: 1 },
  flaky: {
    ok: 4,
    broken: 2,
    connect: 1,
    reset_after: 1,
    tls: 0.5,
    timeout: 0.3,
    throttled: 1,
    unavailable: 1,
  },
  lost: { no_name: 1, name_fault: 1, dns_hangs: 0.5, ok: 1 },
  rebinding: { rebound: 2, ok: 2 },
  down: { broken: 1, connect: 1, timeout: 0.2, redirect: 0.5, refused: 0.5 },
  gone: { gone: 1, ok: 1 },
  ours: { our_dns: 1, our_socket: 1, ok: 2 },
  hopeless: { broken: 1 },
} satisfies Record<string, Mood>;
export type MoodName = keyof typeof MOODS;

/**
 * Guarded HTTP: the only way out for a delivery (the document, "HTTP client and SSRF rules"; reference §6). In: a URL text,
 * headers and the stored bytes; out: an `Outcome`. Judge the URL → resolve → judge every answer → dial one judged address.
 * Keeps D3 (nothing unjudged is dialled, nothing judged earlier is trusted) and D4 (our own faults are `ours`).
 */
import { classifyResponse, failed, isOurCode, type Outcome } from "../outcome.ts";
import { DEADLINE_MS, DNS_CHECK_MS } from "../limits.ts";
import { judgeAddress, judgeAnswers } from "../ssrf/address.ts";
import { judgeUrl, literalOf, target, type UrlRules, type UrlVerdict } from "../ssrf/url.ts";
import type { Addresses, Dialer, DialResult, Resolver, Timers } from "./ports.ts";

export interface GuardedHttpDeps {
  rules: UrlRules;
  resolver: Resolver;
  dialer: Dialer;
  timers: Timers;
  /** Unix ms. */
  now: () => number;
  /** Monotonic ms, so that a wall clock that jumps under way uses up no deadline (D4). Absent: `now`. */
  clock?: () => number;
}

export interface SendRequest {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** Asked once more when a look-up took its time: whether the request is still to be made (D2). False: `ours`, `withdrawn`. */
  wanted?(): Promise<boolean>;
}

/** The outcome's reason when `wanted` said no. */
export const WITHDRAWN = "withdrawn";

export interface Sent {
  outcome: Outcome;
  durationMs: number;
  /** At most 4 KB of the answer, when there was one. */
  responseBody?: Uint8Array;
}

/**
 * Verdict on a URL at create or update. `resolved` tells what DNS said: `public`, `none` (no such name yet) or `unknown` (no
 * answer in time). The last two are no refusal here, because every attempt judges again.
 */
export type CheckVerdict =
  | { ok: true; url: URL; resolved: "public" | "none" | "unknown" | "allowed" }
  | { ok: false; rule: string; message: string };

export interface GuardedHttp {
  /** One attempt, `DEADLINE_MS` in all. Never rejects. */
  send(request: SendRequest): Promise<Sent>;
  /** For the 400 at path `url`. Never rejects. */
  check(url: string): Promise<CheckVerdict>;
}

/** What a dialer asks again before it opens sockets: may this URL be dialled at this address? */
export const permits = (rules: UrlRules) => (url: URL, address: string): boolean =>
  rules.allowedTargets.has(target(url)) || judgeAddress(address).ok;

/** URL verdicts are pure, so they may be kept; DNS answers never are. */
const MAX_KEPT_VERDICTS = 1_024;

export function makeGuardedHttp(deps: GuardedHttpDeps): GuardedHttp {
  const { resolver, dialer, timers, now } = deps;
  const clock = deps.clock ?? now;
  const judge = keepVerdicts((url) => judgeUrl(url, deps.rules));
  let turn = 0;

  async function attempt(request: SendRequest, startedAt: number): Promise<Done> {
    const verdict = judge(request.url);
    if (!verdict.ok) return done(failed(verdict.rule === "invalid_url" ? "invalid_url" : "ssrf_blocked"));
    const { url, allowed } = verdict;
    let address = verdict.fixed;
    if (address === null) {
      const answer = await within(resolver, url.hostname, DEADLINE_MS, timers);
      if (answer.kind !== "answers") return done(dnsOutcome(answer));
      const all = [...answer.a, ...answer.aaaa];
      if (all.length === 0) return done(failed("dns"));
      if (!allowed && !judgeAnswers(all).ok) return done(failed("ssrf_blocked"));
      // IPv4 when there is any, and the next of several each time, so that one dead address is not tried for ever.
      const choice = answer.a.length > 0 ? answer.a : answer.aaaa;
      address = choice[turn++ % choice.length]!;
      if (await request.wanted?.() === false) return done({ kind: "ours", reason: WITHDRAWN });
    }
    const timeoutMs = DEADLINE_MS - Math.max(0, clock() - startedAt);
    const result = await dialer.dial({
      url,
      address,
      headers: request.headers,
      body: request.body,
      timeoutMs,
    });
    return dialOutcome(result, now);
  }

  return {
    async send(request) {
      const startedAt = clock();
      const { outcome, responseBody } = await attempt(request, startedAt);
      const durationMs = Math.max(0, Math.round(clock() - startedAt));
      return responseBody ? { outcome, durationMs, responseBody } : { outcome, durationMs };
    },
    async check(text) {
      const verdict = judge(text);
      if (!verdict.ok) return verdict;
      const { url, allowed } = verdict;
      if (allowed) return { ok: true, url, resolved: "allowed" };
      const answer = await within(resolver, url.hostname, DNS_CHECK_MS, timers);
      if (answer.kind !== "answers") return { ok: true, url, resolved: "unknown" };
      const all = [...answer.a, ...answer.aaaa];
      if (all.length === 0) return { ok: true, url, resolved: "none" };
      const addresses = judgeAnswers(all);
      return addresses.ok ? { ok: true, url, resolved: "public" } : addresses;
    },
  };
}

interface Done {
  outcome: Outcome;
  responseBody?: Uint8Array;
}
const done = (outcome: Outcome): Done => ({ outcome });

function dialOutcome(result: DialResult, now: () => number): Done {
  if (result.kind === "response") {
    const outcome = classifyResponse(result.status, result.retryAfter, now());
    return { outcome, responseBody: result.body };
  }
  if (isOurCode(result.detail)) return done({ kind: "ours", reason: result.detail });
  return done(failed(result.error));
}

/** Where an allowed target is without asking DNS: at its own literal, or on this machine. */
function fixedAddress(url: URL): string | null {
  return url.hostname === "localhost" ? "127.0.0.1" : literalOf(url.hostname);
}

type Answer = { kind: "answers" } & Addresses | { kind: "late" } | { kind: "fault"; fault: "name" | "ours" };

/** The look-up, bounded. Its own late end is swallowed. */
function within(resolver: Resolver, host: string, ms: number, timers: Timers): Promise<Answer> {
  return new Promise((settle) => {
    const timer = timers.after(ms, () => settle({ kind: "late" }));
    const finish = (answer: Answer) => (timers.cancel(timer), settle(answer));
    resolver.resolve(host).then(
      ({ a, aaaa }) => finish({ kind: "answers", a, aaaa }),
      (error) => finish({ kind: "fault", fault: faultOf(error) }),
    );
  });
}

/** An error that does not say whose fault it is was not foreseen: ours (D4). */
const faultOf = (error: unknown): "name" | "ours" =>
  (error as { fault?: unknown } | null)?.fault === "name" ? "name" : "ours";

function dnsOutcome(answer: Exclude<Answer, { kind: "answers" }>): Outcome {
  if (answer.kind === "late") return failed("timeout");
  return answer.fault === "name" ? failed("dns") : { kind: "ours", reason: "dns_unreachable" };
}

/** A verdict with where an allowed target is, when that needs no look-up. */
type Judged =
  | Exclude<UrlVerdict, { ok: true }>
  | Extract<UrlVerdict, { ok: true }> & { fixed: string | null };

function keepVerdicts(judge: (url: string) => UrlVerdict): (url: string) => Judged {
  const kept = new Map<string, Judged>();
  return (url) => {
    const known = kept.get(url);
    if (known) return known;
    const verdict = judge(url);
    if (!verdict.ok) return verdict;
    if (kept.size >= MAX_KEPT_VERDICTS) kept.clear();
    const judged = { ...verdict, fixed: verdict.allowed ? fixedAddress(verdict.url) : null };
    kept.set(url, judged);
    return judged;
  };
}

/**
 * What a mail's headers say about it: what kind it is, whether its sender was authenticated, whether it should be held
 * back. The headers are those of the mail server that hands the mail over, which strips a sender's own
 * `Authentication-Results` and `X-Spam-Flag` (RFC 8601 §5): only the first, topmost, is read.
 */
import type { AuthResult, MessageKind, QuarantineReason, Trust } from "./payloads/shapes.ts";

type Header = (name: string) => string;

/** `Auto-Submitted` (RFC 3834), delivery reports (RFC 3464), calendar parts and lists (RFC 2919, 8058). */
export function kindOf(header: Header, partTypes: string[]): MessageKind {
  const type = header("content-type").toLowerCase();
  if (type.startsWith("multipart/report")) return "bounce";
  const auto = header("auto-submitted").trim().toLowerCase();
  if (auto !== "" && auto !== "no") return "auto_reply";
  if (type.startsWith("text/calendar") || partTypes.includes("text/calendar")) return "calendar";
  const bulk = ["bulk", "list"].includes(header("precedence").trim().toLowerCase());
  return bulk || header("list-id") !== "" || header("list-unsubscribe") !== "" ? "bulk" : "mail";
}

const RESULTS = new Set<string>(["pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"]);

/** The verdicts of an `Authentication-Results` value (RFC 8601). Without one nothing is known. */
export function authOf(value: string): Trust {
  // Comments may hold anything, also what looks like a verdict.
  const plain = value.replace(/\([^()]*\)/g, " ").toLowerCase();
  const result = (method: string): AuthResult => {
    const found = plain.match(new RegExp(`(?:^|;)\\s*${method}\\s*=\\s*([a-z]+)`))?.[1] ?? "none";
    return RESULTS.has(found) ? found as AuthResult : "none";
  };
  const auth = { spf: result("spf"), dkim: result("dkim"), dmarc: result("dmarc") };
  return { verdict: verdictOf(auth), ...auth };
}

export function verdictOf(auth: Omit<Trust, "verdict">): Trust["verdict"] {
  if (auth.dmarc === "fail") return "suspicious";
  if (auth.dmarc === "pass") return "trusted";
  if (auth.spf === "fail" || auth.dkim === "fail") return "suspicious";
  return "unknown";
}

/** Why a mail is held back, null when it is not: the spam mark of the mail server, or a failed DMARC check. */
export function quarantineOf(header: Header, trust: Trust): QuarantineReason | null {
  if (header("x-virus-status").trim().toLowerCase().startsWith("infected")) return "malware";
  if (header("x-spam-flag").trim().toLowerCase() === "yes") return "spam";
  return trust.dmarc === "fail" ? "dmarc_failed" : null;
}

/**
 * Judges an endpoint's URL (reference §6 rules 1 to 4): at create, at update and before every attempt. Pure.
 * In: the text as the caller wrote it; out: the parsed URL, or the rule that refuses it and a sentence for a person.
 */
import { MAX_URL_BYTES } from "../limits.ts";

export interface UrlRules {
  /** `PM_API_HOST`, `PM_CONSOLE_HOST`: refused exactly. */
  apiHost: string | null;
  consoleHost: string | null;
  /** `PM_PLATFORM_DOMAIN`: refused with every name under it. */
  platformDomain: string | null;
  /** `PM_ALLOWED_TARGETS`, exact `host:port` (`127.0.0.1:9000`, `[::1]:9000`): scheme, host, port and address rules are off. */
  allowedTargets: ReadonlySet<string>;
}

/** Stable codes, for logs and tests. */
export type UrlRule =
  | "length"
  | "characters"
  | "scheme"
  | "userinfo"
  | "fragment"
  | "invalid_url"
  | "ip_literal"
  | "trailing_dot"
  | "label"
  | "single_label"
  | "refused_name"
  | "port";

/** `allowed`: the target is one of `allowedTargets`, so its address is not judged either. */
export type UrlVerdict =
  | { ok: true; url: URL; allowed: boolean }
  | { ok: false; rule: UrlRule; message: string };

/** Names that never lead to a public receiver, each with everything under it. */
const REFUSED_NAMES = new Set([
  "localhost",
  "localdomain",
  "local",
  "internal",
  "invalid",
  "test",
  "example",
  "onion",
  "alt",
  "arpa", // home.arpa included
  "lan",
  "corp",
  "home",
  "intranet",
  "private",
  "i2p",
  "svc",
]);

/** The Fetch standard's bad ports from 1024 on; those below are refused as a whole. */
const BAD_PORTS = new Set(
  [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697]
    .concat(10080),
);
const MIN_HIGH_PORT = 1024;
const MAX_NAME_LENGTH = 253;
const LABEL = /^[a-z0-9_-]{1,63}$/;
/** Control, invisible format and space characters, lone surrogates, backslash: the URL parser drops or rewrites them. */
const REFUSED_CHARACTERS = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]/u;
const SHAPE = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]+)/i;

const encoder = new TextEncoder();

/** The verdict on one URL text. `message` completes "url: …" in a 400. */
export function judgeUrl(input: string, rules: UrlRules): UrlVerdict {
  // A code unit is at least one byte, so the cheap test spares encoding megabytes.
  if (input.length > MAX_URL_BYTES || encoder.encode(input).length > MAX_URL_BYTES) {
    return refuse("length", `must be at most ${MAX_URL_BYTES} bytes`);
  }
  if (REFUSED_CHARACTERS.test(input)) {
    return refuse("characters", "must not hold control characters, white space or backslashes");
  }
  const shape = SHAPE.exec(input);
  if (!shape) return refuse("scheme", "must start with https:// and a host name");
  const scheme = shape[1]!.toLowerCase();
  if (scheme !== "https" && scheme !== "http") return refuse("scheme", "must use https");
  if (shape[2]!.includes("@")) return refuse("userinfo", "must not hold a user name or password");
  if (input.includes("#")) return refuse("fragment", "must not hold a fragment");
  const url = URL.parse(input);
  if (!url) return refuse("invalid_url", "must be a valid URL");
  if (rules.allowedTargets.has(target(url))) return { ok: true, url, allowed: true };
  if (scheme !== "https") return refuse("scheme", "must use https");
  return judgeHost(url.hostname, rules) ?? judgePort(url.port) ?? { ok: true, url, allowed: false };
}

/** `host:port` of a URL as `allowedTargets` spells it, the scheme's own port written out. */
export function target(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`;
}

/**
 * The IP address that a URL's host is, without brackets; null for a name. The parser has turned every notation of an IPv4
 * address (integer, hex, octal, short, full-width) into four decimal octets.
 */
export function literalOf(hostname: string): string | null {
  if (hostname.startsWith("[")) return hostname.slice(1, -1);
  return /^\d+(\.\d+){3}$/.test(hostname) ? hostname : null;
}

function judgeHost(host: string, rules: UrlRules): UrlVerdict | null {
  if (literalOf(host) !== null) return refuse("ip_literal", "must name its host, not give an IP address");
  if (host.endsWith(".")) return refuse("trailing_dot", "must not end its host name with a dot");
  const labels = host.split(".");
  if (host.length > MAX_NAME_LENGTH || !labels.every((label) => LABEL.test(label))) {
    return refuse(
      "label",
      "must have a host name of at most 253 characters, its labels of 1 to 63 letters, digits, - and _",
    );
  }
  if (labels.length < 2) return refuse("single_label", "must have a host name of two labels or more");
  if (REFUSED_NAMES.has(labels.at(-1)!) || isOurs(host, rules)) {
    return refuse("refused_name", `must not lead to ${host}, which is not a public host`);
  }
  return null;
}

function isOurs(host: string, rules: UrlRules): boolean {
  const domain = name(rules.platformDomain);
  return host === name(rules.apiHost) || host === name(rules.consoleHost) ||
    (domain !== null && (host === domain || host.endsWith("." + domain)));
}

/** A configured host as a URL spells it, so that `API.example.com.` and a port in it do not open a hole. */
function name(configured: string | null): string | null {
  if (!configured) return null;
  const host = URL.parse(`https://${configured}`)?.hostname ?? configured.toLowerCase();
  return host.endsWith(".") ? host.slice(0, -1) : host;
}

/** `port` as `URL` gives it: empty for the scheme's own. */
function judgePort(port: string): UrlVerdict | null {
  if (port === "") return null;
  const number = Number(port);
  if (number >= MIN_HIGH_PORT && !BAD_PORTS.has(number)) return null;
  return refuse(
    "port",
    `must use port 443 or one from ${MIN_HIGH_PORT} to 65535 that browsers do not block, not ${port}`,
  );
}

const refuse = (rule: UrlRule, message: string): UrlVerdict => ({ ok: false, rule, message });

/**
 * Static headers of an endpoint: an `Authorization` of the receiver's own, a tenant's routing header. Pure: which may be set.
 * None may frame the request, name another host, pass for a signature or carry cookies (reference §6, request rules), and
 * the whole stays small. Names are kept in lower case; values are secrets.
 */
import type { FieldError } from "./errors.ts";

export const MAX_ENDPOINT_HEADERS = 20;
export const MAX_HEADER_NAME_CHARS = 64;
export const MAX_HEADER_VALUE_CHARS = 1_024;
/** Names and values together. */
export const MAX_HEADERS_CHARS = 4_096;

export type EndpointHeaders = Record<string, string>;

/** Narrower than a token of RFC 9110, which would let `__proto__` and punctuation through. */
const NAME = /^[a-z][a-z0-9_-]*$/;
/** Visible ASCII with inner spaces: no line break starts another header, no tab or edge space changes on the way. */
const VALUE = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;

/** Ours, or the connection's. */
const DENIED = new Set([
  "accept-encoding",
  "alt-used",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "cookie2",
  "date",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "set-cookie",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "via",
]);
const DENIED_PREFIXES = ["proxy-", "webhook-", "svix-", "content-", "sec-"];

/** Whether a header may never be an endpoint's own. `name` in any case. */
export function isDenied(name: string): boolean {
  const lower = name.toLowerCase();
  return DENIED.has(lower) || DENIED_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

/** What is wrong with them, by field (`headers.x-name`); values are never repeated. Empty: they may be set. */
export function checkHeaders(headers: EndpointHeaders): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  let chars = 0;
  const entries = Object.entries(headers);
  if (entries.length > MAX_ENDPOINT_HEADERS) {
    errors.push({ path: "headers", message: `must be at most ${MAX_ENDPOINT_HEADERS}` });
  }
  for (const [given, value] of entries.slice(0, MAX_ENDPOINT_HEADERS + 1)) {
    const name = given.toLowerCase();
    const message = fault(name, value, seen);
    if (message !== null) {
      errors.push({ path: `headers.${given.slice(0, MAX_HEADER_NAME_CHARS)}`, message });
    }
    seen.add(name);
    chars += name.length + value.length;
  }
  if (chars > MAX_HEADERS_CHARS) {
    errors.push({ path: "headers", message: `must be at most ${MAX_HEADERS_CHARS} characters in all` });
  }
  return errors;
}

function fault(name: string, value: string, seen: ReadonlySet<string>): string | null {
  if (name.length > MAX_HEADER_NAME_CHARS) return `its name is over ${MAX_HEADER_NAME_CHARS} characters`;
  if (!NAME.test(name)) return "its name must be letters, digits, - and _, and start with a letter";
  if (seen.has(name)) return "is given twice";
  if (isDenied(name)) return "is set by the delivery itself and cannot be changed";
  if (value.length > MAX_HEADER_VALUE_CHARS) return `is over ${MAX_HEADER_VALUE_CHARS} characters`;
  return VALUE.test(value) ? null : "must be visible ASCII without a line break or a space at its edge";
}

/** Lower-case names in order, which is how they are sealed, shown and sent. */
export function normalHeaders(headers: EndpointHeaders): EndpointHeaders {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => a < b ? -1 : 1));
}

/** What is shown of them: their names. */
export const maskedHeaders = (names: readonly string[]): EndpointHeaders =>
  Object.fromEntries(names.map((name) => [name, "***"]));

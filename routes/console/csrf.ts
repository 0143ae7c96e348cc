/**
 * Against forged requests: every form carries a MAC of the visitor's own cookie, which another site can neither read nor
 * guess, and a POST must come from a page of this host.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";
import { ApiError } from "../../lib/errors.ts";

export const CSRF_FIELD = "csrf";

/** The token of a cookie's forms. */
export const csrfToken = (cookie: string, hashKey: Uint8Array): string =>
  createHmac("sha256", hashKey).update(`console-csrf:${cookie}`).digest("base64url");

/**
 * @param expected the token of this browser's forms; null: it has none.
 * @param consoleHost `PM_CONSOLE_HOST`, where a proxy in front changes the Host.
 * @throws ApiError 403 when the request is not from a page of ours.
 */
export function demandOwnForm(
  request: Request,
  form: URLSearchParams,
  expected: string | null,
  consoleHost: string | null = null,
): void {
  if (
    !fromHere(request, consoleHost) || expected === null || !same(form.get(CSRF_FIELD) ?? "", expected)
  ) {
    throw new ApiError(
      "permission_denied",
      "Cannot do this: the form is not from this session.",
      "Go back, load the page again and send it once more.",
    );
  }
}

/**
 * The browser's own word where it gives one (over TLS and on this machine), else the Origin, by host alone: a proxy in front may
 * end TLS, so that the schemes differ.
 */
function fromHere(request: Request, consoleHost: string | null): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = request.headers.get("origin");
  if (origin === null || !URL.canParse(origin)) return false;
  const { host } = new URL(origin);
  return host === (request.headers.get("host") ?? new URL(request.url).host) || host === consoleHost;
}

function same(given: string, expected: string): boolean {
  const left = Buffer.from(given), right = Buffer.from(expected);
  return left.length === right.length && timingSafeEqual(left, right);
}

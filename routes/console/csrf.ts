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

/** @throws ApiError 403 when the request is not from a page of ours. */
export function demandOwnForm(request: Request, form: URLSearchParams, expected: string | null): void {
  if (!fromHere(request) || expected === null || !same(form.get(CSRF_FIELD) ?? "", expected)) {
    throw new ApiError(
      "permission_denied",
      "Cannot do this: the form is not from this session.",
      "Go back, load the page again and send it once more.",
    );
  }
}

/** By host alone: a proxy in front may end TLS, so that the schemes differ. */
function fromHere(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return false;
  const origin = request.headers.get("origin");
  const host = request.headers.get("host") ?? new URL(request.url).host;
  if (origin === null) return site === "same-origin";
  return URL.canParse(origin) && new URL(origin).host === host;
}

function same(given: string, expected: string): boolean {
  const left = Buffer.from(given), right = Buffer.from(expected);
  return left.length === right.length && timingSafeEqual(left, right);
}

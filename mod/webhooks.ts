/** The library's signer and verifier: `lib/signing.ts` and `lib/verify.ts` with this machine's clock. */
import { Buffer } from "node:buffer";
import { parseSecret, signV1, signV1a } from "../lib/signing.ts";
import { TOLERANCE_S, type VerifyFault, verifySigned } from "../lib/verify.ts";
import { realNow } from "../lib/edge/ports.ts";

/** The three headers of a signed request. */
export interface WebhookHeaders {
  /** The message's id, the same on every attempt. */
  "webhook-id": string;
  /** Unix seconds of this attempt. */
  "webhook-timestamp": string;
  /** The signatures, separated by spaces. */
  "webhook-signature": string;
}

/** What {@link sign} signs. */
export interface Message {
  /** The id the receiver deduplicates by. */
  id: string;
  /** Exactly the bytes that are sent. */
  body: string | Uint8Array;
  /** When this attempt is made. Default: now. */
  at?: Date;
}

/** What {@link verify} learned. */
export interface Verified {
  /** `webhook-id`: deduplicate by it, every delivery is made at least once. */
  id: string;
  /** When the attempt was signed. */
  signedAt: Date;
  /** The scheme of the signature that fits. */
  scheme: "v1" | "v1a";
}

/** Settings of {@link verify}. */
export interface VerifyOptions {
  /** How far `webhook-timestamp` may be from `now`, in seconds. Default 300. */
  toleranceSeconds?: number;
  /** Default: the clock. */
  now?: Date;
}

/** The request is not one that the secret's holder signed of late. Answer 400 or 401 and do nothing else with it. */
export class WebhookVerificationError extends Error {
  /** Always `WebhookVerificationError`. */
  override name = "WebhookVerificationError";
  /** Made by {@link verify}. */
  constructor(
    /** A stable code of what is wrong. */
    readonly fault: VerifyFault,
    message: string,
  ) {
    super(`Cannot verify the webhook: ${message}.`);
  }
}

/**
 * Signs a message under each secret, in their order: `whsec_…` with `v1` (HMAC-SHA256), `whsk_…` with `v1a` (Ed25519).
 *
 * @throws {TypeError} when a secret is neither.
 *
 * @example
 * ```ts
 * import { sign } from "@pylota/webhooks";
 *
 * const headers = sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", {
 *   id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
 *   body: '{"test": 2432232314}',
 *   at: new Date(1614265330_000),
 * });
 * if (headers["webhook-signature"] !== "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=") throw new Error("differs");
 * ```
 */
export function sign(secrets: string | readonly string[], message: Message): WebhookHeaders {
  const timestamp = Math.floor((message.at?.getTime() ?? realNow()) / 1_000);
  const body = bytesOf(message.body);
  const signatures = [secrets].flat().map((secret) => {
    if (secret.startsWith("whsk_")) return signV1a(secret, message.id, timestamp, body);
    const bytes = parseSecret(secret);
    if (bytes === null) throw new TypeError("a secret is neither whsec_… nor whsk_…");
    return signV1(bytes, message.id, timestamp, body);
  });
  return {
    "webhook-id": message.id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

/**
 * Verifies a request: one signature that fits one of the secrets is enough, so that a rotation on either side needs no moment of its
 * own. `whsec_…` checks `v1`, `whpk_…` checks `v1a`. Give it the body's bytes as they came, never parsed and written again.
 *
 * @throws {WebhookVerificationError} with the fault.
 *
 * @example A receiver
 * ```ts
 * import { sign, verify, WebhookVerificationError } from "@pylota/webhooks";
 *
 * async function receive(request: Request, secret: string): Promise<Response> {
 *   const body = await request.text();
 *   try {
 *     const { id } = verify(secret, request.headers, body);
 *     return new Response(id); // after the work, which is done once for each id
 *   } catch (error) {
 *     if (error instanceof WebhookVerificationError) return new Response(error.fault, { status: 400 });
 *     throw error;
 *   }
 * }
 *
 * const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", body = '{"test": 2432232314}';
 * const headers = { ...sign(secret, { id: "msg_1", body }) };
 * const url = "https://receiver.example.com";
 * const good = await receive(new Request(url, { method: "POST", headers, body }), secret);
 * const other = await receive(new Request(url, { method: "POST", headers, body: "{}" }), secret);
 * if (good.status !== 200 || other.status !== 400) throw new Error("does not hold");
 * ```
 */
export function verify(
  secrets: string | readonly string[],
  headers: Headers | Record<string, string>,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): Verified {
  const all = headers instanceof Headers ? headers : new Headers(headers);
  const verdict = verifySigned(
    [secrets].flat(),
    { header: (name) => all.get(name), body: bytesOf(body) },
    Math.floor((options.now?.getTime() ?? realNow()) / 1_000),
    options.toleranceSeconds ?? TOLERANCE_S,
  );
  if (!verdict.ok) throw new WebhookVerificationError(verdict.fault, verdict.message);
  return { id: verdict.id, signedAt: new Date(verdict.timestamp * 1_000), scheme: verdict.scheme };
}

const bytesOf = (body: string | Uint8Array): Uint8Array =>
  typeof body === "string" ? Buffer.from(body) : body;

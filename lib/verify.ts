/**
 * The receiver's side of Standard Webhooks v1.0.0: is this request one that the holder of the secret signed, of late, with this
 * very body? Pure: the clock comes in. `v1` (HMAC-SHA256) and `v1a` (Ed25519), any number of signatures and of secrets.
 */
import { Buffer } from "node:buffer";
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { parseSecret, signedContent } from "./signing.ts";

/** Standard Webhooks' own: five minutes either way. */
export const TOLERANCE_S = 300;

/** Why a request is not valid. */
export type VerifyFault =
  | "missing_header"
  | "malformed_timestamp"
  | "too_old"
  | "too_new"
  | "malformed_secret"
  | "no_usable_signature"
  | "signature_mismatch";

export type Verdict =
  | { ok: true; id: string; /** Unix seconds. */ timestamp: number; scheme: "v1" | "v1a" }
  | { ok: false; fault: VerifyFault; message: string };

export interface Signed {
  /** By header name, lower case. */
  header(name: string): string | null;
  body: Uint8Array;
}

const DIGITS = /^\d{1,12}$/;
const PUBLIC_PREFIX = "whpk_";
/** DER in front of an Ed25519 public key (RFC 8410). */
const SPKI_ED25519 = Buffer.from("302a300506032b6570032100", "hex");
const PUBLIC_KEY_BYTES = 32;

type Check = { scheme: "v1" | "v1a"; holds(signature: Buffer, content: Uint8Array): boolean };

/**
 * @param secrets `whsec_…` for `v1`, `whpk_…` for `v1a`; one that verifies is enough, so a rotation needs no moment of its own.
 * @param nowS Unix seconds.
 */
export function verifySigned(
  secrets: readonly string[],
  signed: Signed,
  nowS: number,
  toleranceS = TOLERANCE_S,
): Verdict {
  const checks: Check[] = [];
  for (const secret of secrets) {
    const check = checkOf(secret);
    if (check === null) return refuse("malformed_secret", "a secret is neither whsec_… nor whpk_…");
    checks.push(check);
  }
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
  const [id, time, signatures] = names.map(signed.header);
  const missing = names.filter((_, i) => ![id, time, signatures][i]);
  if (missing.length > 0) return refuse("missing_header", `${missing.join(", ")} missing`);
  if (!DIGITS.test(time!)) return refuse("malformed_timestamp", "webhook-timestamp is not Unix seconds");
  const timestamp = Number(time), age = nowS - timestamp;
  if (age > toleranceS) return refuse("too_old", `signed ${age} s ago, over ${toleranceS} s`);
  if (-age > toleranceS) {
    return refuse("too_new", `signed ${-age} s ahead of this clock, over ${toleranceS} s`);
  }

  const content = signedContent(id!, timestamp, signed.body);
  let usable = false;
  for (const part of signatures!.split(" ")) {
    const comma = part.indexOf(",");
    const scheme = part.slice(0, comma), signature = Buffer.from(part.slice(comma + 1), "base64");
    for (const check of checks) {
      if (comma < 0 || check.scheme !== scheme) continue;
      usable = true;
      if (check.holds(signature, content)) return { ok: true, id: id!, timestamp, scheme: check.scheme };
    }
  }
  return usable
    ? refuse("signature_mismatch", "no signature fits: another secret, or the body is not the one signed")
    : refuse("no_usable_signature", "no signature of a kind the secrets can check (whsec_ v1, whpk_ v1a)");
}

function checkOf(secret: string): Check | null {
  const hmac = parseSecret(secret);
  if (hmac !== null) {
    const holds: Check["holds"] = (signature, content) => {
      const wanted = createHmac("sha256", hmac).update(content).digest();
      return signature.length === wanted.length && timingSafeEqual(signature, wanted);
    };
    return { scheme: "v1", holds };
  }
  const key = publicKeyOf(secret);
  return key && { scheme: "v1a", holds: (signature, content) => verify(null, content, key, signature) };
}

function publicKeyOf(text: string): KeyObject | null {
  if (!text.startsWith(PUBLIC_PREFIX)) return null;
  const raw = Buffer.from(text.slice(PUBLIC_PREFIX.length), "base64");
  if (raw.length !== PUBLIC_KEY_BYTES) return null;
  return createPublicKey({ key: Buffer.concat([SPKI_ED25519, raw]), format: "der", type: "spki" });
}

const refuse = (fault: VerifyFault, message: string): Verdict => ({ ok: false, fault, message });

/**
 * Standard Webhooks v1.0.0 ("Signing"): what is signed, the `webhook-signature` header, and the secret strings.
 * Pure. `node:crypto` and not Web Crypto: it is synchronous, and takes a fifth of the time for a body of 1 KB.
 */
import { Buffer } from "node:buffer";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";

export const SECRET_BYTES = 32;
const SECRET_PREFIX = "whsec_";
/** What Standard Webhooks allows a secret to have. */
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** `whsec_` + standard base64 of the secret's bytes: shown once, on create and on rotate. */
export function formatSecret(secret: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength).toString("base64");
}

/** The 24 to 64 bytes of a `whsec_…` string, or null if it is none. */
export function parseSecret(text: string): Uint8Array<ArrayBuffer> | null {
  if (!text.startsWith(SECRET_PREFIX)) return null;
  const encoded = text.slice(SECRET_PREFIX.length);
  if (!BASE64.test(encoded)) return null;
  const bytes = new Uint8Array(Buffer.from(encoded, "base64"));
  if (bytes.length < MIN_SECRET_BYTES || bytes.length > MAX_SECRET_BYTES) return null;
  return formatSecret(bytes) === text ? bytes : null;
}

/** `{webhook-id}.{webhook-timestamp}.{body}`, the document's `signed_content`. `timestamp` is Unix seconds. */
export function signedContent(
  webhookId: string,
  timestamp: number,
  body: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(prefix(webhookId, timestamp));
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
}

/** Signs one message under a key that was read once: reading it costs as much as signing. */
export type Signer = (webhookId: string, timestamp: number, body: Uint8Array) => string;

/** What SHA-256 takes at a time: HMAC's pads (RFC 2104). */
const HMAC_BLOCK = 64;

/**
 * `v1,` + base64 of HMAC-SHA256(secret, signed content). The body is hashed where it lies, not copied. The two hashes that begin
 * with the secret are kept and copied for each message: less than half of what `createHmac` takes each time.
 * Throws `TypeError` if the secret is longer than one may be.
 */
export function v1Signer(secret: Uint8Array): Signer {
  if (secret.length > MAX_SECRET_BYTES) throw new TypeError("not a secret of at most 64 bytes");
  const begun = (pad: number) => {
    const block = new Uint8Array(HMAC_BLOCK).fill(pad);
    for (const [i, byte] of secret.entries()) block[i] = byte ^ pad;
    return createHash("sha256").update(block);
  };
  const inner = begun(0x36), outer = begun(0x5c);
  return (webhookId, timestamp, body) => {
    const digest = inner.copy().update(prefix(webhookId, timestamp)).update(body).digest();
    return "v1," + outer.copy().update(digest).digest("base64");
  };
}

export const signV1 = (secret: Uint8Array, webhookId: string, timestamp: number, body: Uint8Array): string =>
  v1Signer(secret)(webhookId, timestamp, body);

/** The `webhook-signature` header: every signature, separated by one space. A rotation's new secret comes first. */
export const signatureHeader = (
  signers: readonly Signer[],
  webhookId: string,
  timestamp: number,
  body: Uint8Array,
): string => signers.map((sign) => sign(webhookId, timestamp, body)).join(" ");

/** DER in front of an Ed25519 seed in PKCS #8 (RFC 8410). */
const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

const V1A_KEY_BYTES = 64;

/**
 * `v1a,` + base64 of the Ed25519 signature: Standard Webhooks' asymmetric scheme.
 * @param key seed and public key (64 bytes). Throws `TypeError` if it is not that.
 */
export function v1aSigner(key: Uint8Array): Signer {
  if (key.length !== V1A_KEY_BYTES) throw new TypeError("not an Ed25519 key of 64 bytes");
  const privateKey = ed25519(key.subarray(0, 32));
  return (webhookId, timestamp, body) =>
    "v1a," +
    Buffer.from(sign(null, signedContent(webhookId, timestamp, body), privateKey)).toString("base64");
}

/** The same from a `whsk_…` string: base64 of the 64 bytes. */
export function signV1a(privateKey: string, webhookId: string, timestamp: number, body: Uint8Array): string {
  if (!privateKey.startsWith("whsk_")) throw new TypeError("not a whsk_ key of 64 bytes");
  return v1aSigner(Buffer.from(privateKey.slice(5), "base64"))(webhookId, timestamp, body);
}

/** The 64 bytes of a key (seed, then public key) from a random seed of 32, and `whpk_…` for its receivers. */
export function v1aKeyPair(seed: Uint8Array): { key: Uint8Array<ArrayBuffer>; publicKey: string } {
  const jwk = createPublicKey(ed25519(seed)).export({ format: "jwk" });
  const half = Buffer.from(jwk.x!, "base64url");
  const key = new Uint8Array(V1A_KEY_BYTES);
  key.set(seed);
  key.set(half, seed.length);
  return { key, publicKey: "whpk_" + half.toString("base64") };
}

const ed25519 = (seed: Uint8Array) =>
  createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: "der", type: "pkcs8" });

const prefix = (webhookId: string, timestamp: number): string => `${webhookId}.${timestamp}.`;

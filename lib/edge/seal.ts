/**
 * Sealed values (reference §7): AES-256-GCM in the envelope `pm1.{kid}.{nonce}.{ciphertext}`, bound by their associated
 * data to the row and column they belong to. Old values stay open while a key rotation is under way.
 */
import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import type { Random } from "./ports.ts";

const VERSION = "pm1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const KID_BYTES = 8;
const SEALED = /^pm1\.([0-9a-f]{16})\.([\w-]{16})\.([\w-]{22,})$/;

/** Why a value does not open. */
export type SealFault = "malformed" | "unknown_key" | "not_authentic";

/** A value that does not open, with a code and never its content. */
export class SealError extends Error {
  override name = "SealError";
  constructor(readonly code: SealFault) {
    super(`Cannot open a sealed value: ${code}. Check PM_MASTER_KEY and PM_MASTER_KEY_NEXT.`);
  }
}

export interface Sealer {
  /** The kid new values are sealed under: the next key's, if there is one. */
  readonly kid: string;
  seal(plain: Uint8Array, aad: string): Promise<string>;
  /** Rejects with `SealError`: malformed, sealed under a key that is not here, or moved or changed. */
  open(sealed: string, aad: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Whether the value is sealed under `kid`; what is not is for `rotate-master` to re-seal. */
  isCurrent(sealed: string): boolean;
}

/** The associated data of a cell: `pm1|{table}|{column}|{row id}`. */
export const sealAad = (table: string, column: string, id: string): string =>
  `${VERSION}|${table}|${column}|${id}`;

/** First 8 bytes of SHA-256 of the key, lower-case hex. */
export const kidOf = (key: Uint8Array): string => hash("sha256", key, "hex").slice(0, 2 * KID_BYTES);

/**
 * @param current `PM_MASTER_KEY`, 32 bytes.
 * @param next `PM_MASTER_KEY_NEXT`: with it, both open and new values are sealed under it.
 */
export function makeSealer(
  current: Uint8Array<ArrayBuffer>,
  next: Uint8Array<ArrayBuffer> | null,
  random: Pick<Random, "bytes">,
): Sealer {
  const keys = new Map<string, Promise<CryptoKey>>();
  for (const raw of next ? [current, next] : [current]) {
    if (raw.length !== KEY_BYTES) {
      throw new RangeError(`A master key has ${KEY_BYTES} bytes, not ${raw.length}`);
    }
    const key = crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt", "decrypt"]);
    keys.set(kidOf(raw), key);
  }
  const kid = kidOf(next ?? current);

  return {
    kid,
    seal: async (plain, aad) => {
      // A fresh nonce for every seal: one never meets its key twice.
      const nonce = random.bytes(NONCE_BYTES);
      const key = await keys.get(kid)!;
      const sealed = await crypto.subtle.encrypt(algorithm(nonce, aad), key, new Uint8Array(plain));
      return `${VERSION}.${kid}.${toBase64Url(nonce)}.${toBase64Url(new Uint8Array(sealed))}`;
    },
    open: async (sealed, aad) => {
      const [, sealedUnder = "", nonce = "", text = ""] = SEALED.exec(sealed) ?? [];
      const ciphertext = new Uint8Array(Buffer.from(text, "base64url"));
      // Base64url has spare bits: one spelling of a value only.
      if (ciphertext.length < TAG_BYTES || toBase64Url(ciphertext) !== text) throw new SealError("malformed");
      const key = await keys.get(sealedUnder);
      if (!key) throw new SealError("unknown_key");
      const parameters = algorithm(new Uint8Array(Buffer.from(nonce, "base64url")), aad);
      try {
        return new Uint8Array(await crypto.subtle.decrypt(parameters, key, ciphertext));
      } catch {
        throw new SealError("not_authentic");
      }
    },
    isCurrent: (sealed) => sealed.startsWith(`${VERSION}.${kid}.`),
  };
}

const algorithm = (iv: Uint8Array<ArrayBuffer>, aad: string): AesGcmParams => ({
  name: "AES-GCM",
  iv,
  additionalData: new TextEncoder().encode(aad),
  tagLength: 8 * TAG_BYTES,
});

const toBase64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

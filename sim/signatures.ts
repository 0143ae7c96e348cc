/**
 * Secrets and signatures as the simulation has them: sealing is instant and readable, so that runs stay deterministic, and
 * receivers verify by their own code (Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`).
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import type { EndpointRow } from "../lib/keys.ts";
import type { Sealer } from "../lib/edge/seal.ts";
import type { Receipt } from "./net.ts";

/** Opens at once. `broken` says which sealed values do not open, and is told each time. */
export function simSealer(broken: (sealed: string) => boolean): Pick<Sealer, "seal" | "open"> {
  return {
    seal: (plain, aad) => Promise.resolve(`sim|${Buffer.from(plain).toString("base64")}|${aad}`),
    open: (sealed, aad) => {
      if (!sealed.endsWith(`|${aad}`)) return Promise.reject(new Error("sealed for another row or column"));
      if (broken(sealed)) return Promise.reject(new Error("does not open"));
      return Promise.resolve(readsSecret(sealed)!.secret);
    },
  };
}

export function readsSecret(sealed: string): { secret: Uint8Array<ArrayBuffer>; endpoint: string } | null {
  const parts = sealed.split("|");
  if (parts[0] !== "sim") return null;
  return { secret: new Uint8Array(Buffer.from(parts[1]!, "base64")), endpoint: parts.at(-1)! };
}

/** Null, or what is wrong with a receipt's signatures, given the rows that were in effect lately. */
export function signedBy(receipt: Receipt, rows: readonly EndpointRow[], now: number): string | null {
  const signatures = receipt.signature.split(" ");
  const sign = (sealed: string) =>
    "v1," + createHmac("sha256", readsSecret(sealed)!.secret)
      .update(`${receipt.webhookId}.${receipt.timestamp}.`).update(receipt.body).digest("base64");
  for (const row of rows) {
    if (signatures[0] !== sign(row.secret_enc)) continue;
    if (signatures.length === 1) {
      const overlaps = row.prev_secret_enc !== null && row.prev_secret_expires_at! > now;
      return overlaps ? "one signature during the overlap" : null;
    }
    const old = row.prev_secret_enc;
    return signatures.length === 2 && old !== null && signatures[1] === sign(old)
      ? null
      : "a second signature of no one";
  }
  return "not signed with a secret of the endpoint";
}

/**
 * What an endpoint keeps sealed besides its secret: static headers and the Ed25519 key of `v1a`. Each function answers the row's
 * new columns; absent columns mean "none", so a row that uses neither stays as it was.
 */
import type { EndpointId } from "../lib/ids.ts";
import type { EndpointRow } from "../lib/keys.ts";
import { type EndpointHeaders, normalHeaders } from "../lib/endpoint_headers.ts";
import { v1aKeyPair } from "../lib/signing.ts";
import type { Random } from "../lib/edge/ports.ts";
import type { Sealer } from "../lib/edge/seal.ts";
import { secretAad } from "./secrets.ts";

/** Signatures an endpoint asks for; `v1` is always among them. */
export type SignatureVersions = readonly ("v1" | "v1a")[];

interface SealDeps {
  random: Random;
  sealer: Pick<Sealer, "seal" | "open">;
}

const SEED_BYTES = 32;

/** The row with these headers instead of its own; null or none takes them away. */
export async function withHeaders(
  d: SealDeps,
  row: EndpointRow,
  headers: EndpointHeaders | null,
): Promise<EndpointRow> {
  const { headers_enc: _, header_names: __, ...bare } = row;
  const normal = normalHeaders(headers ?? {});
  const names = Object.keys(normal);
  if (names.length === 0) return bare;
  const plain = new TextEncoder().encode(JSON.stringify(normal));
  return {
    ...bare,
    headers_enc: await d.sealer.seal(plain, secretAad("headers_enc", row.id)),
    header_names: names,
  };
}

/** The row signed with these versions. A key that is there stays; one that is taken away is gone for good. */
export async function withVersions(
  d: SealDeps,
  row: EndpointRow,
  versions: SignatureVersions,
): Promise<EndpointRow> {
  const { v1a_enc, v1a_public: _, prev_v1a_enc: __, ...bare } = row;
  if (!versions.includes("v1a")) return bare;
  return v1a_enc === undefined ? { ...bare, ...await newKey(d, row.id) } : row;
}

/** A new Ed25519 key for a row that has one; with `overlap` the old one, sealed for its new column, signs beside it. */
export async function withRotatedKey(d: SealDeps, row: EndpointRow, overlap: boolean): Promise<EndpointRow> {
  if (row.v1a_enc === undefined) return row;
  const { prev_v1a_enc: _, ...bare } = row;
  const next = { ...bare, ...await newKey(d, row.id) };
  if (!overlap) return next;
  const old = await d.sealer.open(row.v1a_enc, secretAad("v1a_enc", row.id));
  return { ...next, prev_v1a_enc: await d.sealer.seal(old, secretAad("prev_v1a_enc", row.id)) };
}

async function newKey(d: SealDeps, id: EndpointId): Promise<{ v1a_enc: string; v1a_public: string }> {
  const { key, publicKey } = v1aKeyPair(d.random.bytes(SEED_BYTES));
  return { v1a_enc: await d.sealer.seal(key, secretAad("v1a_enc", id)), v1a_public: publicKey };
}

/**
 * What an endpoint keeps sealed, opened and kept at most 60 s ("Secrets", Use): signing secrets, Ed25519 keys, static headers. A
 * value that does not open is null: the attempt fails with `secret_unavailable`.
 */
import type { EndpointHeaders } from "../lib/endpoint_headers.ts";
import type { EndpointRow } from "../lib/keys.ts";
import { SECRET_CACHE_MS } from "../lib/limits.ts";
import { type Signer, v1aSigner, v1Signer } from "../lib/signing.ts";
import { sealAad } from "../lib/edge/seal.ts";

export interface OpenSecrets {
  /** In the header's order: `v1`, then `v1a` where the endpoint wants it; of each the current key, then, during a rotation's overlap, the one before. */
  signers: readonly Signer[];
  headers: EndpointHeaders | null;
}

export interface Secrets {
  of(row: EndpointRow, now: number): Promise<OpenSecrets | null> | OpenSecrets | null;
}

/** The sealed columns of an endpoint's row: what a rotation of the master key seals again. */
export const SEALED_COLUMNS = [
  "secret_enc",
  "prev_secret_enc",
  "headers_enc",
  "v1a_enc",
  "prev_v1a_enc",
] as const;
export type SealedColumn = (typeof SEALED_COLUMNS)[number];

/** The associated data binds a sealed value to its row and column (reference §7). */
export const secretAad = (column: SealedColumn, endpoint: string): string =>
  sealAad("webhook_endpoints", column, endpoint);

export function makeSecrets(
  open: (sealed: string, aad: string) => Promise<Uint8Array>,
  unavailable: (endpoint: string) => void,
): Secrets {
  const cache = new Map<string, { secrets: OpenSecrets; until: number }>();

  function of(row: EndpointRow, now: number) {
    const overlap = row.prev_secret_enc !== null && (row.prev_secret_expires_at ?? 0) > now;
    // Keyed by the sealed values: a rotation is seen with the row that carries it.
    let name = overlap ? `${row.secret_enc} ${row.prev_secret_enc}` : row.secret_enc;
    if (row.headers_enc !== undefined) name += ` ${row.headers_enc}`;
    if (row.v1a_enc !== undefined) name += ` ${row.v1a_enc}`;
    const hit = cache.get(name);
    return hit !== undefined && hit.until > now ? hit.secrets : load(row, overlap, name, now);
  }

  async function load(
    row: EndpointRow,
    overlap: boolean,
    name: string,
    now: number,
  ): Promise<OpenSecrets | null> {
    const opened = (column: SealedColumn) => {
      const sealed = row[column];
      return sealed ? open(sealed, secretAad(column, row.id)) : null;
    };
    try {
      const [current, previous, headers, ...v1a] = await Promise.all([
        open(row.secret_enc, secretAad("secret_enc", row.id)),
        overlap ? opened("prev_secret_enc") : null,
        opened("headers_enc"),
        opened("v1a_enc"),
        overlap && row.v1a_enc !== undefined ? opened("prev_v1a_enc") : null,
      ]);
      const signers = [
        [current, previous].map((key) => key && v1Signer(key)),
        v1a.map((key) => key && v1aSigner(key)),
      ];
      const secrets: OpenSecrets = {
        signers: signers.flat().filter((signer) => signer !== null),
        headers: headers === null ? null : JSON.parse(new TextDecoder().decode(headers)),
      };
      if (cache.size >= 10_000) cache.clear();
      cache.set(name, { secrets, until: now + SECRET_CACHE_MS });
      return secrets;
    } catch {
      unavailable(row.id);
      return null;
    }
  }

  return { of };
}

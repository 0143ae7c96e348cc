/**
 * Signing secrets, opened per endpoint and kept at most 60 s ("Secrets", Use). A value that does not open is null: the
 * attempt fails with `secret_unavailable`.
 */
import type { EndpointRow } from "../lib/keys.ts";
import { SECRET_CACHE_MS } from "../lib/limits.ts";

export interface OpenSecrets {
  current: Uint8Array;
  /** During a rotation's overlap. */
  previous: Uint8Array | null;
}

export interface Secrets {
  of(row: EndpointRow, now: number): Promise<OpenSecrets | null> | OpenSecrets | null;
}

/** The associated data binds a sealed value to its row and column (reference §7). */
export const secretAad = (column: "secret_enc" | "prev_secret_enc", endpoint: string): string =>
  `pm1|webhook_endpoints|${column}|${endpoint}`;

export function makeSecrets(
  open: (sealed: string, aad: string) => Promise<Uint8Array>,
  unavailable: (endpoint: string) => void,
): Secrets {
  const cache = new Map<string, { secrets: OpenSecrets; until: number }>();

  function of(row: EndpointRow, now: number) {
    const overlap = row.prev_secret_enc !== null && (row.prev_secret_expires_at ?? 0) > now;
    // Keyed by the sealed values: a rotation is seen with the row that carries it.
    const name = overlap ? `${row.secret_enc} ${row.prev_secret_enc}` : row.secret_enc;
    const hit = cache.get(name);
    return hit !== undefined && hit.until > now ? hit.secrets : load(row, overlap, name, now);
  }

  async function load(
    row: EndpointRow,
    overlap: boolean,
    name: string,
    now: number,
  ): Promise<OpenSecrets | null> {
    try {
      const current = await open(row.secret_enc, secretAad("secret_enc", row.id));
      const previous = overlap
        ? await open(row.prev_secret_enc!, secretAad("prev_secret_enc", row.id))
        : null;
      if (cache.size >= 10_000) cache.clear();
      const secrets = { current, previous };
      cache.set(name, { secrets, until: now + SECRET_CACHE_MS });
      return secrets;
    } catch {
      unavailable(row.id);
      return null;
    }
  }

  return { of };
}

/**
 * Who calls: `Authorization: Bearer pmk_…` → the key's row. Unknown, wrong and malformed keys answer the same bytes (request id
 * aside), a hash is computed and compared in constant time for each of them, and failures are limited per client address
 * (reference §2).
 */
import { ApiError } from "../lib/errors.ts";
import { keyMatches, parseKey } from "../lib/edge/api_keys.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { type KeyRow, keys, type Permission } from "../lib/keys.ts";
import { KEY_CACHE_MS } from "../lib/limits.ts";
import type { RateLimiter } from "./rate_limit.ts";
import { holds } from "../lib/reach.ts";

const MAX_CACHED_KEYS = 10_000;

/** Key rows by their look-up part, for a few seconds; a write in this isolate forgets its key at once. */
export interface KeyCache {
  get(lookup: string): Promise<KeyRow | null>;
  forget(lookup: string): void;
}

export function makeKeyCache(deps: { kv: Kv; now(): number }): KeyCache {
  const rows = new Map<string, { row: KeyRow; until: number }>();
  // A read under way while its key is written must not put the old row back.
  let writes = 0;
  return {
    async get(lookup) {
      const hit = rows.get(lookup);
      const left = hit === undefined ? 0 : hit.until - deps.now();
      // More is left than a row is kept for: the clock went back, and a key revoked elsewhere would open for as long.
      if (hit !== undefined && left > 0 && left <= KEY_CACHE_MS) return hit.row;
      const seen = writes;
      const { value } = await deps.kv.get<KeyRow>(keys.apiKey(lookup));
      if (value === null) return null; // not kept: guesses would push real keys out
      if (seen === writes) {
        if (rows.size >= MAX_CACHED_KEYS) rows.delete(rows.keys().next().value!);
        rows.set(lookup, { row: value, until: deps.now() + KEY_CACHE_MS });
      }
      return value;
    },
    forget(lookup) {
      writes++;
      rows.delete(lookup);
    },
  };
}

export interface AuthDeps {
  now(): number;
  keyCache: KeyCache;
  keyPepper: Uint8Array<ArrayBuffer>;
  limiter: RateLimiter;
}

/**
 * The calling key's row.
 * @param client the client's address, a map key of the limiter and nothing else.
 * @throws ApiError 401 `unauthenticated`, `key_revoked`, `key_expired`; 429 after too many failures from one address.
 */
export async function authenticate(headers: Headers, client: string, deps: AuthDeps): Promise<KeyRow> {
  const sent = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "")?.[1] ?? "";
  const parsed = parseKey(sent);
  const row = parsed === null ? null : await deps.keyCache.get(parsed.lookup);
  if (!keyMatches(sent, row?.hash ?? null, deps.keyPepper) || row === null) {
    // Only failures count: a valid key behind the same address goes on.
    deps.limiter.take("failed_auth", network(client));
    throw unauthenticated();
  }
  if (row.revoked_at !== null) throw refusedKey("key_revoked", "it was revoked");
  if (row.expires_at !== null && row.expires_at <= deps.now()) {
    throw refusedKey("key_expired", "it has expired");
  }
  return row;
}

/** @throws ApiError 403 `permission_denied` with `details.required`. */
export function demand(key: KeyRow, permission: Permission): void {
  if (holds(key, permission)) return;
  throw new ApiError(
    "permission_denied",
    `Cannot do this with this key: it lacks ${permission}.`,
    "Use a key that has the permission.",
    { required: permission },
  );
}

/** One address of IPv4, a /64 of IPv6: whoever holds one of those holds all of it. A dual-stack socket maps IPv4 into IPv6. */
function network(client: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(client)?.[1];
  if (mapped !== undefined) return mapped;
  if (!client.includes(":")) return client;
  const [head = "", tail] = client.split("%")[0]!.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  const all = [...groups, ...Array(Math.max(0, missing)).fill("0"), ...(tail ?? "").split(":")];
  return all.slice(0, 4).join(":");
}

const challenge = { "www-authenticate": "Bearer" };

const unauthenticated = () =>
  new ApiError(
    "unauthenticated",
    "Cannot tell who calls: there is no valid API key.",
    "Send Authorization: Bearer with a key that exists.",
    undefined,
    challenge,
  );

const refusedKey = (code: "key_revoked" | "key_expired", why: string) =>
  new ApiError(code, `Cannot use this key: ${why}.`, "Use another key.", undefined, challenge);

/**
 * `Idempotency-Key` (reference §1): the same key and the same request answer the first response again, without its one-time
 * secrets; another request under the key is 409 `idempotency_conflict`, and one still running 409 `request_in_progress`. A 4xx or
 * 5xx frees the key. Kept 30 days, per calling key and scope.
 *
 * A process that dies between its change and the stored response leaves a row that says "running"; after two minutes a retry takes
 * it over and runs again, so across a crash the promise is at least once, never stuck.
 */
import { createHmac } from "node:crypto";
import { ApiError, invalidRequest } from "../lib/errors.ts";
import type { IdempotencyRow } from "../lib/keys.ts";
import { keys } from "../lib/keys.ts";
import { IDEMPOTENCY_RUNNING_MS, IDEMPOTENCY_TTL_MS } from "../lib/limits.ts";
import type { Services } from "./services.ts";

/** Characters of a body in one row: at two bytes each still below the limit of a value. */
const CHUNK_CHARS = 25_000;

/** Where a request's row is, and what it must be the same as. */
export interface Claimed {
  id: readonly [keyId: string, scope: string, idempotencyKey: string];
  fingerprint: string;
  versionstamp: string;
}

export type Begun = { kind: "run"; claim: Claimed } | { kind: "replay"; status: number; body: string };

type Deps = Pick<Services, "kv" | "committer" | "now">;

/** The header's value, checked. @throws ApiError 400 at path `Idempotency-Key`. */
export function idempotencyKeyOf(headers: Headers): string | null {
  const value = headers.get("idempotency-key");
  if (value === null) return null;
  if (!/^[\x20-\x7e]{1,255}$/.test(value)) {
    throw invalidRequest([{
      path: "Idempotency-Key",
      message: "must be 1 to 255 printable ASCII characters",
    }]);
  }
  return value;
}

/** What makes two requests the same: method, path with its query, media type and body bytes. Keyed, so a row tells nothing. */
export function fingerprintOf(
  hashKey: Uint8Array,
  method: string,
  target: string,
  contentType: string,
  body: Uint8Array,
): string {
  const mac = createHmac("sha256", hashKey).update(JSON.stringify(["idem", method, target, contentType]));
  return mac.update(body).digest("hex");
}

/** Claims the key for this request, or finds what it answered. */
export async function begin(deps: Deps, id: Claimed["id"], fingerprint: string): Promise<Begun> {
  for (;;) {
    const now = deps.now();
    const { value: row, versionstamp } = await deps.kv.get<IdempotencyRow>(keys.idempotency(...id));
    if (row !== null && row.expires_at > now) {
      if (row.fingerprint !== fingerprint) throw conflict();
      if (row.response !== null) return await replay(deps, id, row.response);
      if (row.started_at + IDEMPOTENCY_RUNNING_MS > now) throw inProgress();
    }
    const value: IdempotencyRow = {
      fingerprint,
      response: null,
      started_at: now,
      expires_at: now + IDEMPOTENCY_TTL_MS,
    };
    const settled = await deps.committer.commit({
      checks: [{ key: keys.idempotency(...id), versionstamp }],
      writes: [{ op: "set", key: keys.idempotency(...id), value, expireIn: IDEMPOTENCY_TTL_MS }],
    });
    if (settled.ok) return { kind: "run", claim: { id, fingerprint, versionstamp: settled.versionstamp } };
  }
}

/**
 * Keeps the response. The fields in `oneTime` are left out and the body says so, because a secret is never stored in the clear.
 * @param body the JSON text as answered, or "" for none.
 */
export async function finish(
  deps: Deps,
  claim: Claimed,
  status: number,
  body: string,
  oneTime: readonly string[],
): Promise<void> {
  const kept = oneTime.length === 0 ? body : withoutSecrets(body, oneTime);
  const now = deps.now();
  const chunks = kept.length > CHUNK_CHARS ? Math.ceil(kept.length / CHUNK_CHARS) : undefined;
  const value: IdempotencyRow = {
    fingerprint: claim.fingerprint,
    response: { status, body: chunks === undefined ? kept : "", ...(chunks === undefined ? {} : { chunks }) },
    started_at: now,
    expires_at: now + IDEMPOTENCY_TTL_MS,
  };
  const expireIn = IDEMPOTENCY_TTL_MS;
  await deps.committer.commit({
    checks: [{ key: keys.idempotency(...claim.id), versionstamp: claim.versionstamp }],
    writes: [
      { op: "set", key: keys.idempotency(...claim.id), value, expireIn },
      ...Array.from({ length: chunks ?? 0 }, (_, i) => ({
        op: "set" as const,
        key: keys.idempotencyChunk(...claim.id, i),
        value: kept.slice(i * CHUNK_CHARS, (i + 1) * CHUNK_CHARS),
        expireIn,
      })),
    ],
  });
}

/** Frees the key after a refusal. */
export async function abandon(deps: Deps, claim: Claimed): Promise<void> {
  await deps.committer.commit({
    checks: [{ key: keys.idempotency(...claim.id), versionstamp: claim.versionstamp }],
    writes: [{ op: "delete", key: keys.idempotency(...claim.id) }],
  });
}

async function replay(deps: Deps, id: Claimed["id"], response: NonNullable<IdempotencyRow["response"]>) {
  let body = response.body;
  for (let i = 0; i < (response.chunks ?? 0); i++) {
    body += (await deps.kv.get<string>(keys.idempotencyChunk(...id, i))).value ?? "";
  }
  return { kind: "replay" as const, status: response.status, body };
}

function withoutSecrets(body: string, oneTime: readonly string[]): string {
  const answer = JSON.parse(body) as Record<string, unknown>;
  for (const field of oneTime) delete answer[field];
  return JSON.stringify({ ...answer, secret_replayed: false });
}

const conflict = () =>
  new ApiError(
    "idempotency_conflict",
    "Cannot run this request: its Idempotency-Key was used for another one.",
    "Use a fresh Idempotency-Key for a different request.",
  );

const inProgress = () =>
  new ApiError(
    "request_in_progress",
    "Cannot answer yet: the first request under this Idempotency-Key is still running.",
    "Send the same request again in a moment.",
    undefined,
    { "retry-after": "1" },
  );

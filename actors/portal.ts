/**
 * Portal links: a way into the console for a tenant's own customers, without an API key. A link is good for one sign-in; only
 * a keyed hash of its token is kept. What it grants is never wider than the key that made it, and that key's end is its
 * sessions' end.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { ApiError } from "../lib/errors.ts";
import type { Ids } from "../lib/ids.ts";
import {
  type KeyRow,
  keys,
  type Permission,
  type PortalLinkRow,
  type SessionRow,
  type TenantRow,
} from "../lib/keys.ts";
import { HOUR_MS } from "../lib/limits.ts";
import { holds } from "../lib/reach.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { Random } from "../lib/edge/ports.ts";
import { auditWrites } from "./audit.ts";
import { change } from "./change.ts";

export type PortalMode = "read" | "manage";

/** How long a browser that came through a link stays signed in. */
export const PORTAL_SESSION_MS = 8 * HOUR_MS;
const TOKEN_BYTES = 32;

const GRANTED: Record<PortalMode, readonly Permission[]> = {
  read: ["webhooks:read", "events:read"],
  manage: ["webhooks:read", "webhooks:manage", "events:read"],
};

export interface PortalDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
  random: Pick<Random, "bytes">;
  /** `PM_KEY_PEPPER`. */
  pepper: Uint8Array;
}

/** A token nobody can guess, base64url. */
export const newToken = (random: Pick<Random, "bytes">): string =>
  Buffer.from(random.bytes(TOKEN_BYTES)).toString("base64url");

/** What is kept of a session's or a link's token. */
export const tokenHash = (what: "session" | "portal", token: string, pepper: Uint8Array): string =>
  createHmac("sha256", pepper).update(`${what}:${token}`).digest("hex");

/** A link's row and its token, which nobody sees again. @throws ApiError 403 when a portal session asks. */
export async function createPortalLink(
  d: PortalDeps,
  input: { tenant: TenantRow; mode: PortalMode; ttlMs: number },
  by: KeyRow,
): Promise<{ row: PortalLinkRow; token: string }> {
  const token = newToken(d.random), id = d.ids.next("portalLink");
  const made = await change(d.committer, id, async () => {
    const { value: lookup } = await d.kv.get<string>(keys.apiKeyById(by.id));
    if (lookup === null) throw noKey();
    const now = d.now();
    const row: PortalLinkRow = {
      id,
      lookup,
      tenant_id: input.tenant.id,
      permissions: GRANTED[input.mode].filter((permission) => holds(by, permission)),
      created_at: now,
      expires_at: now + input.ttlMs,
    };
    const key = keys.portalLink(tokenHash("portal", token, d.pepper));
    const writes: Write[] = [
      { op: "set", key, value: row, expireIn: input.ttlMs },
      ...auditOf(d, "portal_link.created", row, input.tenant, by),
    ];
    return { unit: { checks: [{ key, versionstamp: null }], writes }, result: row };
  });
  return { row: made, token };
}

/** Uses a link up: its row goes in the commit that makes the session. Null: it is used, expired, or never was. */
export async function redeemPortalLink(
  d: PortalDeps,
  token: string,
): Promise<{ session: SessionRow; sessionToken: string } | null> {
  const key = keys.portalLink(tokenHash("portal", token, d.pepper));
  const { value: row, versionstamp } = await d.kv.get<PortalLinkRow>(key);
  const now = d.now();
  if (row === null || row.expires_at <= now) return null;
  const [{ value: maker }, { value: tenant }] = await Promise.all([
    d.kv.get<KeyRow>(keys.apiKey(row.lookup)),
    d.kv.get<TenantRow>(keys.tenant(row.tenant_id)),
  ]);
  if (maker === null || !isGood(maker, now) || tenant === null) return null;
  const session: SessionRow = {
    lookup: row.lookup,
    portal: { link: row.id, tenant_id: row.tenant_id, permissions: row.permissions },
    created_at: now,
    expires_at: now + PORTAL_SESSION_MS,
  };
  const sessionToken = newToken(d.random);
  const settled = await d.committer.commit({
    checks: [{ key, versionstamp }],
    writes: [
      { op: "delete", key },
      {
        op: "set",
        key: keys.session(tokenHash("session", sessionToken, d.pepper)),
        value: session,
        expireIn: PORTAL_SESSION_MS,
      },
      ...auditOf(d, "portal_link.used", row, tenant, { id: row.id as unknown as KeyRow["id"] }),
    ],
  });
  return settled.ok ? { session, sessionToken } : null;
}

/** Neither revoked nor expired. */
export const isGood = (key: KeyRow, now: number): boolean =>
  key.revoked_at === null && (key.expires_at === null || key.expires_at > now);

/** Who acts in a portal session, as a key of its tenant: every check of the API holds for it. The audit trail names the link. */
export function portalKey(session: SessionRow & { portal: NonNullable<SessionRow["portal"]> }): KeyRow {
  return {
    id: session.portal.link as unknown as KeyRow["id"],
    hash: "",
    name: "Portal link",
    level: "tenant",
    partner_id: null,
    tenant_id: session.portal.tenant_id,
    identity_id: null,
    permissions: session.portal.permissions,
    expires_at: session.expires_at,
    revoked_at: null,
    created_at: session.created_at,
  };
}

function auditOf(
  d: PortalDeps,
  action: string,
  row: PortalLinkRow,
  tenant: TenantRow,
  by: Pick<KeyRow, "id">,
): Write[] {
  return auditWrites(d, { action, by, tenant: tenant.id, partner: tenant.partner_id, subject: row.id });
}

const noKey = () =>
  new ApiError(
    "scope_denied",
    "Cannot make a portal link: a portal session makes none.",
    "Use an API key with webhooks:manage.",
  );

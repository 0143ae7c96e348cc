/**
 * Sessions of browsers: a cookie with a random token, a row under the token's keyed hash. Each request reads the row and the
 * key it lives by, so that signing out, an expiry and a revoked key end it at once (a key revoked in another isolate within
 * the key cache's 5 s).
 */
import type { KeyRow, SessionRow } from "../../lib/keys.ts";
import { keys } from "../../lib/keys.ts";
import { HOUR_MS } from "../../lib/limits.ts";
import { isGood, newToken, portalKey, tokenHash } from "../../actors/portal.ts";
import type { Services } from "../services.ts";
import type { Visitor } from "./table.ts";

/** A working day. */
export const SESSION_MS = 12 * HOUR_MS;

/** `__Host-` binds a cookie to this very host over TLS. Browsers take no such cookie over plain http, which is for local use. */
export const sessionCookie = (secure: boolean): string => secure ? "__Host-pm_session" : "pm_session";

/** Whether cookies are `Secure`: always in production, elsewhere when the request came over TLS. */
export const isSecure = (services: Pick<Services, "config">, url: URL): boolean =>
  services.config.keyMode === "live" || url.protocol === "https:";

/** One cookie of a request; null when it is absent or given twice. */
export function cookieOf(headers: Headers, name: string): string | null {
  const found = (headers.get("cookie") ?? "").split(";").map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
  return found.length === 1 && /^[\w-]{16,64}$/.test(found[0]!) ? found[0]! : null;
}

/** The `Set-Cookie` of a token; 0 seconds takes it away. */
export function setCookie(name: string, token: string, maxAgeS: number, secure: boolean): string {
  return `${name}=${token}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}

/** A session of an API key. The key is checked by the caller. @returns the token for the cookie. */
export async function openSession(services: Services, lookup: string): Promise<string> {
  const token = newToken(services.random), now = services.now();
  const row: SessionRow = { lookup, portal: null, created_at: now, expires_at: now + SESSION_MS };
  const key = keys.session(tokenHash("session", token, services.config.keyPepper));
  await services.committer.commit({
    checks: [],
    writes: [{ op: "set", key, value: row, expireIn: SESSION_MS }],
  });
  return token;
}

/** Who holds this token, or null when the session is over. */
export async function visitorOf(services: Services, token: string): Promise<Visitor | null> {
  const key = keys.session(tokenHash("session", token, services.config.keyPepper));
  const { value: session } = await services.kv.get<SessionRow>(key);
  const now = services.now();
  if (session === null || session.expires_at <= now) return null;
  const row: KeyRow | null = await services.keyCache.get(session.lookup);
  if (row === null || !isGood(row, now)) return null;
  const { portal } = session;
  if (portal === null) return { key: row, session, portal: false };
  return { key: portalKey({ ...session, portal }), session, portal: true };
}

export async function closeSession(services: Services, token: string): Promise<void> {
  const key = keys.session(tokenHash("session", token, services.config.keyPepper));
  await services.committer.commit({ checks: [], writes: [{ op: "delete", key }] });
}

/** Ways in and out: an API key, a one-time portal link, signing out. */
import { ApiError } from "../../../lib/errors.ts";
import { parseKey } from "../../../lib/edge/api_keys.ts";
import { PORTAL_SESSION_MS, redeemPortalLink } from "../../../actors/portal.ts";
import { authenticate } from "../../auth.ts";
import { CSRF_FIELD } from "../csrf.ts";
import { Brand } from "../layout.tsx";
import { closeSession, isSecure, openSession, SESSION_MS, sessionCookie, setCookie } from "../session.ts";
import {
  type BareView,
  type ConsoleRow,
  type Html,
  type OpenContext,
  type OpenRow,
  redirect,
} from "../table.ts";
import { described, Field } from "../ui.tsx";

function Door({ children }: { children?: Html }) {
  return (
    <body class="door">
      <main id="main">
        <Brand href="/console/sign-in" />
        <div class="card">
          <div class="body">{children}</div>
        </div>
      </main>
    </body>
  );
}

/** A cookie for the forms of a browser that has none yet. */
const bare = (c: OpenContext, title: string, body: Html, status = 200): BareView => ({
  kind: "bare",
  title,
  body,
  status,
  ...(c.cookie === null ? {} : { cookie: c.cookie }),
});

function signInPage(c: OpenContext, next: string, error?: string, status = 200): BareView {
  return bare(
    c,
    "Sign in",
    <Door>
      <h1>Sign in</h1>
      {c.query.has("ended") && error === undefined
        ? <div class="note warn" role="status">Your session is over. Sign in again to go on.</div>
        : null}
      <form method="post" action="/console/sign-in" class="form">
        <input type="hidden" name={CSRF_FIELD} value={c.csrf} />
        <input type="hidden" name="next" value={next} />
        <Field
          id="key"
          label="API key"
          error={error}
          hint="You see what the key sees. It stays on the server's side of this page; the browser keeps a session of 12 hours."
        >
          <input
            id="key"
            name="key"
            type="password"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            required
            placeholder="pmk_…"
            {...described("key", error)}
          />
        </Field>
        <button type="submit" class="primary" data-busy="Signing in …">Sign in</button>
      </form>
      <p class="small muted">
        No key? Whoever runs this service makes one with{" "}
        <code>deno task pmail keys create</code>, or sends you a link that signs you in.
      </p>
    </Door>,
    status,
  );
}

async function signIn(c: OpenContext) {
  const next = safeNext(c.form.get("next"));
  const text = (c.form.get("key") ?? "").trim();
  const { services, limiter } = c;
  try {
    const headers = new Headers({ authorization: `Bearer ${text.replace(/[^\x21-\x7e]/g, "?")}` });
    const { keyCache, now, config } = services;
    await authenticate(headers, c.client, { now, keyCache, keyPepper: config.keyPepper, limiter });
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown;
    return signInPage(c, next, sayWhy(thrown), thrown.status);
  }
  const token = await openSession(services, parseKey(text)!.lookup);
  return redirect(next, setCookie(sessionCookie(c.secure), token, SESSION_MS / 1_000, c.secure));
}

function sayWhy({ code, fix }: ApiError): string {
  switch (code) {
    case "rate_limited":
      return `Too many failed sign-ins from your network. ${fix}`;
    case "key_revoked":
      return "This key was revoked. Use another key.";
    case "key_expired":
      return "This key has expired. Use another key.";
    default:
      return "This is not a key of this service. Check that all of it was pasted.";
  }
}

/** Only pages of the console: nobody is sent elsewhere by a link to the sign-in. */
function safeNext(next: string | null): string {
  return next !== null && /^\/console(\/[\w./-]*)?(\?[^\s\\]*)?$/.test(next) ? next : "/console";
}

function portalPage(c: OpenContext, token: string): BareView {
  return bare(
    c,
    "Open the console",
    <Door>
      <h1>Open your webhooks console</h1>
      <p>
        This link signs this browser in once, for up to {PORTAL_SESSION_MS / 3_600_000}{" "}
        hours. You see your own webhook endpoints, events and deliveries.
      </p>
      <form method="post" action="/console/portal" class="form">
        <input type="hidden" name={CSRF_FIELD} value={c.csrf} />
        <input type="hidden" name="token" value={token} />
        <button type="submit" class="primary" data-busy="Opening …">Open the console</button>
      </form>
    </Door>,
  );
}

/** The link itself only shows a button: programs that fetch links from mails do not use it up. */
async function portal(c: OpenContext) {
  const { services, limiter } = c;
  const used = await redeemPortalLink(
    { ...services, pepper: services.config.keyPepper },
    c.form.get("token") ?? "",
  );
  if (used === null) {
    limiter.take("failed_auth", c.client);
    return bare(
      c,
      "This link is over",
      <Door>
        <h1>This link is over</h1>
        <p>A link works once, and only for a while. Ask whoever sent it to you for a new one.</p>
      </Door>,
      403,
    );
  }
  const name = sessionCookie(c.secure);
  return redirect("/console", setCookie(name, used.sessionToken, PORTAL_SESSION_MS / 1_000, c.secure));
}

export const signInRows: OpenRow[] = [
  {
    method: "GET",
    path: "/console/sign-in",
    handler: (c) => signInPage(c, safeNext(c.query.get("next"))),
  },
  { method: "POST", path: "/console/sign-in", handler: signIn },
  { method: "GET", path: "/console/portal", handler: (c) => portalPage(c, c.query.get("token") ?? "") },
  { method: "POST", path: "/console/portal", handler: portal },
];

export const signOutRows: ConsoleRow[] = [{
  method: "POST",
  path: "/console/sign-out",
  needs: "session",
  handler: async (c) => {
    const secure = isSecure(c.services, c.url), name = sessionCookie(secure);
    await closeSession(c.services, c.token);
    return redirect("/console/sign-in", setCookie(name, "", 0, secure));
  },
}];

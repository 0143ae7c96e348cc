/**
 * The console at `/console`: finds the row, the session and the form, runs the handler, frames the page. For each request in this
 * order: row (404, 405) → session (or to the sign-in) → rate → form (403 unless it is this session's) → handler. What is out of
 * the visitor's reach answers as what does not exist.
 */
import type { Context as HonoContext, Hono } from "hono";
import { ApiError, notFound } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import { demand } from "../auth.ts";
import { readBody } from "../body.ts";
import { faultOf } from "../errors.ts";
import type { RateLimiter } from "../rate_limit.ts";
import type { Services } from "../services.ts";
import type { Route } from "../table.ts";
import { makeApiClient, rowMap } from "./api.ts";
import { csrfToken, demandOwnForm } from "./csrf.ts";
import { CONSOLE_HEADERS } from "./headers.ts";
import { Document, Frame } from "./layout.tsx";
import { ErrorBody } from "./pages/error.tsx";
import { homeOf, type Place, placeOf } from "./reach.ts";
import { consoleRows, openRows } from "./rows.ts";
import { cookieOf, isSecure, sessionCookie, setCookie, visitorOf } from "./session.ts";
import {
  type ConsoleContext,
  type ConsoleRow,
  type OpenRow,
  type PageView,
  patternOf,
  redirect,
  type View,
  type Visitor,
} from "./table.ts";

interface Peer {
  remoteAddr?: { hostname?: string };
}
// deno-lint-ignore no-explicit-any
type AnyContext = HonoContext<any>;

const FORM_TYPE = "application/x-www-form-urlencoded";
/** Names a browser before it signs in, so that its forms can be bound to it. */
const GUEST_COOKIE_S = 3_600;

const withPattern = <R extends { path: string }>(row: R) => ({ row, pattern: patternOf(row.path) });
const OPEN = openRows.map(withPattern);
const ROWS = consoleRows.map(withPattern);

/** Puts the console under `/console` of an app whose context has `requestId` and `started`. */
export function mountConsole(
  // deno-lint-ignore no-explicit-any
  app: Hono<any>,
  routes: readonly Route[],
  services: Services,
  limiter: RateLimiter,
): void {
  const rows = rowMap(routes);
  const handle = async (c: AnyContext): Promise<Response> => {
    const request = new ConsoleRequest(c, rows, services, limiter);
    const response = await request.answer();
    note(c, request, response.status, services);
    return response;
  };
  app.all("/console", handle);
  app.all("/console/*", handle);
}

class ConsoleRequest {
  readonly url: URL;
  readonly secure: boolean;
  /** Pattern and code for the log: never the path itself. */
  route = "/console/none";
  code = "ok";
  visitor: Visitor | null = null;
  csrf = "";

  constructor(
    readonly c: AnyContext,
    readonly rows: ReadonlyMap<string, Route>,
    readonly services: Services,
    readonly limiter: RateLimiter,
  ) {
    this.url = new URL(c.req.url);
    this.secure = isSecure(services, this.url);
  }

  get requestId(): Id<"request"> {
    return this.c.get("requestId");
  }

  async answer(): Promise<Response> {
    try {
      const method = this.c.req.method === "HEAD" ? "GET" : this.c.req.method;
      const open = find(OPEN, this.url.pathname, method);
      if (open !== null) return await this.#render(await this.#open(open.row));
      return await this.#render(await this.#signedIn(method));
    } catch (thrown) {
      return await this.#refuse(thrown);
    }
  }

  async #open(row: OpenRow): Promise<View> {
    this.route = row.path;
    const name = guestCookie(this.secure);
    const known = cookieOf(this.c.req.raw.headers, name);
    const guest = known ?? this.services.ids.ulid() + this.services.ids.ulid();
    const csrf = csrfToken(guest, this.services.config.hashKey);
    const form = await this.#form(row.method, known === null ? null : csrf);
    return await row.handler({
      request: this.c.req.raw,
      url: this.url,
      query: this.url.searchParams,
      form,
      services: this.services,
      client: (this.c.env as Peer | undefined)?.remoteAddr?.hostname ?? "",
      csrf,
      cookie: known === null ? setCookie(name, guest, GUEST_COOKIE_S, this.secure) : null,
      secure: this.secure,
      limiter: this.limiter,
    });
  }

  async #signedIn(method: string): Promise<View> {
    const token = cookieOf(this.c.req.raw.headers, sessionCookie(this.secure));
    const visitor = token === null ? null : await visitorOf(this.services, token);
    if (token === null || visitor === null) return this.#toSignIn(token !== null);
    this.visitor = visitor;
    this.csrf = csrfToken(token, this.services.config.hashKey);
    const found = find(ROWS, this.url.pathname, method);
    if (found === null) throw notFound("route");
    const { row, params } = found;
    this.route = row.path;
    this.limiter.take("key", visitor.key.id);
    const form = await this.#form(row.method, this.csrf);
    if (row.needs !== "session") demand(visitor.key, row.needs);
    const { services, requestId, url } = this;
    const context: ConsoleContext = {
      url,
      params,
      query: url.searchParams,
      form,
      visitor,
      token,
      services,
      requestId,
      now: services.now(),
      csrf: this.csrf,
      api: makeApiClient({
        rows: this.rows,
        services,
        limiter: this.limiter,
        key: visitor.key,
        requestId,
        origin: url.origin,
      }),
    };
    return await row.handler(context);
  }

  /** Back to where one wanted to be, after signing in. A session that ended is told so. */
  #toSignIn(ended: boolean): View {
    const to = new URLSearchParams();
    if (this.c.req.method === "GET" && this.url.pathname !== "/console") {
      to.set("next", this.url.pathname + this.url.search);
    }
    if (ended) to.set("ended", "1");
    this.route = "/console/sign-in";
    this.code = "unauthenticated";
    return redirect(`/console/sign-in${to.size > 0 ? `?${to}` : ""}`);
  }

  async #form(method: string, expected: string | null): Promise<URLSearchParams> {
    if (method !== "POST") return new URLSearchParams();
    const { timers, config } = this.services;
    const body = await readBody(this.c.req.raw, [FORM_TYPE], timers, config.bodyDeadlineMs);
    const form = new URLSearchParams(body.raw ? new TextDecoder().decode(body.bytes) : "");
    demandOwnForm(this.c.req.raw, form, expected, config.consoleHost ?? null);
    return form;
  }

  async #render(view: View): Promise<Response> {
    const headers = new Headers(CONSOLE_HEADERS);
    if (view.kind === "redirect") {
      headers.set("location", view.to);
      if (view.cookie !== undefined) headers.append("set-cookie", view.cookie);
      return new Response(null, { status: 303, headers });
    }
    if (view.kind === "file") {
      headers.set("content-type", view.type);
      headers.set("cache-control", "no-cache");
      headers.set("etag", view.etag);
      const same = this.c.req.header("if-none-match") === view.etag;
      return new Response(same ? null : view.text, { status: same ? 304 : 200, headers });
    }
    headers.set("content-type", "text/html; charset=utf-8");
    if (view.kind === "bare") {
      if (view.cookie !== undefined) headers.append("set-cookie", view.cookie);
      const html = String(await <Document title={view.title}>{view.body}</Document>);
      return new Response(`<!doctype html>${html}`, { status: view.status ?? 200, headers });
    }
    return new Response(await this.#framed(view, this.visitor!), { status: view.status ?? 200, headers });
  }

  async #framed(view: PageView, visitor: Visitor): Promise<string> {
    const place: Place = view.place ??
      await placeOf({ kv: this.services.kv, key: visitor.key }, homeOf(visitor.key));
    const html = String(
      await (
        <Frame
          title={view.title}
          body={view.body}
          visitor={visitor}
          place={place}
          nav={view.nav ?? null}
          csrf={this.csrf}
          version={this.services.config.version}
        />
      ),
    );
    return `<!doctype html>${html}`;
  }

  /** The page of an error. It tells nothing of what was asked for, so that missing and out of reach are the same bytes. */
  async #refuse(thrown: unknown): Promise<Response> {
    const error = thrown instanceof ApiError ? thrown : null;
    this.code = error?.code ?? "internal_error";
    if (error === null) {
      const { requestId: request_id, route } = this;
      this.services.log.error("http_failed", { request_id, route, ...faultOf(thrown) });
    }
    const status = error?.status ?? 500;
    const title = status === 404 ? "Not found" : status === 403 ? "Not allowed" : "Something is in the way";
    const body = (
      <ErrorBody title={title} error={error} requestId={this.requestId} signedIn={this.visitor !== null} />
    );
    try {
      const response = await this.#render(
        this.visitor === null
          ? {
            kind: "bare",
            title,
            status,
            body: (
              <body class="door">
                <main id="main">{body}</main>
              </body>
            ),
          }
          : { kind: "page", title, status, body },
      );
      for (const [name, value] of Object.entries(error?.headers ?? {})) response.headers.set(name, value);
      return response;
    } catch (again) {
      this.services.log.error("http_failed", {
        request_id: this.requestId,
        route: this.route,
        ...faultOf(again),
      });
      return new Response("Something failed on our side.", { status: 500, headers: CONSOLE_HEADERS });
    }
  }
}

const guestCookie = (secure: boolean): string => secure ? "__Host-pm_guest" : "pm_guest";

/** The row of a path, with its parameters. @throws ApiError 405 when only the method is wrong. */
function find<R extends ConsoleRow | OpenRow>(
  rows: readonly { row: R; pattern: RegExp }[],
  path: string,
  method: string,
): { row: R; params: Record<string, string> } | null {
  const allowed: string[] = [];
  for (const { row, pattern } of rows) {
    const match = pattern.exec(path);
    if (match === null) continue;
    if (row.method === method) return { row, params: { ...match.groups } };
    allowed.push(row.method);
  }
  if (allowed.length === 0) return null;
  throw new ApiError(
    "method_not_allowed",
    "Cannot use this method here.",
    "Open the page from the console.",
    {},
    {
      allow: allowed.join(", "),
    },
  );
}

/** The same line and metrics as a request to the API leaves (`app.ts`). */
function note(c: AnyContext, request: ConsoleRequest, status: number, services: Services): void {
  const { route, code, visitor } = request;
  const ms = Math.max(0, services.now() - c.get("started"));
  const method = ["GET", "HEAD", "POST"].includes(c.req.method) ? c.req.method : "other";
  const labels = { route, method, status: `${Math.floor(status / 100)}xx`, code };
  services.metrics.count("http_requests_total", labels);
  services.metrics.observe("http_ms", ms, labels);
  services.log.info("http_request", {
    request_id: request.requestId,
    route,
    method,
    status,
    code,
    ms,
    key_id: visitor?.key.id,
  });
}

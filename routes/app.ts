/**
 * The route table → an HTTP server: one pipeline for every row (its order is in `table.ts`), one error mapper, `Request-Id` on
 * every answer. It routes by path alone: an absolute-form request target or a foreign `Host` changes nothing.
 */
import { type Context as HonoContext, Hono } from "hono";
import { ApiError, notFound } from "../lib/errors.ts";
import type { Id } from "../lib/ids.ts";
import type { KeyRow } from "../lib/keys.ts";
import { authenticate, demand } from "./auth.ts";
import { mountConsole } from "./console/console.tsx";
import { errorAnswer, faultOf } from "./errors.ts";
import { JSON_HEADERS, serve } from "./pipeline.ts";
import { makeRateLimiter, type RateLimiter } from "./rate_limit.ts";
import type { Services } from "./services.ts";
import type { Route } from "./table.ts";

/** What `Deno.serve` hands over beside the request. */
interface Peer {
  remoteAddr?: { hostname?: string };
}
type Env = { Bindings: Peer; Variables: { requestId: Id<"request">; started: number } };

/** The server over the rows. `app.fetch(request, info)` is the handler of `Deno.serve`. */
export function createApp(routes: readonly Route[], services: Services): Hono<Env> {
  const app = new Hono<Env>();
  const limiter = makeRateLimiter(
    services.now,
    (bucket) => services.metrics.count("rate_limited_total", { bucket }),
  );

  app.use("*", async (c, next) => {
    c.set("requestId", services.ids.next("request"));
    c.set("started", services.now());
    await next();
    c.res.headers.set("request-id", c.get("requestId"));
  });

  const byPath = new Map<string, Route[]>();
  for (const row of routes) byPath.set(row.path, [...byPath.get(row.path) ?? [], row]);
  // "{" sorts behind letters: of two paths that fit, the literal one comes first.
  const paths = [...byPath.keys()].sort((a, b) => a < b ? -1 : 1);
  for (const path of paths) {
    const rows = byPath.get(path)!;
    for (const row of rows) app.on(row.method, pattern(path), (c) => answer(c, row, services, limiter));
    const allow = allowed(rows);
    app.options(pattern(path), (c) => c.body(null, 204, { allow }));
    app.all(pattern(path), (c) => refuse(c, methodNotAllowed(allow), path, services));
  }
  mountConsole(app, routes, services, limiter);
  app.notFound((c) => refuse(c, notFound("route"), "none", services));
  app.onError((thrown, c) => refuse(c, thrown, "none", services));
  return app;
}

/** `{name}` → `:name` */
const pattern = (path: string): string => path.replace(/\{([a-z_]+)\}/g, ":$1");

function allowed(rows: readonly Route[]): string {
  const methods = rows.map((row) => row.method as string);
  if (methods.includes("GET")) methods.push("HEAD");
  return [...methods, "OPTIONS"].join(", ");
}

async function answer(
  c: HonoContext<Env>,
  row: Route,
  services: Services,
  limiter: RateLimiter,
): Promise<Response> {
  const headers: Record<string, string> = {};
  let key: KeyRow | null = null;
  try {
    if (row.permission !== "public") {
      const client = c.env?.remoteAddr?.hostname ?? "";
      key = await authenticate(c.req.raw.headers, client, {
        now: services.now,
        keyCache: services.keyCache,
        keyPepper: services.config.keyPepper,
        limiter,
      });
      const left = limiter.take("key", key.id);
      headers["ratelimit-limit"] = String(left.limit);
      headers["ratelimit-remaining"] = String(left.remaining);
      demand(key, row.permission);
    }
    const call = {
      row,
      request: c.req.raw,
      params: c.req.param() as Record<string, string>,
      key,
      requestId: c.get("requestId"),
      headers,
    };
    const response = await serve(call, services, limiter);
    note(c, row.method, row.path, response.status, "ok", services, key);
    return response;
  } catch (thrown) {
    return refuse(c, thrown, row.path, services, headers, key);
  }
}

function refuse(
  c: HonoContext<Env>,
  thrown: unknown,
  path: string,
  services: Services,
  headers: Record<string, string> = {},
  key: KeyRow | null = null,
): Response {
  const error = errorAnswer(thrown, c.get("requestId"));
  if (!(thrown instanceof ApiError)) {
    services.log.error("http_failed", { request_id: c.get("requestId"), route: path, ...faultOf(thrown) });
  }
  note(c, c.req.method, path, error.status, error.code, services, key);
  return new Response(error.body, {
    status: error.status,
    headers: { ...headers, ...JSON_HEADERS, ...error.headers },
  });
}

/** One line and two metrics a request: pattern, status and code, never the path itself. */
function note(
  c: HonoContext<Env>,
  method: string,
  route: string,
  status: number,
  code: string,
  services: Services,
  key: KeyRow | null,
): void {
  const ms = Math.max(0, services.now() - c.get("started")), id = c.get("requestId");
  const known = KNOWN_METHODS.has(method) ? method : "other";
  const labels = { route, method: known, status: `${Math.floor(status / 100)}xx`, code };
  services.metrics.count("http_requests_total", labels);
  services.metrics.observe("http_ms", ms, labels);
  services.log.info("http_request", {
    request_id: id,
    route,
    method: known,
    status,
    code,
    ms,
    key_id: key?.id,
  });
}

const KNOWN_METHODS = new Set(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]);

const methodNotAllowed = (allow: string) =>
  new ApiError(
    "method_not_allowed",
    "Cannot use this method here.",
    `Use one of: ${allow}.`,
    { allow: allow.split(", ") },
    { allow },
  );

/**
 * What happens to a request behind its key and permission: parameters, scope, body, idempotency, handler, answer. The order is
 * in `table.ts`.
 */
import type { Id } from "../lib/ids.ts";
import type { KeyRow } from "../lib/keys.ts";
import { stringify } from "../lib/json.ts";
import { readBody } from "./body.ts";
import { abandon, begin, type Claimed, fingerprintOf, finish, idempotencyKeyOf } from "./idempotency.ts";
import type { RateLimiter } from "./rate_limit.ts";
import { NO_BODY, operationOf, parseBody, parseFields, queryOf } from "./request.ts";
import { type Found, resolveScope } from "./scope.ts";
import type { Services } from "./services.ts";
import type { Reply, Route } from "./table.ts";

/** Answers are about one key's reach: no cache between may keep them. */
export const JSON_HEADERS = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
} as const;
const BODY_METHODS = new Set(["POST", "PUT", "PATCH"]);

/** One request to one row. */
export interface Call {
  row: Route;
  request: Request;
  /** Path parameters, decoded. */
  params: Record<string, string>;
  key: KeyRow | null;
  requestId: Id<"request">;
  /** Headers every answer to this request carries. */
  headers: Record<string, string>;
}

/** Runs one call. Throws what the mapper turns into an error answer. */
export async function serve(call: Call, services: Services, limiter: RateLimiter): Promise<Response> {
  const { row, request, key, headers } = call;
  const url = new URL(request.url);
  const params = parseFields(row.params, call.params, "path");
  const query = parseFields(row.query, queryOf(url), "query");

  const named = bodyNamesTenant(row) ? null : params;
  let found = named === null ? null : await scopeOf(call, named, services, limiter);
  const body = BODY_METHODS.has(row.method)
    ? await readBody(request, row.raw, services.timers, services.config.bodyDeadlineMs)
    : NO_BODY;
  const parsed = parseBody(row, body);
  found ??= await scopeOf(call, parsed as Record<string, unknown>, services, limiter);

  const context = {
    params,
    query,
    body: parsed,
    bodyText: body.json?.text ?? "",
    json: body.json,
    rawBody: body.raw ? body.bytes : null,
    key,
    requestId: call.requestId,
    origin: url.origin,
    operation: operationOf(row, params, url),
    services,
    ...found.context,
  };
  const idempotencyKey = row.idempotent && key !== null ? idempotencyKeyOf(request.headers) : null;
  if (idempotencyKey === null || key === null) return render(row, await row.handler(context), headers);

  const scope = found.tenant ?? key.partner_id ?? "platform";
  const type = request.headers.get("content-type") ?? "";
  const target = url.pathname + url.search;
  const print = fingerprintOf(services.config.hashKey, row.method, target, type, body.bytes);
  const begun = await begin(services, [key.id, scope, idempotencyKey], print);
  if (begun.kind === "run") return await runClaimed(call, context, begun.claim, services);
  return new Response(begun.body === "" ? null : begun.body, {
    status: begun.status,
    headers: { ...headers, ...JSON_HEADERS, "idempotent-replayed": "true" },
  });
}

const bodyNamesTenant = (row: Route): boolean =>
  typeof row.scope === "object" && row.scope.by === "tenant" && row.scope.in === "body";

async function scopeOf(
  call: Call,
  named: Record<string, unknown>,
  services: Services,
  limiter: RateLimiter,
): Promise<Found> {
  if (call.key === null) return { context: {}, tenant: null };
  const found = await resolveScope(services.kv, call.row.scope, named, call.key);
  if (found.tenant !== null) limiter.take("tenant", found.tenant);
  return found;
}

async function runClaimed(
  call: Call,
  context: unknown,
  claim: Claimed,
  services: Services,
): Promise<Response> {
  const { row } = call;
  let reply: Reply;
  try {
    reply = await row.handler(context);
  } catch (thrown) {
    await abandon(services, claim).catch(() => {}); // the first error is the one to tell
    throw thrown;
  }
  const status = reply.status ?? row.status;
  try {
    if (status >= 400) await abandon(services, claim);
    else await finish(services, claim, status, bodyText(reply), row.oneTime);
  } catch {
    // The change is made: the caller hears of it, and a retry finds the key running until it may be taken over.
    services.log.error("idempotency_not_kept", { request_id: call.requestId, route: row.path });
  }
  return render(row, reply, call.headers);
}

const bodyText = (reply: Reply): string => reply.body === undefined ? "" : stringify(reply.body);

function render(row: Route, reply: Reply, headers: Record<string, string>): Response {
  const status = reply.status ?? row.status;
  if (reply.bytes !== undefined) {
    const type = reply.contentType ?? JSON_HEADERS["content-type"];
    return new Response(reply.bytes, {
      status,
      headers: { ...headers, ...JSON_HEADERS, "content-type": type, ...reply.headers },
    });
  }
  if (reply.body === undefined) {
    return new Response(null, { status, headers: { ...headers, ...reply.headers } });
  }
  return new Response(bodyText(reply), {
    status,
    headers: { ...headers, ...JSON_HEADERS, ...reply.headers },
  });
}

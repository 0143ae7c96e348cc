/**
 * The row of the route table: method, path, permission, scope, schemas, handler. The server (`app.ts`), the OpenAPI document
 * and the isolation test all come from the rows, so a route that is not one does not exist, and a row without a permission or
 * a scope does not compile: an open route says `"public"`.
 *
 * For each request the server does, in this order: route (404, 405) → key (401) → rate (429) → permission (403) → path and query
 * (400) → scope of the path's thing (404, the same bytes for missing and out of reach) → body (413, 415, 400) →
 * `Idempotency-Key` (409) → handler.
 */
import * as z from "zod";
import { aKind, type Id, type IdKind, PREFIX } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { EndpointRow, KeyRow, OwnerRef, PartnerRow, Permission, TenantRow } from "../lib/keys.ts";
import type { Services } from "./services.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Owners with an id of their own. Their rows `keys.ownerOf(id)` hold the `OwnerRef`. */
export type OwnedThing = "identity" | "domain" | "job";

/**
 * How the thing a request names is found and held against the key's reach. Out of reach is 404 as if it were not there.
 *
 * - `tenant`: a tenant's id in the path, or (`in: "body"`) a top-level field of a JSON body.
 * - `owner`: an identity, domain or job id in the path. An identity-level key reaches its own identity only.
 * - `endpoint`: a `whk_` id in the path (deleted ones answer too: the handler sees `deleted_at`).
 * - `partner`: a `ptn_` id in the path.
 * - `key`, `event`: resolved by the handler, which holds what it finds against the key itself.
 * - `caller`: nothing is named; the handler works on the scope of the calling key.
 * - `platform`: platform-level keys only; any other key gets `scope_denied`.
 * - `any`: nothing to hold against a key (health, the OpenAPI document).
 *
 * `identityKeys`: identity-level keys may call it on their own tenant (tenant) or its endpoints (endpoint); without it they get
 * `scope_denied`. The handler then narrows what it shows to `key.identity_id`.
 */
export type ScopeRule =
  | { by: "tenant"; param: string; in?: "path" | "body"; identityKeys?: boolean }
  | { by: "owner"; param: string; thing: OwnedThing }
  | { by: "endpoint"; param: string; identityKeys?: boolean }
  | { by: "partner"; param: string }
  | { by: "key"; param: string }
  | { by: "event"; param: string }
  | { by: "caller" }
  | "platform"
  | "any";

/** What the scope rule found, in the context under the same name. */
export type Resolved<S extends ScopeRule> = S extends { by: "tenant" } ? { tenant: TenantRow }
  : S extends { by: "owner" } ? { tenant: TenantRow; owner: OwnerRef }
  : S extends { by: "endpoint" } ? { endpoint: EndpointRow }
  : S extends { by: "partner" } ? { partner: PartnerRow }
  : Record<never, never>;

/** What a handler is given. */
export interface BaseContext<P, Q, B, K> {
  params: P;
  query: Q;
  /**
   * The validated JSON body. A number in it is a double: where number text matters, use `json` or `bodyText`. Undefined when the
   * body came as one of the row's `raw` media types.
   */
  body: B;
  /** The JSON body's source text ("" when there was none, or when it came raw). */
  bodyText: string;
  /** The JSON body as `lib/json.ts` read it, source text beside value; null when there was none, or when it came raw. */
  json: JsonText | null;
  /** The bytes of a body that came as one of the row's `raw` media types, else null. */
  rawBody: Uint8Array<ArrayBuffer> | null;
  /** The calling key; null on a public route. */
  key: K;
  requestId: Id<"request">;
  /** Scheme and host the request named; a caller may put anything there. */
  origin: string;
  /** Method and path of the row plus its filters: what a cursor is bound to. */
  operation: string;
  services: Services;
}

export type Context<P, Q, B, K, S extends ScopeRule> = BaseContext<P, Q, B, K> & Resolved<S>;

/** What a handler answers. `body` is sent as JSON (`JsonText` parts as written); `bytes` as they are. */
export interface Reply {
  /** Default: the row's `status`. */
  status?: number;
  body?: unknown;
  bytes?: Uint8Array<ArrayBuffer>;
  /** Media type of `bytes`; default `application/json; charset=utf-8`. */
  contentType?: string;
  headers?: Record<string, string>;
}

type Fields = Record<string, z.ZodType>;
type Out<F extends Fields | undefined> = F extends Fields ? { [K in keyof F]: z.output<F[K]> }
  : Record<never, never>;

export interface RouteInput<
  P extends Fields | undefined,
  Q extends Fields | undefined,
  B extends z.ZodType | undefined,
  R extends readonly string[] | undefined,
  N extends Permission | "public",
  S extends ScopeRule,
> {
  method: Method;
  /** `/v1/tenants/{tenant_id}/webhooks` */
  path: string;
  permission: N;
  scope: S;
  /** One line for the OpenAPI document. */
  summary: string;
  /** OpenAPI tag; default: the first word of the path behind `/v1`. */
  tag?: string;
  /** A schema for each `{name}` of the path; ids by `idOf("tenant")`. */
  params?: P;
  /** A schema for each query parameter. Values arrive as text: use `z.coerce` or the helpers of `schemas.ts`. */
  query?: Q;
  /** Strict objects throughout (`z.strictObject`): unknown fields are refused with their path. */
  body?: B;
  /** Media types accepted besides JSON, handed over as `rawBody`. */
  raw?: R;
  /** Schema of the answer, for the OpenAPI document; the handler's answer is not checked against it. */
  response?: z.ZodType;
  /** Status of success. */
  status: 200 | 201 | 202 | 204;
  /** Takes an `Idempotency-Key`. Default: every POST does. */
  idempotent?: boolean;
  /** Top-level fields of the answer that are shown once: never stored for a replay of the request. */
  oneTime?: readonly string[];
  handler: (
    ctx: Context<
      Out<P>,
      Out<Q>,
      B extends z.ZodType ? (R extends readonly string[] ? z.output<B> | undefined : z.output<B>) : undefined,
      N extends "public" ? null : KeyRow,
      S
    >,
  ) => Promise<Reply> | Reply;
}

/** A row with its types erased: what the server walks. */
export interface Route {
  readonly method: Method;
  readonly path: string;
  readonly permission: Permission | "public";
  readonly scope: ScopeRule;
  readonly summary: string;
  readonly tag: string;
  readonly params: Fields;
  readonly query: Fields;
  readonly body: z.ZodType | null;
  readonly raw: readonly string[];
  readonly response: z.ZodType | null;
  readonly status: number;
  readonly idempotent: boolean;
  readonly oneTime: readonly string[];
  // deno-lint-ignore no-explicit-any
  readonly handler: (ctx: any) => Promise<Reply> | Reply;
}

/** Makes a row. Throws at start-up when the path's parameters and the schemas do not agree. */
export function route<
  const N extends Permission | "public",
  const S extends ScopeRule,
  P extends Fields | undefined = undefined,
  Q extends Fields | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  const R extends readonly string[] | undefined = undefined,
>(input: RouteInput<P, Q, B, R, N, S>): Route {
  const named = [...input.path.matchAll(/\{([a-z_]+)\}/g)].map((match) => match[1]!);
  const declared = Object.keys(input.params ?? {});
  if (named.length !== declared.length || named.some((name) => !declared.includes(name))) {
    throw new Error(`Cannot make the route ${input.method} ${input.path}: its params do not match its path`);
  }
  return {
    method: input.method,
    path: input.path,
    permission: input.permission,
    scope: input.scope,
    summary: input.summary,
    tag: input.tag ?? input.path.replace(/^\/v1\//, "/").split("/")[1] ?? "platform",
    params: input.params ?? {},
    query: input.query ?? {},
    body: input.body ?? null,
    raw: input.raw ?? [],
    response: input.response ?? null,
    status: input.status,
    idempotent: input.idempotent ?? input.method === "POST",
    oneTime: input.oneTime ?? [],
    handler: input.handler,
  };
}

/** Schema of an id in a path, a query or a body: the wrong kind is a 400 at the door. */
export function idOf<K extends IdKind>(kind: K): z.ZodType<Id<K>, string> {
  const prefix = PREFIX[kind];
  const pattern = new RegExp(`^${prefix}_[0-7][0-9A-HJKMNP-TV-Z]{25}$`);
  return z.string().regex(
    pattern,
    `must be ${aKind(kind)} id (${prefix}_ and a ULID)`,
  ) as unknown as z.ZodType<
    Id<K>,
    string
  >;
}

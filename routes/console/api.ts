/**
 * The console as a client of the API, without the network: a row of the route table is run under the visitor's key through the
 * same permission check and pipeline (scope, schemas, idempotency, audit) that a request over HTTP goes through.
 */
import type { Id } from "../../lib/ids.ts";
import type { KeyRow } from "../../lib/keys.ts";
import { demand } from "../auth.ts";
import { serve } from "../pipeline.ts";
import type { RateLimiter } from "../rate_limit.ts";
import type { Services } from "../services.ts";
import type { Route } from "../table.ts";

export interface ApiCall {
  params?: Record<string, string>;
  query?: Record<string, string | undefined>;
  body?: unknown;
  /** Makes a form that is sent twice run once: becomes the `Idempotency-Key`. */
  once?: string | null;
}

export interface ApiClient {
  /** @param row `"GET /v1/webhooks/{webhook_id}"`. @returns the JSON answered. @throws ApiError as the API answers it. */
  call<T>(row: string, call?: ApiCall): Promise<T>;
  /** The same for an answer that is to be shown as it is. */
  text(row: string, call?: ApiCall): Promise<string>;
}

export interface ApiClientDeps {
  rows: ReadonlyMap<string, Route>;
  services: Services;
  limiter: RateLimiter;
  key: KeyRow;
  requestId: Id<"request">;
  origin: string;
}

export const rowMap = (routes: readonly Route[]): ReadonlyMap<string, Route> =>
  new Map(routes.map((row) => [`${row.method} ${row.path}`, row]));

export function makeApiClient(d: ApiClientDeps): ApiClient {
  async function ask(name: string, call: ApiCall): Promise<Response> {
    const row = d.rows.get(name);
    if (row === undefined) throw new Error(`The API has no row ${name}`);
    if (row.permission !== "public") demand(d.key, row.permission);
    const { params = {}, query = {}, body, once } = call;
    const path = row.path.replace(/\{([a-z_]+)\}/g, (_, param) => encodeURIComponent(params[param] ?? ""));
    const url = new URL(path, d.origin);
    for (const [param, value] of Object.entries(query)) {
      if (value !== undefined && value !== "") url.searchParams.set(param, value);
    }
    const headers = new Headers();
    if (body !== undefined) headers.set("content-type", "application/json");
    if (once) headers.set("idempotency-key", `console-${once}`);
    const init: RequestInit = { method: row.method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    const request = new Request(url, init);
    const { key, requestId } = d;
    return await serve({ row, request, params, key, requestId, headers: {} }, d.services, d.limiter);
  }

  return {
    async call<T>(name: string, call: ApiCall = {}): Promise<T> {
      const response = await ask(name, call);
      return (response.status === 204 ? undefined : await response.json()) as T;
    },
    text: async (name, call = {}) => await (await ask(name, call)).text(),
  };
}

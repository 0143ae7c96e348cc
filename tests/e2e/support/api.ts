/** The HTTP API as a customer calls it, and the few things most tests set up first. */
import assert from "node:assert/strict";

// deno-lint-ignore no-explicit-any
export type Json = any;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: Json;
}

export type Call = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answer>;

/** @param body text and bytes go as they are, anything else as JSON. */
export function makeApi(port: string | number, key: string | null): Call {
  return async (method, path, body, headers = {}) => {
    const raw = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : raw ? body as BodyInit : JSON.stringify(body),
    });
    const text = await response.text();
    const json = response.headers.get("content-type")?.includes("json") === true;
    return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : null };
  };
}

/** The answer's body, when the status is the expected one. */
export async function expecting(status: number, answer: Promise<Answer>): Promise<Json> {
  const got = await answer;
  assert.equal(got.status, status, got.text);
  return got.body;
}

export const TYPE = "order.paid";

/** A tenant with the type `order.paid`. */
export async function makeTenant(call: Call, slug: string): Promise<string> {
  const { id } = await expecting(201, call("POST", "/v1/tenants", { slug, name: slug }));
  const definition = {
    description: "An order was paid.",
    schema: { type: "object", properties: { n: { type: "string" } }, required: ["n"] },
    example: { n: "1" },
  };
  const { status, text } = await call("PUT", `/v1/tenants/${id}/event-types/${TYPE}`, definition);
  assert.ok(status === 200 || status === 201, text);
  return id;
}

/** A tenant-level key that may read and append. */
export async function makeTenantKey(call: Call, tenant: string): Promise<string> {
  const permissions = ["events:read", "events:write", "webhooks:read"];
  const body = { name: "publisher", level: "tenant", tenant_id: tenant, permissions };
  return (await expecting(201, call("POST", "/v1/keys", body))).secret;
}

/** An endpoint of a tenant, or with null the platform. Answers with its secret. */
export async function makeEndpoint(call: Call, tenant: string | null, url: string): Promise<Json> {
  const path = tenant === null ? "/v1/webhooks" : `/v1/tenants/${tenant}/webhooks`;
  return await expecting(201, call("POST", path, { url, events: ["*"] }));
}

/** Every row of a list, page by page. */
export async function listAll(call: Call, path: string): Promise<Json[]> {
  const rows: Json[] = [];
  let cursor: string | null = null;
  do {
    const query = `${path.includes("?") ? "&" : "?"}limit=100${cursor === null ? "" : `&cursor=${cursor}`}`;
    const page: Json = await expecting(200, call("GET", path + query));
    rows.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return rows;
}

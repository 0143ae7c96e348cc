/** A request's parts against its row's schemas: path, query and body. Refusals are 400s with the path of each field. */
import { invalidRequest } from "../lib/errors.ts";
import type { Body } from "./body.ts";
import { fieldErrors } from "./errors.ts";
import { say } from "./say.ts";
import type { Route } from "./table.ts";

export const NO_BODY: Body = { bytes: new Uint8Array(0), json: null, raw: false };

/** The validated twin of the JSON body. A row without a schema takes no body, or an empty object. */
export function parseBody(row: Route, body: Body): unknown {
  if (body.raw) return undefined;
  if (row.body === null) {
    const sent = body.json?.value;
    if (sent === undefined) return undefined;
    const fields = typeof sent === "object" && sent !== null && !Array.isArray(sent)
      ? Object.keys(sent)
      : null;
    if (fields === null) throw invalidRequest([{ path: "body", message: "must be an object or absent" }]);
    if (fields.length === 0) return undefined;
    throw invalidRequest(fields.map((name) => ({ path: name || "body", message: "is not a known field" })));
  }
  const result = row.body.safeParse(body.json === null ? {} : body.json.value, { error: say });
  if (result.success) return result.data;
  throw invalidRequest(fieldErrors(result.error).map((error) => ({ ...error, path: error.path || "body" })));
}

/** Values against their schemas by name; unknown names are refused like unknown fields. */
export function parseFields(
  fields: Route["params"],
  values: Record<string, string | undefined>,
  where: "path" | "query",
): Record<string, unknown> {
  const errors = [];
  const parsed: Record<string, unknown> = {};
  for (const name of Object.keys(values)) {
    if (where === "query" && !Object.hasOwn(fields, name)) {
      errors.push({ path: name || "query", message: "is not a known parameter" });
    }
  }
  for (const [name, schema] of Object.entries(fields)) {
    const result = schema.safeParse(values[name], { error: say });
    if (result.success) parsed[name] = result.data;
    else errors.push(...fieldErrors(result.error, name));
  }
  if (errors.length > 0) throw invalidRequest(errors);
  return parsed;
}

export function queryOf(url: URL): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of url.searchParams) {
    if (Object.hasOwn(values, name)) {
      throw invalidRequest([{ path: name || "query", message: "is given twice" }]);
    }
    Object.defineProperty(values, name, { value, enumerable: true });
  }
  return values;
}

/** What a cursor is bound to: the row, the path's ids and the filters, in one spelling. */
export function operationOf(row: Route, params: Record<string, unknown>, url: URL): string {
  const filters = [...url.searchParams].filter(([name]) => name !== "cursor" && name !== "limit").sort();
  return JSON.stringify([row.method, row.path, params, filters]);
}

/** An endpoint as the fields of a form, and back to what the API takes. */
import { ApiError, type FieldError } from "../../../lib/errors.ts";
import type { EndpointRow } from "../../../lib/keys.ts";

/** What the form holds: an endpoint's fields as text. */
export interface Draft {
  url: string;
  description: string;
  all: boolean;
  events: string[];
  identities: string;
  headers: string;
  v1a: boolean;
}

export const EMPTY_DRAFT: Draft = {
  url: "",
  description: "",
  all: true,
  events: [],
  identities: "",
  headers: "",
  v1a: false,
};

export const draftOf = (row: EndpointRow): Draft => ({
  url: row.url,
  description: row.description ?? "",
  all: row.events[0] === "*",
  events: row.events.filter((type) => type !== "*"),
  identities: (row.identity_ids ?? []).join("\n"),
  headers: "",
  v1a: row.v1a_public !== undefined,
});

export function draftFrom(form: URLSearchParams): Draft {
  const text = (name: string) => (form.get(name) ?? "").trim();
  return {
    url: text("url"),
    description: text("description"),
    all: form.get("all") === "1",
    events: form.getAll("events"),
    identities: text("identities"),
    headers: text("headers"),
    v1a: form.get("v1a") === "1",
  };
}

const linesOf = (text: string): string[] => text.split(/[\s,]+/).filter((line) => line !== "");

/** `Name: value` lines. @throws ApiError 400 for a line that is not one. */
export function headersOf(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  const errors: FieldError[] = [];
  for (const line of text.split("\n").map((line) => line.trim()).filter((line) => line !== "")) {
    const [, name, value] = /^([^:\s]+)\s*:\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) {
      errors.push({ path: "headers", message: "must be lines of Name: value" });
    } else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true });
  }
  if (errors.length > 0) {
    throw new ApiError("invalid_request", "Cannot read the headers.", "", { errors: errors.slice(0, 1) });
  }
  return headers;
}

export const bodyOf = (draft: Draft) => ({
  url: draft.url,
  events: draft.all ? ["*"] : draft.events,
  identity_ids: linesOf(draft.identities).length === 0 ? null : linesOf(draft.identities),
  description: draft.description === "" ? null : draft.description,
  signature_versions: draft.v1a ? ["v1", "v1a"] : ["v1"],
});

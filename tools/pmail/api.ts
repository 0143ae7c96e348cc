/** The HTTP API as the commands call it: `PM_URL`, `PM_API_KEY`. */
import { Refused } from "./command.ts";

// deno-lint-ignore no-explicit-any
export type Json = any;

const DEFAULT_URL = "http://127.0.0.1:8000";
const PAGE = 100;

export interface Api {
  /** The answer's JSON, null without a body. @throws Refused */
  call(method: string, path: string, body?: unknown): Promise<Json>;
  /** The answer's text as it came. @throws Refused */
  text(path: string): Promise<string>;
  /** Rows of a list, newest first, page by page until there are `limit`. @throws Refused */
  list(path: string, query: Record<string, string | undefined>, limit: number): Promise<Json[]>;
}

/** Reads the settings with the first call, so that a wrong command line is told first. */
export function openApi(): Api {
  async function send(method: string, path: string, body?: unknown): Promise<string> {
    const { origin, prefix, key } = settings();
    const headers: Record<string, string> = { authorization: `Bearer ${key}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    let response: Response, text: string;
    try {
      response = await fetch(prefix + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        // The key goes to the service alone.
        redirect: "error",
      });
      text = await response.text();
    } catch (error) {
      throw new Refused(
        "unreachable",
        `Cannot reach ${origin}: ${(error as Error).message}.`,
        "Start the service, or set PM_URL to where it answers.",
      );
    }
    if (response.ok) return text;
    throw refusal(response.status, text, origin);
  }

  const call = async (method: string, path: string, body?: unknown) => {
    const text = await send(method, path, body);
    return text === "" ? null : JSON.parse(text);
  };

  return {
    call,
    text: (path) => send("GET", path),
    async list(path, query, limit) {
      const rows: Json[] = [];
      for (let cursor: string | null = null; rows.length < limit;) {
        const asked = new URLSearchParams({ limit: String(Math.min(PAGE, limit - rows.length)) });
        for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, value);
        if (cursor !== null) asked.set("cursor", cursor);
        const page = await call("GET", `${path}?${asked}`);
        rows.push(...page.data);
        cursor = page.next_cursor;
        if (cursor === null) break;
      }
      return rows;
    },
  };
}

/** @throws Refused when PM_API_KEY is missing or PM_URL is no URL. */
function settings(): { origin: string; prefix: string; key: string } {
  const url = URL.parse(Deno.env.get("PM_URL") || DEFAULT_URL), key = Deno.env.get("PM_API_KEY");
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Refused(
      "client_settings",
      "Cannot call the service: PM_URL is not an http or https URL.",
      `Correct it, or unset it for ${DEFAULT_URL}.`,
    );
  }
  if (!key) {
    throw new Refused(
      "client_settings",
      "Cannot call the service: PM_API_KEY is not set.",
      "Set it to a key; pmail keys create makes one.",
    );
  }
  return { origin: url.origin, prefix: url.href.replace(/\/$/, ""), key };
}

function refusal(status: number, text: string, origin: string): Refused {
  try {
    const { code, message, fix, details } = JSON.parse(text).error;
    const errors = (details?.errors ?? []) as { path: string; message: string }[];
    const more = errors.slice(1).map((error) => ` ${error.path}: ${error.message}.`).join("");
    return new Refused(code, message + more, fix, details);
  } catch {
    return new Refused(
      "unexpected_answer",
      `Cannot use the answer of ${origin}: status ${status}.`,
      "Check PM_URL.",
    );
  }
}

/** An argument as one segment of a path. */
export const segment = (text: string): string => encodeURIComponent(text);
/** Unix ms as the API takes times. */
export const isoOf = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();

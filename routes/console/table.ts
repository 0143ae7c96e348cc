/**
 * The rows of the console: method, path, what it needs, handler. The server (`console.tsx`) and the isolation test both walk
 * them. A page that names a thing finds it through `reach.ts`, and a page that changes one calls the API's own rows through
 * `api.ts`, so that permissions and reach are the API's.
 */
import type { Id } from "../../lib/ids.ts";
import type { KeyRow, Permission, SessionRow } from "../../lib/keys.ts";
import type { Services } from "../services.ts";
import type { ApiClient } from "./api.ts";
import type { Place } from "./reach.ts";

// deno-lint-ignore no-explicit-any
export type Html = any;

/** A signed-in browser: the key it acts as, and what it may be told of it. */
export interface Visitor {
  key: KeyRow;
  session: SessionRow;
  /** Came through a portal link. */
  portal: boolean;
}

export interface ConsoleContext {
  url: URL;
  /** Parameters of the path, well-formed. */
  params: Record<string, string>;
  query: URLSearchParams;
  /** Fields of the form that was sent; empty for a GET. */
  form: URLSearchParams;
  visitor: Visitor;
  /** The session's own token: signing out ends it. */
  token: string;
  services: Services;
  requestId: Id<"request">;
  now: number;
  /** What every form carries (`csrf.ts`). */
  csrf: string;
  api: ApiClient;
}

/** A page inside the frame of the console. */
export interface PageView {
  kind: "page";
  title: string;
  /** Where it is, for the navigation; the visitor's own scope when absent. */
  place?: Place;
  /** The entry of the navigation that is current. */
  nav?: NavName;
  status?: number;
  body: Html;
}

export interface RedirectView {
  kind: "redirect";
  to: string;
  cookie?: string;
}

/** Bytes with a type of their own: the assets. */
export interface FileView {
  kind: "file";
  type: string;
  text: string;
  etag: string;
}

/** A page outside the frame: signing in. */
export interface BareView {
  kind: "bare";
  title: string;
  status?: number;
  cookie?: string;
  body: Html;
}

export type View = PageView | RedirectView | FileView | BareView;

export type NavName =
  | "overview"
  | "endpoints"
  | "events"
  | "live"
  | "catalogue"
  | "access"
  | "audit"
  | "dead-letters"
  | "scopes";

export interface ConsoleRow {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** What the key must hold to see the page; `session`: any signed-in browser. */
  readonly needs: Permission | "session";
  readonly handler: (c: ConsoleContext) => Promise<View> | View;
}

/** What a page that needs no session is given. */
export interface OpenContext {
  request: Request;
  url: URL;
  query: URLSearchParams;
  form: URLSearchParams;
  services: Services;
  /** The client's address: a key of the limiter and nothing else. */
  client: string;
  /** A token bound to `cookie`, which the answer must set when it is not null. */
  csrf: string;
  cookie: string | null;
  /** Whether cookies are `Secure`, and so `__Host-`. */
  secure: boolean;
  /** Counts failed sign-ins of an address; throws 429. */
  limiter: import("../rate_limit.ts").RateLimiter;
}

export interface OpenRow {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly handler: (c: OpenContext) => Promise<View> | View;
}

const ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}";
/** What each parameter of a path looks like; anything else is not found. */
const PARAMS: Record<string, string> = {
  scope: `platform|ptn_${ULID}|ten_${ULID}`,
  webhook_id: `whk_${ULID}`,
  delivery_id: `dlv_${ULID}`,
  event_id: `evt_${ULID}`,
  dead_letter_id: `dlq_${ULID}`,
  run: ULID,
  name: "[a-z0-9_.]{1,128}",
  file: "[a-z0-9_.-]{1,64}",
};

/** The pattern of a row's path, with its parameters as named groups. */
export function patternOf(path: string): RegExp {
  const source = path.replace(/[.]/g, "\\.").replace(
    /\{([a-z_]+)\}/g,
    (_, name: string) => `(?<${name}>${PARAMS[name]})`,
  );
  return new RegExp(`^${source}$`);
}

export const page = (
  title: string,
  body: Html,
  more: Partial<Omit<PageView, "kind" | "title" | "body">> = {},
): PageView => ({
  kind: "page",
  title,
  body,
  ...more,
});

export const redirect = (to: string, cookie?: string): RedirectView => ({
  kind: "redirect",
  to,
  ...(cookie === undefined ? {} : { cookie }),
});

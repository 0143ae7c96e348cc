/** A browser without a screen: cookies, forms and their tokens, over `app.fetch`. */
import assert from "node:assert/strict";
import type { Api } from "../routes/support.ts";

export interface Got {
  status: number;
  headers: Headers;
  text: string;
  /** Where a redirect leads. */
  location: string | null;
}

export const ORIGIN = "http://api.pylota.dev";

export class Visitor {
  readonly cookies = new Map<string, string>();
  /** The token of the forms of the page seen last. */
  csrf = "";

  constructor(readonly api: Api, readonly origin = ORIGIN) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<Got> {
    return await this.send("GET", path, headers);
  }

  /** Sends a form of the page seen last, as a browser would. */
  async post(
    path: string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<Got> {
    const body = new URLSearchParams({ csrf: this.csrf, ...fields }).toString();
    const sent = {
      "content-type": "application/x-www-form-urlencoded",
      origin: this.origin,
      "sec-fetch-site": "same-origin",
      ...headers,
    };
    return await this.send("POST", path, sent, body);
  }

  async send(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Got> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const init: RequestInit = { method, headers: { ...(cookie === "" ? {} : { cookie }), ...headers } };
    if (body !== undefined) init.body = body;
    const response = await this.api.fetch(new Request(this.origin + path, init));
    for (const line of response.headers.getSetCookie()) {
      const [pair = ""] = line.split(";"), at = pair.indexOf("=");
      const name = pair.slice(0, at), value = pair.slice(at + 1);
      if (value === "" || /Max-Age=0/.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const text = await response.text();
    this.csrf = /name="csrf" value="([\w-]+)"/.exec(text)?.[1] ?? this.csrf;
    return {
      status: response.status,
      headers: response.headers,
      text,
      location: response.headers.get("location"),
    };
  }

  async signIn(key: string): Promise<Got> {
    await this.get("/console/sign-in");
    const got = await this.post("/console/sign-in", { key, next: "/console" });
    assert.equal(got.status, 303, got.text);
    await this.get("/console/find?id=none"); // any page: its forms carry the session's token
    return got;
  }

  /** Opens a portal link as a person would. */
  async enter(url: string): Promise<Got> {
    const { pathname, search, searchParams } = new URL(url);
    await this.get(pathname + search);
    const got = await this.post("/console/portal", { token: searchParams.get("token")! });
    if (got.status === 303) await this.get("/console/find?id=none");
    return got;
  }
}

export async function signedIn(api: Api, key: string): Promise<Visitor> {
  const visitor = new Visitor(api);
  await visitor.signIn(key);
  return visitor;
}

/** A page without what differs from request to request. */
export const samePage = ({ text }: Got): string => text.replace(/req_[0-9A-Z]{26}/g, "req_");

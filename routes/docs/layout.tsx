/** The frame of a page of /docs: guides and sections on the left, no script, one style that the policy knows by its hash. */
import { hash } from "node:crypto";
import { raw } from "hono/html";
import style from "./docs.css" with { type: "text" };
import { guides } from "./guides.ts";

// deno-lint-ignore no-explicit-any
export type Html = any;

export interface Section {
  heading: string;
  links: { href: string; text: string }[];
}

export interface PageProps {
  title: string;
  /** The path of this page: its entry is marked. */
  path: string;
  sections?: Section[];
  body: Html;
}

const STYLE_HASH = `sha256-${hash("sha256", style, "base64")}`;

/** Nothing from outside, nothing that runs. */
export const DOCS_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    `default-src 'none'; style-src '${STYLE_HASH}'; base-uri 'none'; form-action 'none'; ` +
    "frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "public, max-age=300",
};

/** The whole page as bytes. */
export async function page(p: PageProps): Promise<Uint8Array<ArrayBuffer>> {
  const html = await (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{p.title} · Pylota webhooks</title>
        <style>{raw(style)}</style>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <nav aria-label="Documentation">
          <strong>Pylota webhooks</strong>
          <h2>Guides</h2>
          <ul>
            {guides().map(({ name, title }) => (
              <Entry href={`/docs/guides/${name}`} text={title} path={p.path} />
            ))}
          </ul>
          <h2>Reference</h2>
          <ul>
            <Entry href="/docs" text="Overview" path={p.path} />
            <Entry href="/docs/api" text="API and events" path={p.path} />
            <Entry href="/openapi.json" text="OpenAPI 3.1 document" path={p.path} />
          </ul>
          {p.sections?.map(({ heading, links }) => (
            <>
              <h2>{heading}</h2>
              <ul>{links.map(({ href, text }) => <Entry href={href} text={text} path={p.path} />)}</ul>
            </>
          ))}
        </nav>
        <main id="main">{p.body}</main>
      </body>
    </html>
  );
  return new TextEncoder().encode(`<!doctype html>\n${html}`) as Uint8Array<ArrayBuffer>;
}

function Entry({ href, text, path }: { href: string; text: string; path: string }) {
  return (
    <li>
      <a href={href} {...(href === path ? { "aria-current": "page" } : {})}>{text}</a>
    </li>
  );
}

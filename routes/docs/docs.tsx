/** The rows of /docs: an overview, the reference of the route table and the event catalogue, the guides. Public, cached. */
import * as z from "zod";
import { notFound } from "../../lib/errors.ts";
import { openApiDocument } from "../openapi.ts";
import type { RouteConfig } from "../services.ts";
import { type Reply, type Route, route } from "../table.ts";
import { raw } from "hono/html";
import { guides } from "./guides.ts";
import { DOCS_HEADERS, page, type PageProps } from "./layout.tsx";
import { Reference, referenceSections } from "./reference.tsx";

type Bytes = Uint8Array<ArrayBuffer>;

/** @param all every row of the API, these among them: asked for once the table is complete. */
export function docsRoutes(config: RouteConfig, all: () => readonly Route[]): Route[] {
  const made = new Map<string, Promise<Bytes>>();
  /** A page is rendered once. */
  const answer = async (path: string, props: () => Omit<PageProps, "path">): Promise<Reply> => {
    let bytes = made.get(path);
    if (bytes === undefined) made.set(path, bytes = page({ ...props(), path }));
    return { bytes: await bytes, contentType: "text/html; charset=utf-8", headers: DOCS_HEADERS };
  };
  const shared = { method: "GET", permission: "public", scope: "any", status: 200, tag: "docs" } as const;
  return [
    route({
      ...shared,
      path: "/docs",
      summary: "The documentation's first page, for people.",
      handler: () => answer("/docs", () => ({ title: "Documentation", body: <Overview /> })),
    }),
    route({
      ...shared,
      path: "/docs/api",
      summary: "This document as a page, for people.",
      handler: () =>
        answer("/docs/api", () => {
          const document = openApiDocument(all(), config.version);
          return {
            title: "API and events",
            sections: referenceSections(document),
            body: <Reference document={document} />,
          };
        }),
    }),
    route({
      ...shared,
      path: "/docs/guides/{guide}",
      params: { guide: z.string().regex(/^[a-z-]{1,64}$/) },
      summary: "A guide, for people.",
      handler: ({ params }) => {
        const guide = guides().find(({ name }) => name === params.guide);
        if (guide === undefined) throw notFound("route");
        return answer(`/docs/guides/${guide.name}`, () => ({ title: guide.title, body: raw(guide.html) }));
      },
    }),
  ];
}

function Overview() {
  return (
    <>
      <h1>Documentation</h1>
      <p>
        Your application's state changes become events in the same commit, and events become signed HTTPS
        deliveries with retries, dead letters and replay.
      </p>
      <h2>Guides</h2>
      <ul>
        {guides().map(({ name, title }) => (
          <li>
            <a href={`/docs/guides/${name}`}>{title}</a>
          </li>
        ))}
      </ul>
      <h2>Reference</h2>
      <ul>
        <li>
          <a href="/docs/api">Every route and every event</a>, with schemas and examples
        </li>
        <li>
          <a href="/openapi.json">The OpenAPI 3.1 document</a>, for tools
        </li>
      </ul>
    </>
  );
}

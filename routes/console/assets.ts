/** The console's own files, read with the modules: no file access at run time. */
import { hash } from "node:crypto";
import base from "./assets/base.css" with { type: "text" };
import controls from "./assets/controls.css" with { type: "text" };
import script from "./assets/console.js" with { type: "text" };
import frame from "./assets/frame.css" with { type: "text" };
import icon from "./assets/icon.svg" with { type: "text" };
import parts from "./assets/parts.css" with { type: "text" };
import { notFound } from "../../lib/errors.ts";
import type { FileView, OpenRow } from "./table.ts";

const file = (type: string, text: string): FileView => ({
  kind: "file",
  type,
  text,
  etag: `"${hash("sha256", text, "hex").slice(0, 16)}"`,
});

const FILES: ReadonlyMap<string, FileView> = new Map([
  ["console.css", file("text/css; charset=utf-8", [base, frame, controls, parts].join("\n"))],
  ["console.js", file("text/javascript; charset=utf-8", script)],
  ["icon.svg", file("image/svg+xml", icon)],
]);

export const assetRows: OpenRow[] = [{
  method: "GET",
  path: "/console/assets/{file}",
  handler: ({ url }) => {
    const found = FILES.get(url.pathname.split("/").at(-1)!);
    if (found === undefined) throw notFound("route");
    return found;
  },
}];

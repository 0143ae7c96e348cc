/** The guides of `docs/`, in reading order, as HTML. Read with the modules: no file access at run time. */
import { Marked } from "marked";
import operate from "../../docs/operate.md" with { type: "text" };
import produce from "../../docs/produce-events.md" with { type: "text" };
import receive from "../../docs/receive-and-verify.md" with { type: "text" };
import scale from "../../docs/scale.md" with { type: "text" };
import secure from "../../docs/secure.md" with { type: "text" };
import upgrade from "../../docs/upgrade.md" with { type: "text" };

export interface Guide {
  /** `receive-and-verify`: the file's name and the path's end. */
  name: string;
  title: string;
  html: string;
}

const SOURCES: Record<string, string> = {
  "receive-and-verify": receive,
  "produce-events": produce,
  operate,
  secure,
  scale,
  upgrade,
};

let made: Guide[] | null = null;

/** Every guide, rendered once. */
export const guides = (): readonly Guide[] =>
  made ??= Object.entries(SOURCES).map(([name, source]) => ({ name, ...render(source) }));

export const guideNames: readonly string[] = Object.keys(SOURCES);

/** Headings get ids as on GitHub; links to other guides lead to their pages, links to files of the project to nothing here. */
function render(source: string): { title: string; html: string } {
  const title = /^# (.+)$/m.exec(source)![1]!;
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href);
        return target === null ? text : `<a href="${target}">${text}</a>`;
      },
      code({ text }) {
        return `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`; // it scrolls: keyboards must reach it
      },
    },
  });
  return { title, html: marked.parse(source, { async: false }) };
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** `## Dead letters` → `dead-letters` */
export const anchorOf = (heading: string): string =>
  heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s+/g, "-");

/** Where a link of a guide leads in the service; null: a file of the project, which is not served. */
export function targetOf(href: string): string | null {
  if (/^(https?:|#|\/)/.test(href)) return href;
  const guide = /^(?:\.\/)?([a-z-]+)\.md(#.*)?$/.exec(href);
  return guide !== null && guide[1]! in SOURCES ? `/docs/guides/${guide[1]}${guide[2] ?? ""}` : null;
}

/** The pages of /docs: complete, without script or anything from outside, and every link leads somewhere. */
import assert from "node:assert/strict";
import { catalogue } from "../../lib/catalogue.ts";
import { guideNames, targetOf } from "../../routes/docs/guides.ts";
import { fieldsOf, typeOf } from "../../routes/docs/schema.ts";
import { withApi } from "../routes/support.ts";

const PAGES = ["/docs", "/docs/api", ...guideNames.map((name) => `/docs/guides/${name}`)];

Deno.test(
  "docs: every page is open, under a strict policy, with no script and nothing from outside",
  withApi(async (api) => {
    for (const path of PAGES) {
      const { status, headers, text } = await api.call("GET", path);
      assert.equal(status, 200, path);
      assert.equal(headers.get("content-type"), "text/html; charset=utf-8");
      assert.match(headers.get("request-id")!, /^req_/);
      const policy = headers.get("content-security-policy")!;
      assert.match(policy, /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; base-uri 'none'/);
      assert.ok(!policy.includes("unsafe"));
      assert.doesNotMatch(text, /<script|\son[a-z]+="|\sstyle="|<link|<img|javascript:|@import|url\(/i, path);
      const css = /<style>([^]*?)<\/style>/.exec(text)![1]!;
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(css)));
      assert.ok(policy.includes(`'sha256-${digest.toBase64()}'`), "the style is the one the policy knows");
      assert.match(text, /^<!doctype html>\n<html lang="en">/);
      assert.equal(text.match(/<h1/g)?.length, 1, path);
      assert.match(text, /<main id="main">/);
      assert.match(css, /color-scheme: light dark/);
    }
  }),
);

Deno.test(
  "docs: the reference holds every row of the table and every event with schema and example",
  withApi(async (api) => {
    const { text } = await api.call("GET", "/docs/api");
    const plain = text.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
    for (const { method, path } of api.rows) {
      assert.ok(
        text.includes(`<span class="method">${method}</span> <code>${path}</code>`),
        `${method} ${path}`,
      );
    }
    for (const [name, { example }] of catalogue) {
      assert.ok(text.includes(`<h3 id="event-${name}">`), name);
      assert.ok(text.includes(`Fields of data of ${name}"`), name);
      const first = JSON.stringify(example, null, 2).split("\n")[1]!;
      assert.ok(plain.includes(first), `${name}: ${first}`);
    }
    const ids = [...text.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]!);
    assert.equal(new Set(ids).size, ids.length, "no id twice");
  }),
);

Deno.test(
  "docs: every link leads to a page and a heading that is there",
  withApi(async (api) => {
    const texts = new Map<string, string>();
    for (const path of PAGES) texts.set(path, (await api.call("GET", path)).text);
    for (const [path, text] of texts) {
      for (const [, href] of text.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
        if (/^https:\/\/www\.standardwebhooks\.com$/.test(href!)) continue;
        const [page, anchor] = href!.split("#");
        const target = page === "" ? text : texts.get(page!) ?? (await api.call("GET", page!)).text;
        assert.ok(page === "" || texts.has(page!) || page === "/openapi.json", `${path}: ${href}`);
        if (anchor !== undefined) assert.ok(target.includes(`id="${anchor}"`), `${path}: ${href}`);
      }
    }
    assert.equal((await api.call("GET", "/docs/guides/no-such-guide")).status, 404);
  }),
);

Deno.test("docs: links of guides to files of the project are there, and lead to nothing in the service", async () => {
  for (const name of guideNames) {
    const file = new URL(`../../docs/${name}.md`, import.meta.url);
    for (const [, href] of (await Deno.readTextFile(file)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (targetOf(href!) === null) await Deno.stat(new URL(href!.split("#")[0]!, file));
    }
  }
});

Deno.test("docs: a schema's fields in words", () => {
  const id = "^whk_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
  const schema = {
    type: "object",
    required: ["id"],
    properties: {
      id: { type: "string", pattern: id },
      mode: { anyOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }] },
      to: {
        type: "array",
        maxItems: 5,
        items: { type: "object", required: ["name"], properties: { name: { type: "string", minLength: 1 } } },
      },
      at: { type: "string", format: "date-time" },
      sequence: { type: ["integer", "null"], minimum: 1 },
    },
  };
  assert.deepEqual(fieldsOf(schema).map(({ path, type, required, note }) => [path, type, required, note]), [
    ["id", "whk_… id", true, ""],
    ["mode", '"a" or "b" or null', false, ""],
    ["to", "object[]", false, "At most 5 items."],
    ["to[].name", "string", true, "At least 1 characters."],
    ["at", "time, RFC 3339", false, ""],
    ["sequence", "integer or null", false, "At least 1."],
  ]);
  assert.equal(typeOf({ const: 1 }), "1");
  assert.equal(typeOf({}), "any JSON");
});

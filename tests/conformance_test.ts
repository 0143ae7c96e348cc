/** `docs/conformance.md`: every file and every test it names is there. */
import assert from "node:assert/strict";

const ROOT = new URL("../", import.meta.url);

async function* sources(folder: URL): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    if (entry.isDirectory) yield* sources(new URL(`${entry.name}/`, folder));
    else if (/_test\.tsx?$/.test(entry.name)) yield await Deno.readTextFile(new URL(entry.name, folder));
  }
}

Deno.test("conformance: each statement names code and a test that are there", async () => {
  const page = await Deno.readTextFile(new URL("docs/conformance.md", ROOT));
  const rows = page.split("\n").filter((line) => /^\|.*`.*\|.*`.*\|$/.test(line));
  assert.ok(rows.length > 50, `${rows.length} statements`);
  const names: string[] = [];
  for await (const source of sources(new URL("tests/", ROOT))) {
    names.push(
      ...[...source.matchAll(/Deno\.test\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/g)].map((found) => found[2]!),
    );
  }
  for (const row of rows) {
    const [code, test] = row.split("|").slice(-3, -1).map((cell) => /`(.+)`/.exec(cell)?.[1]);
    assert.ok(code !== undefined && test !== undefined, row);
    assert.ok((await Deno.stat(new URL(code, ROOT))).isFile, code);
    assert.ok(names.some((name) => name.startsWith(test)), `no test begins with: ${test}`);
  }
});

/** The library's documentation: complete, and its examples run. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

async function deno(...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: ROOT,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.ok(success, text);
  return text;
}

Deno.test("library: every symbol of mod.ts is documented and no private type shows", async () => {
  await deno("doc", "--lint", "mod.ts");
});

Deno.test("library: the examples in its documentation run", async () => {
  // Without types: a documentation test imports all of the module, used or not, which our options refuse.
  assert.match(await deno("test", "--doc", "--no-check", "--allow-all", "mod"), /ok \| 2 passed/);
});

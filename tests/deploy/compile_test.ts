/** One binary: `deno task compile` makes it, it answers `/ready`, and SIGTERM ends it with 0. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import config from "../../deno.json" with { type: "json" };
import { eventually, makePlace, Process, statusOf } from "../e2e/support/process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The runtime that `deno compile` puts into a binary comes from Deno's own server, which is no package registry. */
const NO_RUNTIME = /dns error|error sending request|denort|Connection refused|403 Forbidden/;

Deno.test("compile: the binary starts, answers /ready and the documentation, and stops", async () => {
  await using place = await makePlace();
  const binary = `${place.folder}/pylota-webhooks`;
  const words = [...config.tasks.compile.matchAll(/'([^']*)'|(\S+)/g)].map((word) => word[1] ?? word[2]!);
  assert.deepEqual(words.slice(0, 2), ["deno", "compile"]);
  const args = words.slice(1).map((word) => word === "dist/pylota-webhooks" ? binary : word);
  const made = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT }).output();
  const said = new TextDecoder().decode(made.stderr);
  if (!made.success && NO_RUNTIME.test(said)) {
    console.log(
      "skipped: deno compile cannot fetch its runtime here; set DENORT_BIN to a denort binary to run this",
    );
    return;
  }
  assert.ok(made.success, said);
  const command = new Deno.Command(binary, {
    cwd: place.folder,
    clearEnv: true,
    env: place.env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  await using process = new Process(command.spawn());
  const origin = `http://127.0.0.1:${place.env.PM_PORT}`;
  await eventually("it is ready", async () => {
    assert.ok(!process.ended, process.output);
    return await statusOf(`${origin}/ready`) === 200;
  });
  assert.equal(await statusOf(`${origin}/docs/guides/operate`), 200);
  assert.equal((await process.end("SIGTERM")).code, 0, process.output);
});

/**
 * The guides' code: what is marked `run` runs (shell blocks of a guide one after another, against a running service), the rest is
 * at least well-formed in its language, by that language's own tool where this machine has it.
 */
import assert from "node:assert/strict";
import { guideNames } from "../../routes/docs/guides.ts";
import { expecting, makeApi } from "../e2e/support/api.ts";
import { makePlace, platformKey, startService } from "../e2e/support/process.ts";
import { type Block, blocksOf, program, ROOT, wellFormed } from "./blocks.ts";

/** A shell block that talks to a service or works on its store. */
const NEEDS_SERVICE = /\$(URL|KEY|TENANT|BACKUPS)\b|pmail/;

const FILES = guideNames.map((name) => `docs/${name}.md`);

for (const file of FILES) {
  Deno.test(`${file}: every block is well-formed in its language`, async () => {
    const unchecked: string[] = [];
    for (const block of await blocksOf(file)) {
      if (await wellFormed(block) === "unchecked") unchecked.push(`${block.at} (${block.language})`);
    }
    if (unchecked.length > 0) console.log(`not checked on this machine: ${unchecked.join(", ")}`);
  });

  Deno.test(`${file}: the blocks marked run do what they say`, async () => {
    const blocks = (await blocksOf(file)).filter(({ runs }) => runs);
    for (const block of blocks) if (block.language !== "sh") await runAlone(block);
    const shell = blocks.filter(({ language }) => language === "sh");
    if (shell.length > 0) await runShell(shell);
  });
}

async function runAlone({ at, language, code }: Block): Promise<void> {
  if (language === "python") {
    const ran = await program("python3", ["-"], { stdin: code });
    assert.ok(ran !== null, "python3 is needed");
    return assert.equal(ran.code, 0, `${at}\n${ran.text}`);
  }
  assert.equal(language, "ts", `${at}: cannot run ${language}`);
  const path = `${ROOT}.docs-run-${crypto.randomUUID()}.ts`;
  try {
    await Deno.writeTextFile(path, code);
    const ran = await program(Deno.execPath(), ["run", "--quiet", path]);
    assert.equal(ran!.code, 0, `${at}\n${ran!.text}`);
  } finally {
    await Deno.remove(path);
  }
}

/** One script of all shell blocks of a guide, with the variables that the guides name. */
async function runShell(blocks: Block[]): Promise<void> {
  const script = blocks.map(({ at, code }) => `echo '# ${at}'\n${code}`).join("\n");
  if (!NEEDS_SERVICE.test(script)) {
    const ran = await program("sh", ["-eu"], { stdin: script });
    return assert.equal(ran!.code, 0, ran!.text);
  }
  await using place = await makePlace({ PM_RETRY_SCALE: "0.002" });
  const backups = `${place.folder}/backups`;
  await Deno.mkdir(backups);
  const key = await platformKey(place.env);
  await using _service = await startService(place.env);
  const call = makeApi(place.env.PM_PORT!, key);
  const tenant = await expecting(201, call("POST", "/v1/tenants", { slug: "acme", name: "Acme" }));
  const url = `http://127.0.0.1:${place.env.PM_PORT}`;
  const ran = await program("sh", ["-eu"], {
    stdin: script,
    env: {
      ...place.env,
      URL: url,
      KEY: key,
      TENANT: tenant.id,
      BACKUPS: backups,
      PM_URL: url,
      PM_API_KEY: key,
    },
  });
  assert.equal(ran!.code, 0, ran!.text);
}

/** The README's own commands: from a clone to a verified webhook in three, timed, and the way to run it for good. */
import assert from "node:assert/strict";
import config from "../../deno.json" with { type: "json" };
import { eventually, freePort, makePlace, Process } from "../e2e/support/process.ts";
import { blocksOf, program, ROOT } from "./blocks.ts";

const CLONE_TO_WEBHOOK_MS = 120_000;
/** Tasks a README command starts that take longer than a test may, or are this very run. */
const NOT_RUN_HERE = new Set(["test", "check", "bench"]);
const NPX = /^npx -y deno@(\d+\.\d+\.\d+) /;

/** Commands of a section's blocks, comments cut off. */
async function commandsOf(section: string): Promise<string[]> {
  const text = await Deno.readTextFile(`${ROOT}README.md`);
  const from = text.split("\n").indexOf(`## ${section}`) + 1;
  const lines = text.split("\n"), to = lines.findIndex((line, i) => i >= from && line.startsWith("## "));
  const inside = (await blocksOf("README.md")).filter(({ at }) => {
    const line = Number(at.split(":")[1]);
    return line > from && (to < 0 || line <= to);
  });
  return inside.flatMap(({ code }) => code.replace(/\\\n\s*/g, "").split("\n"))
    .map((line) => line.replace(/\s+#.*$/, "").trim()).filter((line) => line !== "");
}

/**
 * A shell line as a process in a folder of its own, with no setting of this environment's. It leads a group, as in a terminal: npx starts
 * deno through others, and does not hand signals on.
 */
function shell(line: string, cwd: string, env: Record<string, string>): Process {
  // How this machine reaches the package registry is in its environment, too.
  const inherited = Object.fromEntries(
    Object.entries(Deno.env.toObject()).filter(([name]) => !/^(PM_|OTEL_|DENO_DIR$)/.test(name)),
  );
  const command = new Deno.Command("setsid", {
    args: ["sh", "-c", `exec ${line}`],
    cwd,
    clearEnv: true,
    env: { ...inherited, NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  return new Process(command.spawn());
}

/** What Ctrl-C in a terminal does: the whole group hears it. */
async function end(group: Process, signal: Deno.Signal): Promise<Deno.CommandStatus> {
  try {
    Deno.kill(-group.child.pid, signal);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // all of it has ended
  }
  const status = await group.status;
  await Promise.all([group.stdout, group.stderr]);
  return status;
}

Deno.test("README: every task it names is there, and every version of Deno is the one", async () => {
  const versions = new Set<string>();
  for (const { code } of (await blocksOf("README.md")).filter(({ language }) => language === "sh")) {
    for (const line of code.split("\n")) {
      const version = NPX.exec(line)?.[1];
      if (version !== undefined) versions.add(version);
      const task = /deno\S* task (\S+)/.exec(line)?.[1];
      if (task !== undefined) assert.ok(task in config.tasks, line);
    }
  }
  assert.deepEqual([...versions], [Deno.version.deno]);
});

Deno.test("README: from clone to a verified webhook in three commands under two minutes", async () => {
  await using place = await makePlace();
  const [, dev] = await commandsOf("Start");
  assert.match(dev!, /^npx -y deno@\S+ task dev$/);
  const at = performance.now();

  // 1: git clone
  const cloned = await program("git", ["clone", "--quiet", "--depth", "1", `file://${ROOT}`, "clone"], {
    cwd: place.folder,
  });
  assert.equal(cloned!.code, 0, cloned!.text);

  // 2: the README's line, as it stands there; what it fetches goes to a cache of its own
  const cwd = `${place.folder}/clone`, port = String(freePort());
  const env = { PM_PORT: port, PM_LOG: "warn", DENO_DIR: `${place.folder}/deno` };
  let service = shell(dev!, cwd, env);
  const greeted = (process: Process) => /^curl .*$/m.exec(process.output)?.[0];
  await eventually(
    "it greets, or cannot be fetched",
    () => greeted(service) ?? service.ended,
    CLONE_TO_WEBHOOK_MS,
  );
  if (greeted(service) === undefined) {
    console.log("npx cannot fetch deno here: the deno of this machine takes its place");
    service = shell(dev!.replace(NPX, `${Deno.execPath()} `), cwd, env);
  }
  try {
    const curl = await eventually("it greets", () => {
      assert.ok(!service.ended, service.output);
      return greeted(service);
    }, CLONE_TO_WEBHOOK_MS);

    // 3: the line it prints
    const caused = await program("sh", ["-c", curl]);
    assert.equal(caused!.code, 0, caused!.text);
    const { id } = JSON.parse(caused!.stdout).event;
    await eventually("the delivery is there, verified", async () => {
      const response = await fetch(`http://127.0.0.1:${port}/dev/receiver`, {
        headers: { accept: "application/json" },
      });
      const { data } = await response.json();
      return data.some((row: { webhook_id: string; verified: boolean }) =>
        row.webhook_id === id && row.verified
      );
    });
    const ms = Math.round(performance.now() - at);
    assert.ok(ms < CLONE_TO_WEBHOOK_MS, `${ms} ms`);
    console.log({ clone_to_verified_webhook_ms: ms });
  } finally {
    await end(service, "SIGINT");
  }
});

Deno.test("README: the commands of 'Run it' make a key that the service then knows", async () => {
  await using place = await makePlace();
  const port = String(freePort());
  const lines = (await commandsOf("Run it")).map((line) =>
    line.replace("./data/pm.db", `${place.folder}/pm.db`).replace("8000", port).replace(
      NPX,
      `${Deno.execPath()} `,
    )
  );
  assert.equal(lines.length, 3);
  const [settings, pmail, start] = lines as [string, string, string];
  const made = await program("sh", ["-euc", `${settings}\n${pmail}`]);
  assert.equal(made!.code, 0, made!.text);
  const { secret } = JSON.parse(made!.stdout);
  const env = Object.fromEntries(
    settings.replace("export ", "").split(" ").map((pair) => pair.split("=") as [string, string]),
  );
  const service = shell(start, ROOT, env);
  try {
    const answer = await eventually("the key is known", async () => {
      assert.ok(!service.ended, service.output);
      return await fetch(`http://127.0.0.1:${port}/v1/tenants`, {
        headers: { authorization: `Bearer ${secret}` },
      })
        .catch(() => null);
    });
    assert.equal(answer.status, 200, await answer.text());
    assert.ok((await fetch(`http://127.0.0.1:${port}/docs`).then((r) => r.text())).includes("Documentation"));
  } finally {
    assert.equal((await end(service, "SIGTERM")).code, 0, service.output);
  }
});

Deno.test("README: the short commands of 'Test' do what they say, the long ones are named", async () => {
  for (const line of await commandsOf("Test")) {
    const task = /task (\S+)/.exec(line)![1]!;
    if (NOT_RUN_HERE.has(task)) continue;
    const ran = await program("sh", ["-c", line.replace(NPX, `${Deno.execPath()} `)]);
    assert.equal(ran!.code, 0, `${line}\n${ran!.text}`);
  }
});

Deno.test("README: its links to files lead somewhere", async () => {
  const text = await Deno.readTextFile(`${ROOT}README.md`);
  for (const [, href] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (!href!.startsWith("https://")) await Deno.stat(`${ROOT}${href}`);
  }
});

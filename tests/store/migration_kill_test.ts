/** A migrating process gets kill -9 half-way: the next start goes on at its cursor, and no row is moved twice or left behind. */
import assert from "node:assert/strict";
import { MIGRATIONS } from "../../migrations/list.ts";

const RUNNER = new URL("./migration_runner.ts", import.meta.url);
const ROWS = 2_000;
/** Past the lease of the one that was killed, so that nobody has to wait for it. */
const LEASE_OVER_MS = 11_000;

function start(file: string, aheadMs: number) {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "-A", RUNNER.href, file, String(ROWS), String(aheadMs)],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

/** The lines a process writes; `see` may end it. */
async function lines(child: Deno.ChildProcess, see: (lines: string[]) => void = () => {}): Promise<string[]> {
  let text = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    see(text.trimEnd().split("\n"));
  }
  await child.status;
  return text.trimEnd().split("\n");
}

Deno.test("migrations: a process killed half-way, twice, leaves a store that the next start finishes", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/pm.db`;
    using kv = await Deno.openKv(file);
    for (let from = 0; from < ROWS; from += 500) {
      const commit = kv.atomic();
      for (let i = from; i < from + 500; i++) commit.set(["old", i], 1);
      await commit.commit();
    }
    const first: number[] = [];
    for (let kill = 0; kill < 2; kill++) {
      const child = start(file, kill * LEASE_OVER_MS);
      let killed = false;
      const seen = await lines(child, (soFar) => {
        if (killed || soFar.length < 5) return;
        killed = true;
        child.kill("SIGKILL");
      });
      first.push(Number(seen[0]!.split(" ").at(-1)));
      assert.equal((await child.status).signal, "SIGKILL", "it was not done yet");
    }
    const last = await lines(start(file, 2 * LEASE_OVER_MS));
    first.push(Number(last[0]!.split(" ").at(-1)));
    assert.equal(last.at(-1), `version ${MIGRATIONS.length + 1}`);
    assert.ok(first[0] === 0 && first[0] < first[1]! && first[1]! < first[2]!, `goes on at ${first}`);
    const moved: number[] = [];
    for await (const { value } of kv.list<number>({ prefix: ["new"] })) moved.push(value);
    assert.deepEqual(moved, Array(ROWS).fill(1), "each row was moved once");
    for await (const row of kv.list({ prefix: ["old"] })) assert.fail(`left behind: ${row.key}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

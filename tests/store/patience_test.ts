/** Two processes write one store file: neither is told that it is locked, and no commit is lost or made twice. */
import assert from "node:assert/strict";
import { openKv } from "../../lib/edge/open_kv.ts";
import { patiently } from "../../lib/edge/patience.ts";
import { realTimers } from "../../lib/edge/ports.ts";

const WRITER = new URL("./patience_writer.ts", import.meta.url);
const COMMITS = 150;

Deno.test("patience: checked commits of two processes on one file all succeed, each once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/pm.db`;
    const writers = [1, 2].map(() =>
      new Deno.Command(Deno.execPath(), {
        args: ["run", "--quiet", "-A", WRITER.href, path, String(COMMITS)],
        stdout: "piped",
        stderr: "piped",
      }).output()
    );
    for (const { code, stderr } of await Promise.all(writers)) {
      assert.equal(code, 0, new TextDecoder().decode(stderr));
    }
    const { kv } = await openKv(path);
    assert.equal((await kv.get(["count"])).value, 2 * COMMITS);
    kv.close();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("patience: another error comes out at once, and a lock that stays after 5 s of pauses", async () => {
  let tries = 0;
  const failing = (message: string) => () => (tries++, Promise.reject(new TypeError(message)));
  await assert.rejects(patiently(failing("disk I/O error"), realTimers), /disk/);
  assert.equal(tries, 1);
  let waited = 0;
  const timers = {
    ...realTimers,
    after: (ms: number, run: () => void) => ((waited += ms), realTimers.after(0, run)),
  };
  await assert.rejects(patiently(failing("database is locked"), timers), /locked/);
  assert.ok(waited >= 5_000 && waited < 5_020, `${waited} ms`);
});

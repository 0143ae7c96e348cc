/** Two processes write one store file: neither is told that it is locked, and no commit is lost or made twice. */
import assert from "node:assert/strict";
import { openKv } from "../../lib/edge/open_kv.ts";
import { patiently } from "../../lib/edge/patience.ts";
import { realTimers } from "../../lib/edge/ports.ts";
import { ManualTime } from "../support/manual_time.ts";

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

Deno.test("patience: another error comes out at once, and a lock that stays 4 s after it was first met", async () => {
  let tries = 0;
  const failing = (message: string) => () => (tries++, Promise.reject(new TypeError(message)));
  await assert.rejects(patiently(failing("disk I/O error"), realTimers), /disk/);
  assert.equal(tries, 1);
  const time = new ManualTime(), { timers, pending } = time.group();
  const began = time.now, pauses: number[] = [];
  const passing = {
    ...timers,
    after: (ms: number, run: () => void) => (pauses.push(ms), timers.after(ms, run)),
  };
  /** Each try takes as long as SQLite waits for a lock, or none at all. */
  for (const [tryMs, least, most] of [[0, 4_000, 4_020], [5_000, 10_000, 10_020]] as const) {
    const from = time.now;
    let done = false;
    const work = () => {
      const until = time.now + tryMs;
      while (tryMs > 0 && time.step(until));
      time.now = until;
      return failing("database is locked")();
    };
    const refused = assert.rejects(patiently(work, passing), /locked/).then(() => done = true);
    while (!done) {
      time.step(Infinity);
      await new Promise((resolve) => realTimers.after(0, () => resolve(null)));
    }
    await refused;
    assert.ok(time.now - from >= least && time.now - from <= most, `${time.now - from} ms`);
  }
  assert.equal(pending(), 0, "no timer stays behind");
  assert.ok(time.now > began && Math.max(...pauses.filter((ms) => ms < 4_000)) === 10);
});

import assert from "node:assert/strict";
import { kvPlace, openKv, OpenKvError } from "../../lib/edge/open_kv.ts";

Deno.test("open_kv: a path, memory, a URL and the platform's own are told apart", () => {
  const cases: [string, string][] = [
    ["./data/pm.db", "file"],
    ["/var/lib/pm/pm.db", "file"],
    [":memory:", "memory"],
    ["https://api.deno.com/databases/x/connect", "remote"],
    ["http://127.0.0.1:4512", "remote"],
    ["platform", "platform"],
  ];
  for (const [path, place] of cases) assert.equal(kvPlace(path), place);
});

Deno.test("open_kv: makes the folder for this user alone, keeps what was written, one commit at a time", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const path = `${dir}/data/pm.db`;
    const first = await openKv(path);
    await first.kv.set(["a"], 1);
    first.kv.close();
    assert.equal((await Deno.stat(`${dir}/data`)).mode! & 0o777, 0o700);
    const second = await openKv(path);
    assert.equal((await second.kv.get(["a"])).value, 1);
    assert.deepEqual([second.place, second.maxInFlight], ["file", 1]);
    second.kv.close();
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("open_kv: a file that is no store, or a folder that is a file, is refused with the way out", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${dir}/text.db`,
      "this is not a database, and it is long enough to be read as one\n".repeat(20),
    );
    for (const path of [`${dir}/text.db`, `${dir}/text.db/pm.db`]) {
      await assert.rejects(
        openKv(path),
        (error) =>
          error instanceof OpenKvError && error.message.includes(path) && /PM_KV_PATH/.test(error.message),
      );
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

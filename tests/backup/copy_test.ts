/** A copy of the store's file: of one moment, whole or not there, and never over anything. */
import assert from "node:assert/strict";
import { BackupError, copyStore } from "../../lib/edge/backup.ts";
import { realRandom } from "../../lib/edge/ports.ts";

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "pm-backup-" });
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const names = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
const copy = (from: string, to: string) => copyStore(from, to, realRandom);

/** Another process that keeps two keys equal, and a row for each step, commit after commit, until its input ends. */
const WRITER = `
const kv = await Deno.openKv(Deno.args[0]);
let n = 0, stop = false;
Deno.stdin.read(new Uint8Array(1)).then(() => stop = true);
while (!stop) {
  n++;
  await kv.atomic().set(["a"], n).set(["row", n], "x".repeat(300)).set(["b"], n).commit();
  if (n === 50) console.log("under way");
}
console.log(n);
kv.close();`;

Deno.test("backup: copies of a store under write hold one moment each, and the writer is not held up", async () => {
  await inFolder(async (folder) => {
    const store = `${folder}/pm.db`, script = `${folder}/writer.ts`;
    await Deno.writeTextFile(script, WRITER);
    const writer = new Deno.Command(Deno.execPath(), {
      args: ["run", "--unstable-kv", "--no-config", "--allow-read", "--allow-write", script, store],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const output = writer.stdout.pipeThrough(new TextDecoderStream()).getReader();
    assert.match((await output.read()).value!, /under way/);
    for (let i = 0; i < 5; i++) await copy(store, `${folder}/copy-${i}.db`);
    const input = writer.stdin.getWriter();
    await input.write(new Uint8Array([10]));
    await input.close();
    const total = Number((await output.read()).value);
    await output.cancel();
    assert.equal((await writer.status).code, 0);

    let last = 0;
    for (let i = 0; i < 5; i++) {
      const kv = await Deno.openKv(`${folder}/copy-${i}.db`);
      const [a, b] = await kv.getMany<number[]>([["a"], ["b"]]);
      let rows = 0;
      for await (const { key } of kv.list({ prefix: ["row"] })) assert.equal(key[1], ++rows);
      kv.close();
      assert.equal(a!.value, b!.value, "both keys of a commit, or neither");
      assert.equal(rows, a!.value, "every commit before it, none after");
      assert.ok(rows >= last, "later copies hold later moments");
      last = rows;
    }
    assert.ok(last < total, `it wrote on: ${last} of ${total}`);
  });
});

Deno.test("backup: a copy is one private file, says what it holds, and leaves nothing else behind", async () => {
  await inFolder(async (folder) => {
    const kv = await Deno.openKv(`${folder}/pm.db`);
    for (let i = 0; i < 3; i++) await kv.set(["k", i], i);
    const { versionstamp } = await kv.set(["k", 3], 3);
    const copied = await copy(`${folder}/pm.db`, `${folder}/copy.db`);
    kv.close();
    const { size, mode } = await Deno.stat(`${folder}/copy.db`);
    assert.deepEqual(copied, { rows: 4, versionstamp, bytes: size });
    assert.equal(mode! & 0o777, 0o600);
    assert.deepEqual(names(folder).filter((name) => name.startsWith("copy")), ["copy.db"]);
  });
});

Deno.test("backup: what is there is never overwritten, not even what SQLite would take for its own", async () => {
  await inFolder(async (folder) => {
    const store = `${folder}/pm.db`;
    (await Deno.openKv(store)).close();
    for (const taken of ["t.db", "u.db-wal", "v.db-journal"]) {
      const path = `${folder}/${taken}`;
      await Deno.writeTextFile(path, "mine");
      await assert.rejects(() => copy(store, path.replace(/-\w+$/, "")), /exists already/);
      assert.equal(await Deno.readTextFile(path), "mine");
    }
    await assert.rejects(() => copy(store, store), BackupError, "onto itself");
    const raced = await Promise.allSettled(Array.from({ length: 4 }, () => copy(store, `${folder}/race.db`)));
    assert.equal(
      raced.filter(({ status }) => status === "fulfilled").length,
      1,
      "of several at once one gets the name",
    );
    assert.deepEqual(names(folder).filter((name) => name.endsWith(".part")), []);
  });
});

Deno.test("backup: what cannot be copied is refused with the reason", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/text`, "no store ".repeat(1_000));
    await Deno.mkdir(`${folder}/dir`);
    const to = `${folder}/new.db`;
    const cases: [string, string, RegExp, string][] = [
      [`${folder}/none.db`, to, /no such file/, "a wrong path"],
      [`${folder}/dir`, to, /no such file/, "a folder"],
      [`${folder}/text`, to, /not a Deno KV file/, "another file"],
      ["https://u:hunter2@kv.example.com/x", to, /from kv\.example\.com: only a store in a file/, "remote"],
      [":memory:", to, /only a store in a file/, "memory"],
      [`${folder}/text`, "https://u:hunter2@kv.example.com/x", /to kv\.example\.com/, "to a remote one"],
      [`${folder}/text`, `${folder}/none/new.db`, /Cannot/, "into a folder that is not there"],
    ];
    for (const [from, target, says, why] of cases) {
      const error = await copy(from, target).then(() => null, (thrown) => thrown);
      assert.ok(error instanceof BackupError, why);
      assert.match(error.message, says, why);
      assert.ok(!error.message.includes("hunter2"), why);
    }
    assert.deepEqual(names(folder), ["dir", "text"], "nothing is left behind");
  });
});

Deno.test("backup: a damaged store is not copied as if it were whole", async () => {
  await inFolder(async (folder) => {
    const store = `${folder}/pm.db`, kv = await Deno.openKv(store);
    for (let i = 0; i < 200; i++) await kv.set(["k", i], "x".repeat(1_000));
    kv.close();
    using file = await Deno.open(store, { write: true });
    await file.seek(4096 * 20, Deno.SeekMode.Start);
    await file.write(new Uint8Array(4096 * 10).fill(0xff));
    await assert.rejects(() => copy(store, `${folder}/copy.db`), BackupError);
    assert.deepEqual(names(folder).filter((name) => name.startsWith("copy")), []);
  });
});

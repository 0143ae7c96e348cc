import assert from "node:assert/strict";
import { completeConfig, parseConfig } from "../../lib/edge/config.ts";
import { localSecrets, LocalSecretsError, secretsPath } from "../../lib/edge/local_secrets.ts";
import { realRandom } from "../../lib/edge/ports.ts";

async function withDir(body: (kvPath: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await body(`${dir}/data/pm.db`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("local_secrets: made once, kept beside the store for this user alone, and found again", () =>
  withDir(async (kvPath) => {
    const first = await localSecrets(kvPath, realRandom);
    const again = await localSecrets(kvPath, realRandom);
    assert.ok(first.masterKey.equals(again.masterKey) && first.hashKey.equals(again.hashKey));
    assert.ok(!first.masterKey.equals(first.keyPepper));
    assert.equal((await Deno.stat(secretsPath(kvPath))).mode! & 0o777, 0o600);
  }));

Deno.test("local_secrets: starts at the same time agree, and leave nothing else behind", () =>
  withDir(async (kvPath) => {
    const all = await Promise.all(Array.from({ length: 12 }, () => localSecrets(kvPath, realRandom)));
    for (const one of all) assert.ok(one.masterKey.equals(all[0]!.masterKey));
    const names: string[] = [];
    for await (const file of Deno.readDir(kvPath.slice(0, kvPath.lastIndexOf("/")))) names.push(file.name);
    assert.deepEqual(names, ["pm.db.secrets.json"]);
  }));

Deno.test("local_secrets: a broken file is refused, never replaced: it may still hold the only keys", () =>
  withDir(async (kvPath) => {
    await localSecrets(kvPath, realRandom);
    for (const text of ["", "{}", `{"PM_MASTER_KEY":"AA==","PM_KEY_PEPPER":"AA==","PM_HASH_KEY":"AA=="}`]) {
      await Deno.writeTextFile(secretsPath(kvPath), text);
      await assert.rejects(
        localSecrets(kvPath, realRandom),
        (error) => error instanceof LocalSecretsError && error.message.includes(secretsPath(kvPath)),
      );
      assert.equal(await Deno.readTextFile(secretsPath(kvPath)), text);
    }
  }));

Deno.test("local_secrets: a store in memory gets fresh ones and no file; given ones are not replaced", async () => {
  const [a, b] = [await localSecrets(":memory:", realRandom), await localSecrets(":memory:", realRandom)];
  assert.ok(!a.masterKey.equals(b.masterKey));
  const given = parseConfig({ PM_ENV: "test", PM_KEY_PEPPER: "A".repeat(43) + "=" });
  const config = await completeConfig(given, realRandom);
  assert.deepEqual(config.secrets.keyPepper.bytes, new Uint8Array(32));
  assert.equal(config.secrets.masterKey.bytes.length, 32);
});

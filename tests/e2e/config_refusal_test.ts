/** A start that cannot be right stops with exit code 1 and says what to change, before it listens or touches the store. */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import { type Env, makePlace, run, startService } from "./support/process.ts";

const REFUSED: { env: Env; says: RegExp; reason: string }[] = [
  { env: { PM_PORT: "eighty" }, says: /PM_PORT must be a whole number/, reason: "not a number" },
  { env: { PM_PORT: "65536" }, says: /PM_PORT must be a whole number/, reason: "above the last port" },
  {
    env: { PM_ENV: "prod" },
    says: /PM_ENV must be one of: local, test, production/,
    reason: "no such environment",
  },
  { env: { PM_RETRY_SCALE: "2" }, says: /PM_RETRY_SCALE must be/, reason: "would lengthen the schedule" },
  {
    env: { PM_ALLOWED_TARGETS: "127.0.0.1" },
    says: /PM_ALLOWED_TARGETS must be/,
    reason: "a target has a port",
  },
  { env: { PM_MASTER_KEY: "c2hvcnQ=" }, says: /PM_MASTER_KEY must be 32 bytes/, reason: "a short key" },
  {
    env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    says: /NODE_TLS_REJECT_UNAUTHORIZED must not be set/,
    reason: "no certificate would be checked",
  },
  {
    env: { PM_ENV: "production" },
    says: /PM_MASTER_KEY must be set[^]*PM_KEY_PEPPER must be set[^]*PM_HASH_KEY must be set/,
    reason: "production makes no secrets, and all faults come at once",
  },
  {
    env: { PM_KV_PATH: "/dev/null/pm.db" },
    says: /\/dev\/null\/pm\.db/,
    reason: "a folder that cannot be made",
  },
];

for (const { env, says, reason } of REFUSED) {
  const [name, value] = Object.entries(env)[0]!;
  Deno.test(`config_refusal: ${name}=${value} stops the start (${reason})`, async () => {
    await using place = await makePlace();
    const { code, stdout, stderr } = await run("start", { ...place.env, ...env });
    assert.equal(code, 1, stderr);
    assert.match(stderr, says);
    assert.match(stderr, /^Cannot /, "the first words say that it cannot start");
    assert.ok(!stderr.includes("    at "), `no stack trace:\n${stderr}`);
    assert.ok(!stdout.includes("started"));
  });
}

Deno.test("config_refusal: pmail refuses as the service does", async () => {
  await using place = await makePlace({ PM_PORT: "eighty" });
  const { code, stderr } = await run("pmail", place.env, ["keys", "create", "--level", "platform"]);
  assert.equal(code, 1);
  assert.match(stderr, /PM_PORT must be a whole number/);
});

Deno.test("config_refusal: a store of a newer release is left alone", async () => {
  await using place = await makePlace();
  const newer = { version: 9_999 };
  {
    using kv = await Deno.openKv(place.env.PM_KV_PATH);
    await kv.set(keys.schema(), newer);
  }
  const { code, stderr } = await run("start", place.env);
  assert.equal(code, 1);
  assert.match(stderr, /^Cannot start: the store has version 9999/);
  using kv = await Deno.openKv(place.env.PM_KV_PATH);
  assert.deepEqual((await kv.get(keys.schema())).value, newer);
});

Deno.test("config_refusal: damaged development secrets stop the start and name the file", async () => {
  await using place = await makePlace();
  const path = `${place.env.PM_KV_PATH}.secrets.json`;
  await Deno.writeTextFile(path, "{}");
  const { code, stderr } = await run("start", place.env);
  assert.equal(code, 1);
  assert.ok(stderr.startsWith("Cannot ") && stderr.includes(path) && !stderr.includes("    at "), stderr);
});

Deno.test("config_refusal: a port in use stops the start and names PM_PORT", async () => {
  await using place = await makePlace();
  await using _first = await startService(place.env);
  const second = await run("start", { ...place.env, PM_KV_PATH: `${place.folder}/other.db` });
  assert.equal(second.code, 1);
  assert.match(second.stderr, /^Cannot listen on 127\.0\.0\.1:\d+[^]*PM_PORT/);
  assert.ok(!second.stderr.includes("    at "), second.stderr);
});

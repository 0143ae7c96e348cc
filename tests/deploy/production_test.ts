/** `PM_ENV=production` refuses what is not safe, all of it at once, each with its way out. */
import assert from "node:assert/strict";
import { makePlace, run } from "../e2e/support/process.ts";

const key = (fill: number) => btoa(String.fromCharCode(...new Uint8Array(32).fill(fill)));
const SECRETS = { PM_MASTER_KEY: key(1), PM_KEY_PEPPER: key(2), PM_HASH_KEY: key(3) };

const REFUSED: [env: Record<string, string>, says: string[], reason: string][] = [
  [{}, [
    "PM_MASTER_KEY must be set",
    "PM_KEY_PEPPER must be set",
    "PM_HASH_KEY must be set",
    "openssl rand -base64 32",
  ], "no secret is made up"],
  [{ ...SECRETS, PM_HASH_KEY: key(1) }, [
    "PM_HASH_KEY must not be the same as PM_MASTER_KEY",
    "make another with",
  ], "one secret for two purposes"],
  [
    { ...SECRETS, PM_ALLOWED_TARGETS: "127.0.0.1:9000" },
    ["PM_ALLOWED_TARGETS must not be set", "Unset it"],
    "the guard would be open",
  ],
  [{ ...SECRETS, PM_RETRY_SCALE: "0.5" }, ["PM_RETRY_SCALE must not be set", "Unset it"], "another schedule"],
  [
    { ...SECRETS, PM_KV_PATH: ":memory:" },
    ["PM_KV_PATH must not be :memory:", "Name a file"],
    "a restart loses all",
  ],
  [{ ...SECRETS, NODE_TLS_REJECT_UNAUTHORIZED: "0" }, [
    "NODE_TLS_REJECT_UNAUTHORIZED must not be set",
    "Unset it",
  ], "no certificate would be checked"],
  [{ ...SECRETS, PM_HTTP_TRANSPORT: "fetch", HTTPS_PROXY: "http://10.0.0.1:1" }, [
    "HTTPS_PROXY must not be set",
    "Unset it",
  ], "deliveries would go to the proxy"],
  [{ PM_ALLOWED_TARGETS: "127.0.0.1:9000", PM_RETRY_SCALE: "0.5" }, [
    "PM_MASTER_KEY must be set",
    "PM_ALLOWED_TARGETS must not be set",
    "PM_RETRY_SCALE must not be set",
  ], "all faults come at once"],
];

for (const [env, says, reason] of REFUSED) {
  Deno.test(`production: refused, with the way out (${reason})`, async () => {
    await using place = await makePlace();
    const { code, stdout, stderr } = await run("start", { ...place.env, PM_ENV: "production", ...env });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /^Cannot /);
    for (const words of says) assert.ok(stderr.includes(words), `${words}\n${stderr}`);
    for (const secret of Object.values(SECRETS)) {
      assert.ok(!(stdout + stderr).includes(secret), "no secret is shown");
    }
  });
}

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { completeConfig, ConfigError, ENV_NAMES, parseConfig, showConfig } from "../../lib/edge/config.ts";
import { VARIABLE_NAMES } from "../../lib/edge/config_vars.ts";
import { realRandom } from "../../lib/edge/ports.ts";

const key = (n: number) => Buffer.from(new Uint8Array(32).fill(n)).toString("base64");

const PRODUCTION = {
  PM_ENV: "production",
  PM_MASTER_KEY: key(1),
  PM_KEY_PEPPER: key(2),
  PM_HASH_KEY: key(3),
};

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    parseConfig(env);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.faults;
  }
}

Deno.test("config: nothing set is a local service on 127.0.0.1:8000 with its store in ./data", () => {
  const config = parseConfig({});
  assert.deepEqual([config.env, config.host, config.port, config.kvPath], [
    "local",
    "127.0.0.1",
    8000,
    "./data/pm.db",
  ]);
  assert.deepEqual([config.maxInFlight, config.maxPerEndpoint, config.jobShards, config.retryScale], [
    512,
    32,
    8,
    1,
  ]);
  assert.deepEqual(
    [config.httpTransport, config.metrics, config.notifications, config.doorbell, config.log],
    [
      "undici",
      "keys",
      true,
      "auto",
      "info",
    ],
  );
  assert.deepEqual(config.secrets, { masterKey: null, masterKeyNext: null, keyPepper: null, hashKey: null });
  assert.equal(config.allowedTargets.size, 0);
});

Deno.test("config: the defaults follow PM_ENV and the platform, an empty value is not set", () => {
  assert.equal(parseConfig({ PM_ENV: "test" }).kvPath, ":memory:");
  assert.equal(parseConfig(PRODUCTION).host, "0.0.0.0");
  assert.equal(parseConfig({ ...PRODUCTION, DENO_DEPLOYMENT_ID: "x" }).kvPath, "platform");
  assert.equal(parseConfig({ PM_PORT: "", PM_MASTER_KEY: "" }).port, 8000);
  assert.equal(parseConfig({ HOME: "/root", PATH: "/bin" }).env, "local");
});

Deno.test("config: every setting is read", () => {
  const config = parseConfig({
    ...PRODUCTION,
    PM_ENV: "local",
    PM_HOST: "::",
    PM_PORT: "0",
    PM_KV_PATH: "https://kv.example.com/connect",
    PM_MASTER_KEY_NEXT: key(4),
    PM_API_HOST: "API.example.com",
    PM_CONSOLE_HOST: "console.example.com",
    PM_PLATFORM_DOMAIN: "example.com",
    PM_ALLOWED_TARGETS: "127.0.0.1:9000, Receiver:8080,[::1]:1",
    PM_HTTP_TRANSPORT: "fetch",
    PM_METRICS: "open",
    PM_NOTIFICATIONS: "off",
    PM_MAX_IN_FLIGHT: "10",
    PM_MAX_PER_ENDPOINT: "2",
    PM_JOB_SHARDS: "1",
    PM_RETRY_SCALE: "0.001",
    PM_DOORBELL: "off",
    PM_LOG: "debug",
  });
  assert.equal(config.apiHost, "api.example.com");
  assert.deepEqual([...config.allowedTargets], ["127.0.0.1:9000", "receiver:8080", "[::1]:1"]);
  assert.deepEqual([config.port, config.maxInFlight, config.retryScale, config.notifications], [
    0,
    10,
    0.001,
    false,
  ]);
  assert.deepEqual(config.secrets.masterKeyNext!.bytes, new Uint8Array(32).fill(4));
  assert.ok(Object.isFrozen(config) && Object.isFrozen(config.secrets));
});

Deno.test("config: what is malformed is refused with the variable's name and what it must look like", () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ PM_ENV: "prod" }, /^PM_ENV must be one of: local, test, production$/],
    [{ PM_HOST: "http://x" }, /^PM_HOST must be an address/],
    [{ PM_PORT: "65536" }, /^PM_PORT must be a whole number from 0 to 65535$/],
    [{ PM_PORT: "8e3" }, /^PM_PORT/],
    [{ PM_KV_PATH: "https://" }, /^PM_KV_PATH must be a file/],
    [{ PM_MASTER_KEY: "short" }, /^PM_MASTER_KEY must be 32 bytes in base64/],
    [{ PM_HASH_KEY: key(1).replace("=", "") }, /^PM_HASH_KEY must be 32 bytes/],
    [{ PM_API_HOST: "https://api.example.com" }, /^PM_API_HOST must be a host name alone/],
    [{ PM_ALLOWED_TARGETS: "127.0.0.1" }, /^PM_ALLOWED_TARGETS must be a comma list of host:port/],
    [{ PM_ALLOWED_TARGETS: "a:1,b:70000" }, /"b:70000" is not one/],
    [{ PM_ALLOWED_TARGETS: "http://a:1" }, /^PM_ALLOWED_TARGETS/],
    [{ PM_HTTP_TRANSPORT: "https" }, /^PM_HTTP_TRANSPORT must be one of: undici, fetch$/],
    [{ PM_METRICS: "on" }, /^PM_METRICS must be one of/],
    [{ PM_NOTIFICATIONS: "true" }, /^PM_NOTIFICATIONS must be one of: on, off$/],
    [{ PM_MAX_IN_FLIGHT: "0" }, /^PM_MAX_IN_FLIGHT must be a whole number from 1/],
    [{ PM_MAX_PER_ENDPOINT: "-1" }, /^PM_MAX_PER_ENDPOINT/],
    [{ PM_JOB_SHARDS: "257" }, /^PM_JOB_SHARDS/],
    [{ PM_RETRY_SCALE: "2" }, /^PM_RETRY_SCALE must be a number above 0/],
    [{ PM_RETRY_SCALE: "fast" }, /^PM_RETRY_SCALE/],
    [{ PM_DOORBELL: "on" }, /^PM_DOORBELL must be one of/],
    [{ PM_LOG: "verbose" }, /^PM_LOG must be one of/],
    [{ PM_KEY_PEPPER: key(1), PM_HASH_KEY: key(1) }, /^PM_HASH_KEY must not be the same as PM_KEY_PEPPER/],
    [{ PM_MASTER_KEY: key(1), PM_MASTER_KEY_NEXT: key(1) }, /^PM_MASTER_KEY_NEXT must not be the same/],
    [{ NODE_TLS_REJECT_UNAUTHORIZED: "0" }, /^NODE_TLS_REJECT_UNAUTHORIZED must not be set/],
    [{ PM_HTTP_TRANSPORT: "fetch", https_proxy: "http://p" }, /^https_proxy must not be set/],
    [{ PM_MASTERKEY: "x" }, /^PM_MASTERKEY is not a variable.*PM_MASTER_KEY\?$/],
    [{ PM_KV_PAHT: "x" }, /did you mean PM_KV_PATH\?/],
  ];
  for (const [env, message] of cases) {
    const faults = faultsOf(env);
    assert.equal(faults.length, 1, JSON.stringify([env, faults]));
    assert.match(faults[0]!, message);
  }
  assert.deepEqual(faultsOf({ HTTPS_PROXY: "http://p" }), [], "undici follows no proxy variable");
});

Deno.test("config: production refuses what opens the guard or loses data, with the way out", () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ PM_ALLOWED_TARGETS: "127.0.0.1:9000" }, /^PM_ALLOWED_TARGETS must not be set in production.*Unset it/],
    [{ PM_RETRY_SCALE: "0.5" }, /^PM_RETRY_SCALE must not be set in production/],
    [{ PM_KV_PATH: ":memory:" }, /^PM_KV_PATH must not be :memory: in production/],
    [{ PM_MASTER_KEY: "" }, /^PM_MASTER_KEY must be set in production.*openssl rand -base64 32/],
    [{ PM_KEY_PEPPER: "" }, /^PM_KEY_PEPPER must be set/],
    [{ PM_HASH_KEY: "" }, /^PM_HASH_KEY must be set/],
  ];
  for (const [env, message] of cases) {
    const faults = faultsOf({ ...PRODUCTION, ...env });
    assert.equal(faults.length, 1, JSON.stringify(faults));
    assert.match(faults[0]!, message);
  }
  assert.deepEqual(faultsOf({ ...PRODUCTION, PM_RETRY_SCALE: "1" }), []);
});

Deno.test("config: all faults are listed at once", () => {
  const faults = faultsOf({ PM_ENV: "production", PM_PORT: "x", PM_LOGS: "info", PM_ALLOWED_TARGETS: "a:1" });
  const names = faults.map((fault) => fault.split(" ")[0]);
  assert.deepEqual(names.sort(), [
    "PM_ALLOWED_TARGETS",
    "PM_HASH_KEY",
    "PM_KEY_PEPPER",
    "PM_LOGS",
    "PM_MASTER_KEY",
    "PM_PORT",
  ]);
});

Deno.test("config: no secret shows in what is shown, dumped or refused", async () => {
  const config = await completeConfig(
    parseConfig({ ...PRODUCTION, PM_KV_PATH: "https://user:hunter2@kv.example.com/connect" }),
    realRandom,
  );
  const out = [
    JSON.stringify(showConfig(config)),
    JSON.stringify(config),
    Deno.inspect(config, { depth: 9 }),
    `${config.secrets.hashKey}`,
  ];
  const wrong = key(5) + "x";
  out.push(faultsOf({ PM_MASTER_KEY: wrong }).join());
  assert.ok(!JSON.stringify(showConfig(config)).includes("hunter2"));
  for (const text of out) {
    for (const secret of [key(1), key(2), key(3), wrong, "1,1,1"]) assert.ok(!text.includes(secret), text);
  }
  assert.equal(showConfig(config).masterKeyNext, "not set");
});

Deno.test("config: .env.example lists exactly the known variables, each with a line about it, and is valid", async () => {
  const lines = (await Deno.readTextFile(new URL("../../.env.example", import.meta.url))).split("\n");
  const env: Record<string, string> = {};
  lines.forEach((line, i) => {
    const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    if (!name) return;
    assert.match(lines[i - 1]!, /^# .{10,}/, name);
    env[name] = value!;
  });
  assert.deepEqual(Object.keys(env).sort(), [...VARIABLE_NAMES].sort());
  assert.deepEqual(faultsOf(env), []);
  for (const name of VARIABLE_NAMES) assert.ok(ENV_NAMES.includes(name));
});

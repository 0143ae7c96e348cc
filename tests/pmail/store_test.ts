/** The commands on the store itself, beside real services: copies, restores, a new master key, the doctor's findings. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { secretAad } from "../../actors/secrets.ts";
import { secretsPath } from "../../lib/edge/local_secrets.ts";
import { realIds, realRandom } from "../../lib/edge/ports.ts";
import { makeSealer } from "../../lib/edge/seal.ts";
import { type EndpointRow, keys } from "../../lib/keys.ts";
import { expecting, makeApi, makeEndpoint, makeTenant, TYPE } from "../e2e/support/api.ts";
import { eventually, makePlace, platformKey, spawn, startService } from "../e2e/support/process.ts";
import { startReceiver } from "../e2e/support/receiver.ts";
import { json, pmail } from "./support.ts";

const EVENTS = 40;

Deno.test("backup: a copy made beside a running service restores into a new file that delivers what was open", async () => {
  let well = false;
  await using receiver = startReceiver(() => well ? 204 : 503);
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target, PM_RETRY_SCALE: "0.02" });
  const copy = `${place.folder}/copy.db`, restored = `${place.folder}/new/pm.db`;
  const ids: string[] = [];
  {
    await using service = await startService(place.env);
    const api = makeApi(place.env.PM_PORT!, await platformKey(place.env));
    const tenant = await makeTenant(api, "acme");
    receiver.secrets.set("/in", (await makeEndpoint(api, tenant, receiver.url("/in"))).secret);
    for (let n = 0; n < EVENTS; n++) {
      const event = { type: TYPE, data: { n: String(n) } };
      ids.push((await expecting(201, api("POST", `/v1/tenants/${tenant}/owners/o/events`, event))).event.id);
    }
    const made = await json(place.env, ["backup", copy]);
    assert.ok(made.rows > EVENTS);
    assert.equal(made.secrets, secretsPath(copy), "its secrets go with it");
    await service.end("SIGKILL");
  }
  const again = await pmail(place.env, "backup", copy);
  assert.deepEqual([again.code, /exists already/.test(again.stderr)], [1, true], again.stderr);
  const over = await pmail(place.env, "restore", copy);
  assert.deepEqual(
    [over.code, /exists already/.test(over.stderr)],
    [1, true],
    "the store that is there stays",
  );

  const env = { ...place.env, PM_KV_PATH: restored };
  const back = await json(env, ["restore", copy]);
  assert.deepEqual([back.file, back.schema_version >= 1], [restored, true]);
  well = true;
  await using _service = await startService(env);
  const arrived = () => new Set(receiver.accepted("/in").map(({ id }) => id));
  await eventually("all of them arrive", () => ids.every((id) => arrived().has(id)));
  assert.deepEqual(
    receiver.accepted("/in").filter(({ error }) => error !== null),
    [],
    "under the secret they had",
  );
});

Deno.test("rotate_master: killed half-way beside a running service, run again, and the old key is needed no more", async () => {
  await using receiver = startReceiver();
  const next = Buffer.from(realRandom.bytes(32)).toString("base64");
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target });
  const during = { ...place.env, PM_MASTER_KEY_NEXT: next };
  const key = await platformKey(place.env), secrets = secretsPath(place.env.PM_KV_PATH!);
  const api = makeApi(place.env.PM_PORT!, key);
  let hook = "";
  const test = async () =>
    assert.equal((await expecting(200, api("POST", `/v1/webhooks/${hook}/test`))).status, "succeeded");
  assert.equal((await pmail(place.env, "secrets", "rotate-master")).code, 1, "there is no next key");
  {
    await using _service = await startService(place.env);
    hook = (await makeEndpoint(api, null, receiver.url("/in"))).id;
  }
  await manyEndpoints(
    place.env.PM_KV_PATH!,
    JSON.parse(await Deno.readTextFile(secrets)).PM_MASTER_KEY,
    1_500,
  );
  {
    await using _service = await startService(during);
    await using killed = spawn("pmail", during, ["secrets", "rotate-master"]);
    await eventually("it is under way", () => /endpoints, \d+ values/.test(killed.output));
    await killed.end("SIGKILL");
    await test();
    const done = await json(during, ["secrets", "rotate-master"]);
    assert.notEqual(done.resumedAfter, null);
    assert.deepEqual([done.endpoints, done.finished], [1_501, true]);
    await test();
  }
  const shape = JSON.parse(await Deno.readTextFile(secrets));
  await Deno.writeTextFile(secrets, JSON.stringify({ ...shape, PM_MASTER_KEY: next }));
  await using _service = await startService(place.env);
  await test();
});

/** Endpoints that other releases and tenants may have left: more than one commit takes. */
async function manyEndpoints(path: string, masterKey: string, count: number): Promise<void> {
  const kv = await Deno.openKv(path), ids = realIds();
  const sealer = makeSealer(new Uint8Array(Buffer.from(masterKey, "base64")), null, realRandom);
  for (let made = 0; made < count;) {
    const operation = kv.atomic();
    for (let i = 0; i < 100; i++, made++) {
      const id = ids.next("endpoint");
      const row: EndpointRow = {
        id,
        tenant_id: null,
        partner_id: null,
        url: "https://hooks.example.com/in",
        events: ["*"],
        identity_ids: null,
        description: null,
        enabled: false,
        disabled_reason: "manual",
        secret_enc: await sealer.seal(realRandom.bytes(32), secretAad("secret_enc", id)),
        prev_secret_enc: null,
        prev_secret_expires_at: null,
        created_at: 1,
        updated_at: 1,
        deleted_at: null,
      };
      operation.set(keys.endpoint(id), row);
    }
    await operation.commit();
  }
  kv.close();
}

Deno.test("doctor: each fault is found, with its mend, and makes it exit 1", async () => {
  await using place = await makePlace();
  const { PM_KV_PATH } = place.env;
  const found = async (env = place.env) => {
    const { findings } = await json(env, ["doctor", "--skip", "dns"], 1);
    const faults = findings.filter(({ status }: { status: string }) => status === "failed");
    for (const { mend } of faults) assert.ok(mend.length > 10);
    return faults.map((fault: { check: string; found: string }) => `${fault.check}: ${fault.found}`);
  };
  assert.match((await found())[0], /^store: .*pm\.db is not there/);
  await platformKey(place.env);
  assert.match((await found({ ...place.env, PM_PORT: "x" }))[0], /^configuration: PM_PORT must be/);
  await json(place.env, ["doctor", "--skip", "dns"]);

  const kv = await Deno.openKv(PM_KV_PATH), ids = realIds(), now = Date.now();
  kv.close();
  await manyEndpoints(PM_KV_PATH!, Buffer.from(new Uint8Array(32).fill(7)).toString("base64"), 100);
  const store = await Deno.openKv(PM_KV_PATH);
  for await (const { key, value } of store.list<EndpointRow>({ prefix: keys.endpoints() }, { limit: 99 })) {
    await store.set(key, { ...value, deleted_at: 1 });
  }
  const [row] = await Array.fromAsync(
    store.list<EndpointRow>({ prefix: keys.endpoints() }, { limit: 1, reverse: true }),
  );
  await store.set(row!.key, { ...row!.value, enabled: true, url: "https://10.0.0.1/in" });
  const job = { v: 1, kind: "fanout", events: [] } as const;
  await store.set(keys.job(0, now - 600_000, ids.ulid() as never), job);
  await store.set(keys.job(40, now + 600_000, ids.ulid() as never), job);
  await store.set(keys.deadLetter(ids.next("deadLetter")), {
    id: ids.next("deadLetter"),
    job,
    error: "open",
    created_at: 1,
  });
  await store.set(keys.heartbeat("x"), { at: now + 60_000, started_at: 1 });
  await store.set(keys.schema(), { version: 9_999 });
  store.close();
  const faults = await found();
  const wanted = [
    /^schema: the store has version 9999/,
    /^clock: an instance's sign of life is (59|60) s ahead/,
    /^jobs: the oldest due job has waited 6\d\d s/,
    /^job shards: jobs lie in shard 40, PM_JOB_SHARDS is 8/,
    /^dead letters: 1, the newest for open/,
    /^sealed values: secret_enc of whk_\w+ does not open: unknown_key/,
    /^endpoint: whk_\w+: its URL must name its host/,
  ];
  assert.equal(faults.length, wanted.length, faults.join("\n"));
  for (const [i, pattern] of wanted.entries()) assert.match(faults[i], pattern);

  await Deno.remove(secretsPath(PM_KV_PATH!));
  assert.match((await found())[0], /^secrets: .* is not there/);
  await assert.rejects(() => Deno.stat(secretsPath(PM_KV_PATH!)), "and it made none");
});

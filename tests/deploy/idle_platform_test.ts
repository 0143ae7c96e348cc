/**
 * A platform that stops instances when nobody asks for anything (Deno Deploy): no queue, no hot hand-off, a cron that may be all that
 * runs, SIGINT and 5 s, or no warning at all. What was acknowledged arrives.
 */
import assert from "node:assert/strict";
import { completeConfig, parseConfig } from "../../lib/edge/config.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { startServer } from "../../main.ts";
import { expecting, makeApi, makeEndpoint, makeTenant, TYPE } from "../e2e/support/api.ts";
import { eventually, makePlace, platformKey, startService } from "../e2e/support/process.ts";
import { startReceiver } from "../e2e/support/receiver.ts";
import { checkAttempts, jobRows } from "../e2e/support/store.ts";

const BARE = { PM_DOORBELL: "off", PM_HOT_HANDOFF: "off" };
const KILLS = 4;

Deno.test("idle platform: instances killed after each request, then one that only its cron keeps up: nothing is lost", async () => {
  let tries = 0;
  await using receiver = startReceiver(() => ++tries % 3 === 0 ? 503 : 204);
  await using place = await makePlace({
    ...BARE,
    PM_ALLOWED_TARGETS: receiver.target,
    PM_RETRY_SCALE: "0.002",
  });
  const call = makeApi(place.env.PM_PORT!, await platformKey(place.env));
  const acknowledged: string[] = [];
  let tenant = "";
  for (let kill = 0; kill < KILLS; kill++) {
    await using service = await startService(place.env);
    if (tenant === "") {
      tenant = await makeTenant(call, "acme");
      receiver.secrets.set("/in", (await makeEndpoint(call, tenant, receiver.url("/in"))).secret);
    }
    const events = Array.from({ length: 25 }, (_, n) => ({ type: TYPE, data: { n: `${kill}-${n}` } }));
    const { data } = await expecting(
      201,
      call("POST", `/v1/tenants/${tenant}/owners/o/events/batch`, { events }),
    );
    acknowledged.push(...data.map(({ event }: { event: { id: string } }) => event.id));
    await service.end("SIGKILL");
  }
  await using service = await startService(place.env);
  const arrived = () => new Set(receiver.accepted("/in").map(({ id }) => id));
  await eventually("everything arrives", () => acknowledged.every((id) => arrived().has(id)));
  await eventually("J2: no job row is left", async () => {
    using kv = await Deno.openKv(place.env.PM_KV_PATH);
    return await jobRows(kv) === 0;
  });
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);
  await checkAttempts(place.env.PM_KV_PATH!); // D1
  assert.deepEqual(receiver.arrivals.filter(({ error }) => error !== null), []);
});

Deno.test("idle platform: SIGINT with a receiver that hangs ends within the 5 s Deno Deploy gives, and the next instance goes on", async () => {
  const hanging = Promise.withResolvers<number>();
  let answers = false;
  await using receiver = startReceiver(() => answers ? 204 : hanging.promise);
  await using place = await makePlace({
    DENO_DEPLOYMENT_ID: "test",
    PM_HOST: "127.0.0.1",
    PM_DOORBELL: "off",
    PM_ALLOWED_TARGETS: receiver.target,
  });
  const call = makeApi(place.env.PM_PORT!, await platformKey(place.env));
  await using service = await startService(place.env);
  const tenant = await makeTenant(call, "acme");
  receiver.secrets.set("/in", (await makeEndpoint(call, tenant, receiver.url("/in"))).secret);
  const path = `/v1/tenants/${tenant}/owners/o/events`;
  const { event } = await expecting(201, call("POST", path, { type: TYPE, data: { n: "1" } }));
  const at = performance.now();
  assert.equal((await service.end("SIGINT")).code, 0, service.output);
  const ms = performance.now() - at;
  assert.ok(ms < 5_000, `${ms} ms`);
  answers = true;
  hanging.resolve(500);
  await using _next = await startService(place.env);
  await eventually("it arrives", () => receiver.accepted("/in").some(({ id }) => id === event.id));
});

Deno.test("idle platform: the run of the cron lasts until what it set going is recorded", async () => {
  const slow = Promise.withResolvers<number>();
  await using receiver = startReceiver(() => slow.promise);
  await using place = await makePlace();
  const parsed = parseConfig({
    ...BARE,
    DENO_DEPLOYMENT_ID: "test",
    PM_HOST: "127.0.0.1",
    PM_PORT: "0",
    PM_KV_PATH: place.env.PM_KV_PATH!,
    PM_ALLOWED_TARGETS: receiver.target,
    PM_LOG: "off",
  });
  const key = await platformKey(place.env);
  const server = await startServer(await completeConfig(parsed, realRandom));
  try {
    const call = makeApi(server.port, key);
    const { body: health } = await call("GET", "/health");
    assert.match(health.notes.join("\n"), /PM_HOT_HANDOFF is off/);
    const tenant = await makeTenant(call, "acme");
    await makeEndpoint(call, tenant, receiver.url("/in"));
    await expecting(
      201,
      call("POST", `/v1/tenants/${tenant}/owners/o/events`, { type: TYPE, data: { n: "1" } }),
    );
    await eventually("the attempt is under way", () => server.system.flow.busy);
    let over = false;
    const run = server.sweep().then(() => over = true);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.equal(over, false, "an attempt is under way");
    slow.resolve(204);
    await run;
    assert.equal(await jobRows(server.services.kv as Deno.Kv), 0);
  } finally {
    slow.resolve(204);
    await server.stop();
  }
});

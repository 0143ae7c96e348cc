/** The figures in the service as it runs: counted as deliveries are recorded, kept by a graceful stop. */
import assert from "node:assert/strict";
import { ALL_ENDPOINTS, readHours, totalOf } from "../../actors/stats.ts";
import { createKey } from "../../actors/key_admin.ts";
import { type Config, parseConfig } from "../../lib/edge/config.ts";
import { realIds, realNow, realRandom } from "../../lib/edge/ports.ts";
import { permission } from "../../lib/keys.ts";
import { startServer } from "../../main.ts";

Deno.test("console served: deliveries are in the figures after a graceful stop, tests are not", async () => {
  const dir = await Deno.makeTempDir();
  let answered = () => {};
  let waiting = 4; // a test and three events
  const all = new Promise<void>((resolve) => answered = resolve);
  const receiver = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    await request.body?.cancel();
    if (--waiting === 0) answered();
    return new Response(null, { status: 204 });
  });
  const secret = () => btoa(String.fromCharCode(...realRandom.bytes(32)));
  const config = parseConfig({
    PM_ENV: "test",
    PM_HOST: "127.0.0.1",
    PM_PORT: "0",
    PM_KV_PATH: `${dir}/pm.db`,
    PM_LOG: "off",
    PM_ALLOWED_TARGETS: `127.0.0.1:${receiver.addr.port}`,
    PM_MASTER_KEY: secret(),
    PM_KEY_PEPPER: secret(),
    PM_HASH_KEY: secret(),
  }) as Config;
  const server = await startServer(config);
  const { services } = server;
  const deps = { ...services, now: realNow, ids: realIds(), random: realRandom };
  const { secret: key } = await createKey(
    { ...deps, pepper: services.config.keyPepper, mode: "test" },
    { name: "test", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await server.fetch(new Request(`http://127.0.0.1:${server.port}${path}`, init));
    const answer = await response.json();
    assert.ok(response.ok, JSON.stringify(answer));
    return answer;
  };
  const { id: tenant } = await call("POST", "/v1/tenants", { slug: "acme", name: "Acme" });
  await call("PUT", `/v1/tenants/${tenant}/event-types/order.paid`, {
    schema: { type: "object" },
    example: {},
    description: "",
  });
  const url = `http://127.0.0.1:${receiver.addr.port}/`;
  const { id: webhook } = await call("POST", `/v1/tenants/${tenant}/webhooks`, { url, events: ["*"] });
  await call("POST", `/v1/webhooks/${webhook}/test`);
  const events = [1, 2, 3].map(() => ({ type: "order.paid", data: {} }));
  await call("POST", `/v1/tenants/${tenant}/owners/o/events/batch`, { events });
  await all;
  await server.stop();
  await receiver.shutdown();
  const kv = await Deno.openKv(`${dir}/pm.db`);
  for (const subject of [webhook, ALL_ENDPOINTS]) {
    const { succeeded, failed, took, latency } = totalOf(await readHours(kv, subject, realNow()));
    const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
    assert.deepEqual([succeeded, failed, sum(took), sum(latency)], [3, 0, 3, 3], subject);
  }
  kv.close();
  await Deno.remove(dir, { recursive: true });
});

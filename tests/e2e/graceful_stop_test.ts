/** SIGTERM ends the service with code 0 within 20 s, whoever dawdles, and what was taken is not lost. */
import assert from "node:assert/strict";
import { expecting, makeApi, makeEndpoint, makeTenant, TYPE } from "./support/api.ts";
import { eventually, makePlace, platformKey, startService } from "./support/process.ts";
import { startReceiver } from "./support/receiver.ts";

const STOP_DEADLINE_MS = 20_000;

/** A connection that has sent `text` and waits. */
async function connection(port: string, text: string): Promise<Deno.TcpConn> {
  const conn = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
  await conn.write(new TextEncoder().encode(text));
  return conn;
}

Deno.test("graceful stop: an idle connection holds nothing up", async () => {
  await using place = await makePlace();
  await using service = await startService(place.env);
  const port = place.env.PM_PORT!;
  using _silent = await connection(port, "");
  using idle = await connection(port, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
  await idle.read(new Uint8Array(4_096));
  const at = performance.now();
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);
  assert.ok(performance.now() - at < 1_500, `${performance.now() - at} ms`);
});

Deno.test("graceful stop: a body half sent and a receiver that never answers are given up in time", async () => {
  const hanging = Promise.withResolvers<number>();
  let answers = false;
  await using receiver = startReceiver(() => answers ? 204 : hanging.promise);
  using _answered = { [Symbol.dispose]: () => hanging.resolve(500) }; // else a failure here would hang the receiver's end
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target, PM_RETRY_SCALE: "0.01" });
  const key = await platformKey(place.env), port = place.env.PM_PORT!;
  const service = await startService(place.env);
  await using _first = service;
  const call = makeApi(port, key);
  const tenant = await makeTenant(call, "acme");
  receiver.secrets.set("/a", (await makeEndpoint(call, tenant, receiver.url("/a"))).secret);
  const path = `/v1/tenants/${tenant}/owners/o/events`;
  const { event } = await expecting(201, call("POST", path, { type: TYPE, data: { n: "1" } }));
  using _half = await connection(
    port,
    `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"type":`,
  );
  const at = performance.now();
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);
  const ms = performance.now() - at;
  assert.ok(ms < STOP_DEADLINE_MS, `${ms} ms`);
  answers = true;
  hanging.resolve(500);
  await using _second = await startService(place.env);
  await eventually(
    `${event.id} arrives after the next start`,
    () => receiver.accepted("/a").some(({ id }) => id === event.id),
  );
});

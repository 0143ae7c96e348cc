/** Two processes on one store file: both serve, both deliver, and each takes over what the other leaves behind. */
import assert from "node:assert/strict";
import { expecting, makeApi, makeEndpoint, makeTenant, TYPE } from "./support/api.ts";
import {
  eventually,
  freePort,
  makePlace,
  platformKey,
  type Process,
  startService,
} from "./support/process.ts";
import { checkAll, makeTenants, startPublishers, undelivered } from "./support/publishers.ts";
import { type Receiver, startReceiver } from "./support/receiver.ts";
import { checkAttempts, jobRows } from "./support/store.ts";

const DRAIN_MS = 30_000;

/** Two services on the same store, started at the same moment: one migrates and makes the secrets, the other waits. */
async function startTwo(receiver: Receiver) {
  const env = { PM_ALLOWED_TARGETS: receiver.target, PM_RETRY_SCALE: "0.01", PM_METRICS: "open" };
  const place = await makePlace(env);
  const envs = [place.env, { ...place.env, PM_PORT: String(freePort()) }];
  const services = await Promise.all(envs.map(startService));
  const [first, second] = services as [Process, Process];
  return {
    first,
    second,
    ports: envs.map(({ PM_PORT }) => PM_PORT!),
    env: place.env,
    async [Symbol.asyncDispose]() {
      for (const service of services) await service[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

/** Attempts a process has recorded since its start. */
async function attemptsOf(port: string): Promise<number> {
  const { text } = await makeApi(port, null)("GET", "/metrics");
  const counts = [...text.matchAll(/^webhook_attempts_total\{[^}]*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Faults of the pipeline that a process has told of. */
const faults = (service: Process) => service.output.split("\n").filter((line) => line.includes("fault"));

Deno.test("two processes: both append to the same owners and deliver; one is killed and nothing is lost", async () => {
  await using receiver = startReceiver();
  await using two = await startTwo(receiver);
  const call = makeApi(two.ports[0]!, await platformKey(two.env));
  const publishers = await startPublishers(call, await makeTenants(call, receiver), two.ports, 16);
  await eventually(
    "both have delivered",
    async () =>
      publishers.acknowledged.length > 300 &&
      (await Promise.all(two.ports.map(attemptsOf))).every((n) => n > 100),
  );
  const beside = await platformKey(two.env); // a third process writes to the same file
  for (const port of two.ports) await expecting(200, makeApi(port, beside)("GET", "/v1/tenants"));
  await two.second.end("SIGKILL");
  await publishers.stop();
  await eventually("everything arrives", () => undelivered(publishers, receiver).length === 0, DRAIN_MS)
    .catch(() => {});
  const tally = checkAll(publishers, receiver);
  {
    using kv = await Deno.openKv(two.env.PM_KV_PATH);
    await eventually("J2: no job row is left", async () => await jobRows(kv) === 0, DRAIN_MS);
  }
  assert.equal((await two.first.end("SIGTERM")).code, 0, two.first.output);
  const rows = await checkAttempts(two.env.PM_KV_PATH!);
  console.log({
    acknowledged: publishers.acknowledged.length,
    ...tally,
    rows,
    faults: [faults(two.first), faults(two.second)],
  });
});

Deno.test("D1: two processes look at the same due retries, and each attempt is made and recorded once", async () => {
  const EVENTS = 200;
  let open = false;
  await using receiver = startReceiver(() => open ? 204 : 503);
  await using two = await startTwo(receiver);
  const key = await platformKey(two.env);
  const calls = two.ports.map((port) => makeApi(port, key)), call = calls[0]!;
  const tenant = await makeTenant(call, "acme");
  receiver.secrets.set("/a", (await makeEndpoint(call, tenant, receiver.url("/a"))).secret);
  // Half of the events through each, so that both are awake when the retries fall due.
  for (let batch = 0; batch < EVENTS / 100; batch++) {
    const events = Array.from({ length: 100 }, (_, n) => ({ type: TYPE, data: { n: `${batch}-${n}` } }));
    await expecting(
      201,
      calls[batch % 2]!("POST", `/v1/tenants/${tenant}/owners/o/events/batch`, { events }),
    );
  }
  await eventually(
    "each event was refused",
    () => new Set(receiver.arrivals.map(({ id }) => id)).size === EVENTS,
  );
  open = true;
  await eventually(
    "each event is accepted",
    () => new Set(receiver.accepted().map(({ id }) => id)).size === EVENTS,
    DRAIN_MS,
  );
  await eventually("all is recorded", async () => {
    using kv = await Deno.openKv(two.env.PM_KV_PATH);
    return await jobRows(kv) === 0;
  });
  assert.equal(receiver.accepted().length, EVENTS, "no event was accepted twice");
  assert.equal(await checkAttempts(two.env.PM_KV_PATH!), receiver.arrivals.length);
  assert.deepEqual([faults(two.first), faults(two.second)], [[], []]);
});

/** The commands that call the API, against a real service: what an operator does in a day. */
import assert from "node:assert/strict";
import { expecting, makeApi, makeTenant, TYPE } from "../e2e/support/api.ts";
import { eventually, makePlace, platformKey, spawn, startService } from "../e2e/support/process.ts";
import { startReceiver } from "../e2e/support/receiver.ts";
import { json, pmail } from "./support.ts";

Deno.test("pmail: endpoints, events, keys and dead letters over the API", async (t) => {
  let status = 204;
  await using receiver = startReceiver(() => status);
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target });
  await using _service = await startService(place.env);
  const key = await platformKey(place.env);
  const env = { ...place.env, PM_URL: `http://127.0.0.1:${place.env.PM_PORT}`, PM_API_KEY: key };
  const api = makeApi(place.env.PM_PORT!, key);
  const tenant = await makeTenant(api, "acme");
  const append = async (n: string): Promise<string> =>
    (await expecting(201, api("POST", `/v1/tenants/${tenant}/owners/o/events`, { type: TYPE, data: { n } })))
      .event.id;
  let hook = "", event = "";

  await t.step("webhooks create shows the secret once, list never", async () => {
    const made = await json(env, [
      "webhooks",
      "create",
      "--tenant",
      tenant,
      "--url",
      receiver.url("/in"),
      "--v1a",
    ]);
    assert.match(made.secret, /^whsec_/);
    assert.deepEqual([made.events, made.signature_versions], [["*"], ["v1", "v1a"]]);
    receiver.secrets.set("/in", made.secret);
    hook = made.id;
    const listed = await pmail(env, "webhooks", "list", "--tenant", tenant);
    assert.match(listed.stdout, new RegExp(`${hook} +enabled +0 +\\* +http`));
    assert.ok(!listed.stdout.includes("whsec_"));
  });

  await t.step("webhooks test answers the attempt, and exits 1 when it does not succeed", async () => {
    assert.equal((await json(env, ["webhooks", "test", hook])).status, "succeeded");
    assert.equal(receiver.accepted("/in").at(-1)!.error, null);
    status = 500;
    assert.equal((await json(env, ["webhooks", "test", hook], 1)).error, "status_5xx");
    status = 204;
  });

  await t.step("events list, show and trace tell of an event what there is", async () => {
    event = await append("1");
    await eventually("it is delivered", () => receiver.accepted("/in").some(({ id }) => id === event));
    const { data } = await json(env, ["events", "list", "--tenant", tenant, "--type", TYPE, "--since", "1h"]);
    assert.deepEqual(data.map((row: { id: string }) => row.id), [event]);
    const sent = receiver.accepted("/in").find(({ id }) => id === event)!;
    assert.equal((await pmail(env, "events", "show", event)).stdout.trimEnd(), sent.body, "the very bytes");
    const trace = await pmail(env, "events", "trace", event);
    assert.match(trace.stdout, new RegExp(`${hook} \\(tenant\\) succeeded\n {2}#1 .* succeeded: 204`));
  });

  await t.step("events tail prints new events as they come", async () => {
    await using tail = spawn("pmail", env, [
      ...["events", "tail", "--tenant", tenant, "--type", TYPE, "--since", "1h", "--count", "3", "--json"],
    ]);
    await eventually("it has begun", () => tail.output.includes(event));
    const more = [await append("2"), await append("3")];
    assert.equal((await tail.status).code, 0);
    const lines = (await tail.stdout).trim().split("\n").map((line) => JSON.parse(line).id);
    assert.deepEqual(lines, [event, ...more], "each once, oldest first");
  });

  await t.step("webhooks replay delivers again, by ids and by a window", async () => {
    const times = () => receiver.accepted("/in").filter(({ id }) => id === event).length;
    assert.deepEqual(await json(env, ["webhooks", "replay", hook, "--event", event]), { queued: 1 });
    await eventually("again", () => times() === 2);
    assert.equal(
      (await json(env, ["webhooks", "replay", hook, "--since", "1h", "--status", "succeeded"])).queued,
      3,
    );
    await eventually("and again", () => times() === 3);
    assert.equal((await pmail(env, "webhooks", "replay", hook)).code, 2, "neither");
    assert.equal(
      (await pmail(env, "webhooks", "replay", hook, "--event", event, "--since", "1h")).code,
      2,
      "both",
    );
  });

  await t.step("webhooks rotate makes a new secret", async () => {
    const rotated = await json(env, ["webhooks", "rotate", hook, "--overlap-hours", "1"]);
    assert.notEqual(rotated.secret, receiver.secrets.get("/in"));
    receiver.secrets.set("/in", rotated.secret);
    assert.equal((await json(env, ["webhooks", "test", hook])).status, "succeeded");
    assert.equal(receiver.accepted("/in").at(-1)!.error, null);
  });

  await t.step("keys create --api, list, rotate and revoke", async () => {
    const made = await json(env, [
      ...["keys", "create", "--api", "--level", "tenant", "--tenant", tenant],
      ...["--permissions", "events:read", "--name", "reader", "--expires-in-days", "3"],
    ]);
    const reader = { ...env, PM_API_KEY: made.secret };
    assert.equal((await json(reader, ["events", "list", "--tenant", tenant, "--type", TYPE])).data.length, 3);
    const denied = await pmail(reader, "webhooks", "test", hook);
    assert.deepEqual([denied.code, /webhooks:manage/.test(denied.stderr)], [1, true], denied.stderr);
    const next = await json(env, ["keys", "rotate", made.id, "--overlap-hours", "0"]);
    assert.equal((await pmail(reader, "events", "list", "--tenant", tenant)).code, 1, "the old one is over");
    await json(env, ["keys", "revoke", next.id]);
    const listed = await pmail(env, "keys", "list", "--tenant", tenant);
    assert.equal(listed.stdout.match(/ revoked /g)?.length, 2, listed.stdout);
  });

  await t.step("dlq list and redrive", async () => {
    assert.deepEqual(await json(env, ["dlq", "list"]), { data: [] });
    const gone = await pmail(env, "dlq", "redrive", "dlq_01K0000000000000000000000A", "--json");
    assert.equal(gone.code, 1);
    assert.equal(JSON.parse(gone.stderr).error.code, "dead_letter_not_found");
  });

  await t.step("doctor beside it: well, and what is not is named with its mend", async () => {
    const before = receiver.arrivals.length;
    const well = await json(env, ["doctor"]);
    assert.equal(receiver.arrivals.length, before, "it posts nothing");
    assert.deepEqual([well.failed, well.findings.at(-1).check], [0, "endpoint"], JSON.stringify(well));
    assert.match(
      well.findings.find(({ check }: { check: string }) => check === "store").found,
      /1 services run/,
    );
  });

  await t.step("a service that cannot be reached, and a key that is none", async () => {
    const away = await pmail({ ...env, PM_URL: "http://127.0.0.1:1" }, "webhooks", "list");
    assert.deepEqual(
      [away.code, /Cannot reach http:\/\/127.0.0.1:1/.test(away.stderr)],
      [1, true],
      away.stderr,
    );
    const wrong = await pmail({ ...env, PM_API_KEY: "pmk_test_nonsense" }, "webhooks", "list");
    assert.deepEqual([wrong.code, wrong.stderr.includes("nonsense")], [1, false], "and it is not repeated");
    const none = await pmail({ ...env, PM_API_KEY: "" }, "webhooks", "list");
    assert.deepEqual([none.code, /PM_API_KEY is not set/.test(none.stderr)], [1, true]);
  });
});

/**
 * The service as an outsider meets it: a process with the permissions of its own task, a port, a store in a folder, the
 * routes and answers of reference §3, and a receiver that verifies with the `standardwebhooks` package.
 */
import assert from "node:assert/strict";
import { expecting, makeApi, makeEndpoint, makeTenant, TYPE } from "./support/api.ts";
import { eventually, makePlace, platformKey, run, startService } from "./support/process.ts";
import { startReceiver } from "./support/receiver.ts";

const DEADLINE_MS = 10_000;

Deno.test("black_box: a key made before the first start opens it, one made beside it opens it at once", async () => {
  await using place = await makePlace();
  const before = await platformKey(place.env);
  await using _service = await startService(place.env);
  const beside = await platformKey(place.env);
  for (const key of [before, beside]) {
    assert.match(key, /^pmk_test_/);
    await expecting(200, makeApi(place.env.PM_PORT!, key)("GET", "/v1/tenants"));
  }
});

Deno.test("black_box: pmail prints one JSON object alone, and exits 2 for a wrong command line", async () => {
  await using place = await makePlace();
  const { code, stdout, stderr } = await run("pmail", place.env, [
    "keys",
    "create",
    "--level",
    "platform",
    "--json",
  ]);
  assert.equal(code, 0);
  assert.equal(stderr, "");
  const row = JSON.parse(stdout);
  assert.equal(row.level, "platform");
  assert.equal(row.hash, undefined);
  assert.deepEqual([row.created_at, row.expires_at], [new Date(row.created_at).toISOString(), null]);
  for (
    const args of [["keys", "create", "--level", "king"], ["keys", "burn"], [
      "keys",
      "create",
      "--colour",
      "red",
    ]]
  ) {
    assert.equal((await run("pmail", place.env, args)).code, 2, args.join(" "));
  }
});

Deno.test("black_box: tenant, endpoint, type, append, and the delivery verifies and is logged", async () => {
  await using receiver = startReceiver();
  await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target });
  const key = await platformKey(place.env);
  await using service = await startService(place.env);
  const call = makeApi(place.env.PM_PORT!, key);

  const tenant = await makeTenant(call, "acme");
  assert.match(tenant, /^ten_[0-9A-HJKMNP-TV-Z]{26}$/);
  const endpoint = await makeEndpoint(call, tenant, receiver.url("/acme"));
  assert.match(endpoint.secret, /^whsec_/);
  receiver.secrets.set("/acme", endpoint.secret);
  const shown = await expecting(200, call("GET", `/v1/webhooks/${endpoint.id}`));
  assert.equal(shown.secret, undefined);
  assert.equal(shown.enabled, true);

  const events = `/v1/tenants/${tenant}/owners/order-1/events`;
  const first = await expecting(201, call("POST", events, { type: TYPE, data: { n: "1" } }));
  // Text that a JSON parser would change has to arrive as it was written.
  const raw = `{"type":"${TYPE}","data":{"n":"2","big":12345678901234567890,"e":1.50}}`;
  const second = await expecting(201, call("POST", events, raw));
  assert.deepEqual([first.event.sequence, second.event.sequence], [1, 2]);

  for (const { event } of [first, second]) {
    const arrival = await eventually(
      `${event.id} arrives`,
      () => receiver.accepted("/acme").find(({ id }) => id === event.id),
      DEADLINE_MS,
    );
    assert.equal(arrival.error, null);
    assert.equal(arrival.headers["content-type"], "application/json");
    assert.match(arrival.headers["user-agent"]!, /^PylotaMail\//);
    const stored = await call("GET", `/v1/events/${event.id}`);
    assert.equal(stored.status, 200);
    assert.equal(arrival.body, stored.text, "O3: the envelope as stored");
    const { data, ...head } = JSON.parse(arrival.body);
    assert.deepEqual(Object.keys(head), [
      "id",
      "type",
      "api_version",
      "occurred_at",
      "tenant_id",
      "identity_id",
      "sequence",
    ]);
    assert.equal(head.tenant_id, tenant);
    assert.ok(data.n);
  }
  assert.ok(receiver.arrivals.some(({ body }) => body.includes('"big":12345678901234567890,"e":1.50')));

  const log = await eventually("both attempts are in the log", async () => {
    const { data } = await expecting(200, call("GET", `/v1/webhooks/${endpoint.id}/deliveries`));
    return data.length === 2 && data;
  }, DEADLINE_MS);
  for (const row of log) {
    assert.deepEqual([row.status, row.http_status, row.attempt, row.error], ["succeeded", 204, 1, null]);
  }

  const tested = await expecting(200, call("POST", `/v1/webhooks/${endpoint.id}/test`));
  assert.equal(tested.status, "succeeded");
  const replayed = await call("POST", `/v1/webhooks/${endpoint.id}/replay`, { event_ids: [first.event.id] });
  assert.deepEqual([replayed.status, replayed.body], [202, { queued: 1 }]);
  await eventually(
    "the replay arrives with the same webhook-id",
    () => receiver.accepted("/acme").filter(({ id }) => id === first.event.id).length === 2,
    DEADLINE_MS,
  );
  assert.ok(receiver.arrivals.every(({ error }) => error === null));

  await expecting(204, call("DELETE", `/v1/webhooks/${endpoint.id}`));
  await expecting(404, call("GET", `/v1/webhooks/${endpoint.id}`));
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);
});

Deno.test("black_box: open routes, and what is refused with 400, 401, 404, 405, 413 and 415", async () => {
  await using place = await makePlace();
  const key = await platformKey(place.env);
  await using _service = await startService(place.env);
  const open = makeApi(place.env.PM_PORT!, null), call = makeApi(place.env.PM_PORT!, key);

  assert.equal((await expecting(200, open("GET", "/health"))).status, "ok");
  assert.equal((await expecting(200, open("GET", "/ready"))).status, "ready");
  assert.match((await expecting(200, open("GET", "/openapi.json"))).openapi, /^3\.1/);
  assert.equal((await call("GET", "/metrics")).status, 200);

  const tenant = await makeTenant(call, "acme");
  const url = `/v1/tenants/${tenant}/webhooks`;
  const cases: [string, number, string, ReturnType<typeof call>][] = [
    ["no key", 401, "unauthenticated", open("GET", "/v1/tenants")],
    ["a wrong key", 401, "unauthenticated", makeApi(place.env.PM_PORT!, "pmk_test_no")("GET", "/v1/tenants")],
    ["metrics without a key", 401, "unauthenticated", open("GET", "/metrics")],
    ["no JSON", 400, "invalid_request", call("POST", "/v1/tenants", "{")],
    ["an unknown field", 400, "invalid_request", call("POST", "/v1/tenants", { slug: "a", name: "A", x: 1 })],
    [
      "an address inside",
      400,
      "invalid_request",
      call("POST", url, { url: "https://10.0.0.1/", events: ["*"] }),
    ],
    [
      "a target not admitted",
      400,
      "invalid_request",
      call("POST", url, { url: "http://127.0.0.1:9/", events: ["*"] }),
    ],
    [
      "an unknown type",
      400,
      "invalid_request",
      call("POST", url, { url: "https://a.dev/", events: ["message.recieved"] }),
    ],
    ["a wrong id", 400, "invalid_request", call("GET", "/v1/webhooks/evt_1")],
    ["no such tenant", 404, "tenant_not_found", call("GET", "/v1/tenants/ten_01ARZ3NDEKTSV4RRFFQ69G5FAV")],
    ["no such route", 404, "route_not_found", call("GET", "/v1/nothing")],
    ["a wrong method", 405, "method_not_allowed", call("DELETE", "/v1/tenants")],
    ["over 1 MiB", 413, "payload_too_large", call("POST", "/v1/tenants", new Uint8Array(1_048_577).fill(32))],
    [
      "XML",
      415,
      "unsupported_media_type",
      call("POST", "/v1/tenants", "<a/>", { "content-type": "text/xml" }),
    ],
  ];
  for (const [what, status, code, answer] of cases) {
    const { status: got, body, headers, text } = await answer;
    assert.equal(got, status, `${what}: ${text}`);
    assert.equal(body.error.code, code, what);
    assert.equal(body.error.request_id, headers.get("request-id"), what);
    assert.ok(body.error.message.startsWith("Cannot "), `${what}: ${body.error.message}`);
  }
});

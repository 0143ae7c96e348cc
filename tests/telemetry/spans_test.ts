/** OpenTelemetry, end to end: the service with Deno's exporter on, and a collector on 127.0.0.1 that keeps what comes. */
import assert from "node:assert/strict";
import type { EventKey } from "../../lib/ids.ts";
import { makeSpans, traceIdOf } from "../../lib/edge/spans.ts";
import { expecting, type Json, makeApi, makeEndpoint, makeTenant, TYPE } from "../e2e/support/api.ts";
import { eventually, makePlace, platformKey, startService } from "../e2e/support/process.ts";
import { startReceiver } from "../e2e/support/receiver.ts";

const CANARY = "canary-4711";

Deno.test("spans: without an exporter there are none to call", () => {
  assert.equal(makeSpans(), null);
});

Deno.test("spans: the trace id of an event is its ULID in hexadecimal", () => {
  assert.equal(traceIdOf("01ARZ3NDEKTSV4RRFFQ69G5FAV" as EventKey), "01563e3ab5d3d6764c61efb99302bd5b");
  assert.equal(traceIdOf("00000000000000000000000001" as EventKey), "0".repeat(31) + "1");
});

/** Takes OTLP as JSON. */
function startCollector() {
  const spans: Json[] = [], texts: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const text = await request.text();
    texts.push(text);
    if (new URL(request.url).pathname === "/v1/traces") {
      for (const { scopeSpans } of JSON.parse(text).resourceSpans) {
        spans.push(...scopeSpans.flatMap((scope: Json) => scope.spans));
      }
    }
    return Response.json({});
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    spans,
    texts,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("spans: append, fan-out, each attempt and its record are one trace, joined by the event's id", async () => {
  await using collector = startCollector();
  let tries = 0;
  await using receiver = startReceiver(() => ++tries === 1 ? 503 : 204);
  await using place = await makePlace({
    PM_ALLOWED_TARGETS: receiver.target,
    PM_RETRY_SCALE: "0.002",
    OTEL_DENO: "true",
    OTEL_DENO_CONSOLE: "ignore",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "100",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
  });
  const key = await platformKey(place.env);
  await using service = await startService(place.env);
  const call = makeApi(place.env.PM_PORT!, key);
  const tenant = await makeTenant(call, "acme");
  receiver.secrets.set("/in", (await makeEndpoint(call, tenant, receiver.url("/in"))).secret);
  const path = `/v1/tenants/${tenant}/owners/o/events`;
  const { event } = await expecting(201, call("POST", path, { type: TYPE, data: { n: CANARY } }));
  const mine = () =>
    collector.spans.filter((span) =>
      span.traceId === traceIdOf(event.id.slice(4)) && span.name.startsWith("webhook.")
    );
  await eventually(
    "both attempts are told of",
    () => mine().filter((s) => s.name === "webhook.record").length === 2,
  );
  await eventually(
    "metrics come, too",
    () => collector.texts.some((text) => text.includes("webhook_attempts_total")),
  );
  assert.equal((await service.end("SIGTERM")).code, 0, service.output);

  const names = mine().map((span) => span.name).sort();
  assert.deepEqual(names, [
    "webhook.append",
    "webhook.deliver",
    "webhook.deliver",
    "webhook.fan_out",
    "webhook.record",
    "webhook.record",
  ]);
  const attribute = (span: Json, name: string) =>
    Object.values(span.attributes.find((a: Json) => a.key === name)?.value ?? {})[0];
  const delivers = mine().filter((span) => span.name === "webhook.deliver");
  delivers.sort((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)));
  assert.deepEqual(delivers.map((span) => attribute(span, "http.response.status_code")), [503, 204]);
  assert.deepEqual(delivers.map((span) => attribute(span, "webhook.attempt")), [1, 2]);
  assert.deepEqual(delivers.map((span) => span.status.message), ["status_5xx", ""]);
  for (const span of mine()) {
    assert.equal(attribute(span, "event.id"), event.id);
    assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
    assert.equal(span.parentSpanId, traceIdOf(event.id.slice(4)).slice(16));
  }
  // P1: nothing of the payload, no secret and no key in whatever was exported.
  const secret = receiver.secrets.get("/in")!;
  for (const text of collector.texts) {
    for (const word of [CANARY, secret, key]) assert.ok(!text.includes(word));
  }
});

/** The server around the rows: routing, bodies, errors, headers (reference §1). */
import assert from "node:assert/strict";
import * as z from "zod";
import type { TimerId, Timers } from "../../lib/edge/ports.ts";
import { ApiError } from "../../lib/errors.ts";
import { route } from "../../routes/table.ts";
import { type Api, refused, sameBytes, withApi } from "./support.ts";

const echo = route({
  method: "POST",
  path: "/v1/echo",
  permission: "events:write",
  scope: "platform",
  summary: "Echo.",
  body: z.strictObject({ n: z.number(), deep: z.strictObject({ s: z.string() }).optional() }),
  raw: ["message/rfc822"],
  status: 200,
  handler: ({ body, bodyText, rawBody }) => ({ body: { body, bodyText, raw: rawBody?.length ?? null } }),
});
const broken = route({
  method: "GET",
  path: "/v1/broken",
  permission: "events:write",
  scope: "platform",
  summary: "Throws.",
  status: 200,
  handler: () => {
    throw new Error("secret detail of the inside");
  },
});
const options = { extra: [echo, broken] };

Deno.test(
  "every answer carries Request-Id, also the ones no route gives",
  withApi(async (api) => {
    for (const [method, path] of [["GET", "/health"], ["GET", "/nowhere"], ["DELETE", "/health"]] as const) {
      const answer = await api.call(method, path);
      assert.match(answer.headers.get("request-id") ?? "", /^req_[0-9A-Z]{26}$/);
    }
    refused(await api.call("GET", "/nowhere"), 404, "route_not_found");
    refused(await api.call("GET", "/v1/webhooks/"), 404, "route_not_found");
  }),
);

Deno.test(
  "a known path with another method is 405 with Allow; OPTIONS tells the methods and HEAD is GET without a body",
  withApi(async (api) => {
    const answer = await api.call("PUT", "/v1/webhooks");
    refused(answer, 405, "method_not_allowed");
    assert.equal(answer.headers.get("allow"), "POST, GET, HEAD, OPTIONS");
    const asked = await api.call("OPTIONS", "/v1/webhooks");
    assert.deepEqual([asked.status, asked.headers.get("allow")], [204, "POST, GET, HEAD, OPTIONS"]);
    const head = await api.call("HEAD", "/health");
    assert.deepEqual([head.status, head.text], [200, ""]);
  }),
);

Deno.test(
  "an absolute-form target or a foreign host is routed by its path alone",
  withApi(async (api) => {
    const response = await api.fetch(new Request("http://evil.test:99/health"));
    assert.equal(response.status, 200);
    await response.body?.cancel();
  }),
);

Deno.test(
  "bodies: each refused body names its rule",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const json = { "content-type": "application/json" };
    const table: [
      reason: string,
      body: string,
      headers: Record<string, string>,
      number,
      string,
      string[]?,
    ][] = [
      ["not JSON", "{", json, 400, "invalid_request", ["body"]],
      ["the same key twice", '{"n":1,"n":2}', json, 400, "invalid_request", ["body"]],
      ["nested too deep", '{"n":' + "[".repeat(100) + "]".repeat(100) + "}", json, 400, "invalid_request", [
        "body",
      ]],
      ["an array", "[]", json, 400, "invalid_request", ["body"]],
      ["unknown field", '{"n":1,"m":1}', json, 400, "invalid_request", ["m"]],
      ["unknown field below", '{"n":1,"deep":{"s":"","t":1}}', json, 400, "invalid_request", ["deep.t"]],
      ["__proto__ is a field like another", '{"n":1,"__proto__":{}}', json, 400, "invalid_request", [
        "__proto__",
      ]],
      ["two faults", '{"n":"1","deep":{}}', json, 400, "invalid_request", ["n", "deep.s"]],
      ["absent", "", {}, 400, "invalid_request", ["n"]],
      ["form", "n=1", { "content-type": "application/x-www-form-urlencoded" }, 415, "unsupported_media_type"],
      ["no type", '{"n":1}', { "content-type": "" }, 415, "unsupported_media_type"],
      [
        "other charset",
        '{"n":1}',
        { "content-type": "application/json; charset=utf-16" },
        415,
        "unsupported_media_type",
      ],
      ["compressed", '{"n":1}', { ...json, "content-encoding": "gzip" }, 415, "unsupported_media_type"],
    ];
    for (const [reason, body, headers, status, code, paths] of table) {
      const answer = await api.call("POST", "/v1/echo", { key, headers, ...(body === "" ? {} : { body }) });
      try {
        refused(answer, status, code, paths);
      } catch (error) {
        throw new Error(reason, { cause: error });
      }
    }
    const invalid = new Request("http://x/v1/echo", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    });
    const response = await api.fetch(invalid);
    assert.equal(response.status, 400);
    await response.body?.cancel();
  }, options),
);

Deno.test(
  "bodies: the source text and raw media types reach the handler",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const text = '{ "n": 1.50 }';
    const answer = await api.call("POST", "/v1/echo", {
      key,
      body: text,
      headers: { "content-type": "Application/JSON; charset=UTF-8" },
    });
    assert.deepEqual(answer.body, { body: { n: 1.5 }, bodyText: text, raw: null });
    assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8");
    const raw = await api.call("POST", "/v1/echo", {
      key,
      body: "From: a\r\n\r\nb",
      headers: { "content-type": "message/rfc822" },
    });
    assert.deepEqual(raw.body, { bodyText: "", raw: 12 });
  }, options),
);

/** A body that counts what is pulled from it, without a declared length. */
function streamed(api: Api, key: string, chunks: number, chunkBytes: number) {
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (pulled++ === chunks) controller.close();
      else controller.enqueue(new Uint8Array(chunkBytes).fill(0x20));
    },
  }, { highWaterMark: 0 });
  const request = new Request("http://x/v1/echo", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body,
  });
  return { answered: api.fetch(request), pulled: () => pulled };
}

Deno.test(
  "bodies: 413 while streaming, before the rest is read; a declared length is refused unread",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const { answered, pulled } = streamed(api, key, 1_000, 65_536);
    const response = await answered;
    assert.equal(response.status, 413);
    assert.equal((await response.json()).error.code, "payload_too_large");
    assert.ok(pulled() <= 18, `${pulled()} chunks were read`);
    const declared = await api.call("POST", "/v1/echo", {
      key,
      body: "{}",
      headers: { "content-length": "1048577" },
    });
    refused(declared, 413, "payload_too_large");
  }, options),
);

Deno.test("bodies: a client that stops sending is refused at the deadline", () => {
  const waiting: (() => void)[] = [];
  const timers: Timers = {
    after: (_, run) => waiting.push(run) as unknown as TimerId,
    cancel: () => {},
  };
  return withApi(async (api) => {
    const key = (await api.key()).secret;
    const stalled = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array>({ pull: () => stalled.resolve() }, { highWaterMark: 0 });
    const answered = api.fetch(
      new Request("http://x/v1/echo", {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body,
      }),
    );
    await stalled.promise;
    waiting.forEach((run) => run());
    const response = await answered;
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, /did not arrive within 30 s/);
  }, { ...options, timers })();
});

Deno.test(
  "a fault of ours is 500 internal_error without a word of the inside, in the answer and in the log",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const answer = await api.call("GET", "/v1/broken", { key });
    refused(answer, 500, "internal_error");
    assert.equal(answer.body.error.retryable, true);
    assert.ok(!answer.text.includes("inside") && !api.lines.join().includes("inside"));
    assert.ok(api.lines.some((line) => line.includes('"http_failed"') && line.includes("http_test.ts")));
  }, options),
);

Deno.test(
  "parameters: unknown, repeated and malformed ones are refused with their name",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const table: [path: string, refusedPath: string][] = [
      ["/v1/webhooks?limit=0", "limit"],
      ["/v1/webhooks?limit=101", "limit"],
      ["/v1/webhooks?limit=1e1", "limit"],
      ["/v1/webhooks?limit=", "limit"],
      ["/v1/webhooks?colour=red", "colour"],
      ["/v1/webhooks?__proto__=1", "__proto__"],
      ["/v1/webhooks?limit=1&limit=2", "limit"],
      ["/v1/webhooks/evt_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y", "webhook_id"],
      ["/v1/webhooks/whk_01jd8t4y0z3m5q7r9s1v2w4x6y", "webhook_id"],
      ["/v1/webhooks/whk_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y%0A", "webhook_id"],
    ];
    for (const [path, name] of table) {
      refused(await api.call("GET", path, { key }), 400, "invalid_request", [name]);
    }
  }),
);

Deno.test(
  "errors from a handler are mapped with their headers",
  withApi(async (api) => {
    const key = (await api.key()).secret;
    const answer = await api.call("GET", "/v1/teapot", { key });
    refused(answer, 503, "unavailable");
    assert.equal(answer.headers.get("retry-after"), "9");
    assert.equal(sameBytes(answer), sameBytes(await api.call("GET", "/v1/teapot", { key })));
  }, {
    extra: [route({
      method: "GET",
      path: "/v1/teapot",
      permission: "events:read",
      scope: "any",
      summary: "Not now.",
      status: 200,
      handler: () => {
        throw new ApiError("unavailable", "Cannot.", "Wait.", undefined, { "retry-after": "9" });
      },
    })],
  }),
);

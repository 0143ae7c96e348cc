/**
 * Every row of the route table under requests that are almost right and requests that are anything: never a 500, every refusal in
 * the shape of reference §1, every answer in the shape its row declares, and a refused request leaves the store as it was, row by
 * row and version by version: an `Idempotency-Key` it claimed is free again, rates are in memory.
 */
import fc from "fast-check";
import assert from "node:assert/strict";
import { type Api, type Json, withApi } from "../routes/support.ts";
import { type Fixture, fixture } from "./fixture.ts";
import { resolved } from "./from_schema.ts";
import { type Asked, nameOf, requests } from "./requests.ts";
import { runs } from "./runs.ts";
import { allRoutes } from "../../routes/all.ts";

const ROWS = allRoutes({ metricsOpen: false } as Parameters<typeof allRoutes>[0]);
/** Reference §1, and the codes of this implementation's own states. */
const CODES: Record<number, RegExp> = {
  400: /^invalid_request$/,
  401: /^(unauthenticated|key_revoked|key_expired)$/,
  403: /^(permission_denied|scope_denied|key_scope_exceeded)$/,
  404: /^[a-z_]+_not_found$/,
  405: /^method_not_allowed$/,
  409: /^(idempotency_conflict|request_in_progress|invalid_state|already_exists)$/,
  410: /^cursor_expired$/,
  413: /^payload_too_large$/,
  415: /^unsupported_media_type$/,
  422: /^webhook_limit_reached$/,
  429: /^rate_limited$/,
};

async function send(api: Api, world: Fixture, asked: Asked): Promise<Response> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(asked.headers)) {
    // A header holds Latin-1: what cannot be sent is not asked.
    if (/^[\x20-\x7e\xa1-\xff]*$/.test(value)) headers.set(name, value);
  }
  if (asked.key !== null) headers.set("authorization", `Bearer ${world.keys[asked.key]}`);
  const bodied = !["GET", "HEAD"].includes(asked.method) && asked.body !== null;
  const body = typeof asked.body === "string" ? resolved(asked.body, world.known) : asked.body;
  const url = `http://api.pylota.dev${resolved(asked.path, world.known)}`;
  return await api.fetch(new Request(url, { method: asked.method, headers, ...(bodied ? { body } : {}) }));
}

/** Every row by its version: a commit gives what it writes one of its own, so rows of the same versions are the same bytes. */
async function dump(kv: Deno.Kv): Promise<string> {
  let rows = "";
  for await (const { key, versionstamp } of kv.list({ prefix: [] }, { batchSize: 500 })) {
    rows += `${JSON.stringify(key)} ${versionstamp}\n`;
  }
  return rows;
}

function wellFormedError(response: Response, text: string): void {
  const { status, headers } = response;
  assert.ok(CODES[status] !== undefined, `no ${status} is foreseen: ${text}`);
  assert.equal(headers.get("content-type"), "application/json; charset=utf-8");
  const { error, ...rest } = JSON.parse(text) as Json;
  assert.deepEqual(rest, {});
  assert.deepEqual(Object.keys(error), ["code", "message", "retryable", "fix", "request_id", "details"]);
  assert.match(error.code, CODES[status]!);
  assert.equal(error.retryable, ["request_in_progress", "rate_limited"].includes(error.code));
  for (const name of ["message", "fix"]) assert.ok(typeof error[name] === "string" && error[name] !== "");
  assert.equal(error.request_id, headers.get("request-id"));
  if (error.code === "invalid_request") {
    assert.ok(error.details.errors.length > 0, text);
    for (const { path, message, ...more } of error.details.errors) {
      assert.ok(
        typeof path === "string" && path !== "" && typeof message === "string" && message !== "",
        text,
      );
      assert.deepEqual(more, {});
    }
  }
  if (status === 405) assert.ok(headers.get("allow"));
  if (status === 429) assert.match(headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  if (error.code === "permission_denied") assert.equal(typeof error.details.required, "string");
}

/** Names the request a failure is about, before the long list of all that came before it. */
const told = (asked: Asked, done: Promise<void>): Promise<void> =>
  done.catch((error) => {
    const brief = JSON.stringify(asked).slice(0, 600);
    throw new Error(`${brief}: ${error.message}`, { cause: error });
  });

const seen = new Map<string, Set<number>>();

async function ask(api: Api, world: Fixture, asked: Asked): Promise<void> {
  api.now += 250; // stays below 600 requests a minute
  const before = await dump(api.kv), logged = api.lines.length;
  const response = await send(api, world, asked);
  const text = await response.text();
  await api.services.committer.idle();
  assert.ok(response.status < 500, `${response.status}: ${api.lines.slice(logged).join("\n")}`);
  assert.match(response.headers.get("request-id") ?? "", /^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  seen.set(asked.route, (seen.get(asked.route) ?? new Set()).add(response.status));
  if (response.status >= 400 && asked.method !== "HEAD") wellFormedError(response, text);
  if (response.status >= 400 || ["GET", "HEAD", "OPTIONS"].includes(asked.method)) {
    assert.equal(await dump(api.kv), before, `${response.status} changed the store`);
  }
  const row = ROWS.find((row) => nameOf(row) === asked.route)!, declared = row.response;
  const fits = asked.method === row.method && response.status < 300 && declared !== null &&
    !response.headers.has("idempotent-replayed");
  if (fits) {
    const result = declared.safeParse(JSON.parse(text));
    assert.ok(result.success, `${text.slice(0, 2_000)}\n${result.error}`);
  }
}

Deno.test("every route under almost any request: no 500, one error shape, and what is refused changes nothing", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.noBias(fc.array(requests(ROWS), { minLength: 1, maxLength: 100, size: "max" })),
      async (asked) => {
        await withApi(async (api) => {
          const world = await fixture(api);
          for (const one of asked) await told(one, ask(api, world, one));
        })();
      },
    ),
    // Not made smaller: the message names the request, and a list of what came before it is slow and large to shrink.
    {
      ...runs(20),
      endOnFailure: true,
      interruptAfterTimeLimit: Deno.env.has("FUZZ_RUNS") ? 3_600_000 : 15_000,
    },
  );
  if (Deno.env.has("FUZZ_TABLE")) {
    for (const [name, statuses] of [...seen].sort()) console.log(name, [...statuses].sort().join(" "));
  }
});

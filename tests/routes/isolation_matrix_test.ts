/**
 * The isolation matrix, from the route table: every row × every kind of caller (reference §2). What is out of reach is what is missing,
 * byte for byte and read for read, and whoever is refused changes nothing.
 */
import assert from "node:assert/strict";
import type { Route } from "../../routes/table.ts";
import { watch, type WatchedKv } from "../support/watched_kv.ts";
import { type Answer, type Api, sameBytes, URL_OK, withApi } from "./support.ts";
import { type Good, goodRequest, nameOf, type Things, things, type Who } from "./things.ts";

type Expected =
  | "answers"
  | "unauthenticated"
  | "key_revoked"
  | "key_expired"
  | "scope_denied"
  | "not_found"
  | "own";

const STATUS: Partial<Record<Expected, number>> = {
  unauthenticated: 401,
  key_revoked: 401,
  key_expired: 401,
  scope_denied: 403,
  not_found: 404,
};

/** Who reaches a thing of the tenant, by level; nobody else does. */
const OF_TENANT: Who[] = ["platform", "own partner", "own tenant"];
const IDENTITIES: Who[] = ["own identity", "other identity"];

/** Rows whose scope is the caller's own, but whose good request names something in its query or body. */
const NAMED: Record<string, { id: string; reached: Who[]; denied?: Who[] }> = {
  "POST /v1/keys": { id: "identity_id", reached: [...OF_TENANT, "own identity"] },
  "GET /v1/keys": { id: "tenant_id", reached: [...OF_TENANT, ...IDENTITIES] },
  "GET /v1/audit-events": { id: "tenant_id", reached: OF_TENANT, denied: IDENTITIES },
};

function expected(row: Route, who: Who): Expected {
  if (row.permission === "public") return "answers";
  if (who === "no key") return "unauthenticated";
  if (who === "revoked key") return "key_revoked";
  if (who === "expired key") return "key_expired";
  const { scope } = row, named = NAMED[nameOf(row)];
  if (scope === "any") return "answers";
  if (scope === "platform") return who === "platform" ? "answers" : "scope_denied";
  if (named?.denied?.includes(who)) return "scope_denied";
  const to = (reached: Who[]): Expected => reached.includes(who) ? "answers" : "not_found";
  switch (scope.by) {
    case "caller":
      return named === undefined ? "own" : to(named.reached);
    case "partner":
      return to(["platform", "own partner"]);
    case "tenant":
    case "endpoint":
      if (!IDENTITIES.includes(who)) return to(OF_TENANT);
      return scope.identityKeys ? "answers" : "scope_denied";
    case "owner":
      return to(scope.thing === "identity" ? [...OF_TENANT, "own identity"] : OF_TENANT);
    case "event":
      return to([...OF_TENANT, "own identity"]);
    case "key":
      return to(OF_TENANT);
  }
}

/** The parameter whose thing decides, or null when the row names none. */
function namedBy(row: Route): string | null {
  if (typeof row.scope === "object" && "param" in row.scope) return row.scope.param;
  return NAMED[nameOf(row)]?.id ?? null;
}

const missingOf = (id: string): string => `${id.slice(0, 4)}7ZZZZZZZZZZZZZZZZZZZZZZZZZ`;

/** Every row of the store with its version: equal before and after means that nothing was written. */
async function rowsOf(api: Api): Promise<string> {
  const rows: string[] = [];
  for await (const { key, versionstamp } of api.kv.list({ prefix: [] }, { batchSize: 500 })) {
    rows.push(`${JSON.stringify(key)} ${versionstamp}`);
  }
  return rows.join("\n");
}

/** Collects which families were read, in order. */
async function reads(kv: WatchedKv, run: () => Promise<Answer>): Promise<{ answer: Answer; read: string[] }> {
  const read: string[] = [];
  kv.beforeRead = (key) => void read.push(String(key[0]));
  const answer = await run();
  kv.beforeRead = null;
  return { answer, read };
}

const ask = (api: Api, { method, path, body }: Good, key: string | undefined): Promise<Answer> =>
  api.call(method, path, { ...(key === undefined ? {} : { key }), ...(body === undefined ? {} : { body }) });

/** The same request for a thing that is not there. */
function forMissing(good: Good, id: string): Good {
  return JSON.parse(JSON.stringify(good).replaceAll(id, missingOf(id)));
}

async function refuses(
  api: Api,
  kv: WatchedKv,
  row: Route,
  t: Things,
  who: Who,
  want: Expected,
): Promise<void> {
  const what = `${nameOf(row)} for ${who}`, good = goodRequest(row, t.ids), key = t.keys[who];
  await ask(api, { method: "GET", path: "/v1/keys" }, key); // so that the key itself is not read again below
  const before = await rowsOf(api);
  const out = await reads(kv, () => ask(api, good, key));
  assert.equal(out.answer.status, STATUS[want], `${what}: ${out.answer.text}`);
  if (want !== "not_found") assert.equal(out.answer.body.error.code, want, what);
  for (const id of Object.values(t.ids)) assert.ok(!out.answer.text.includes(id), `${what} tells of ${id}`);
  if (want === "not_found") {
    const missing = forMissing(good, t.ids[namedBy(row)!]!);
    const none = await reads(kv, () => ask(api, missing, key));
    assert.equal(sameBytes(out.answer), sameBytes(none.answer), what);
    assert.deepEqual(headersOf(out.answer), headersOf(none.answer), what);
    assert.deepEqual(out.read, none.read, `${what}: how long it takes would tell`);
  }
  assert.equal(await rowsOf(api), before, `${what} has an effect`);
}

const headersOf = ({ headers }: Answer) =>
  [...headers].filter(([name]) => name !== "request-id" && name !== "ratelimit-remaining");

const EVERYBODY: Who[] = [
  "no key",
  "revoked key",
  "expired key",
  "own identity",
  "other identity",
  "own tenant",
  "sibling tenant",
  "other partner's tenant",
  "nobody's tenant",
  "own partner",
  "other partner",
  "platform",
];

/** An API whose store tells what is read of it. */
function watched(body: (api: Api, kv: WatchedKv) => Promise<void>): () => Promise<void> {
  let kv!: WatchedKv;
  return withApi((api) => body(api, kv), { wrap: (store) => kv = watch(store) });
}

Deno.test(
  "isolation matrix: whoever does not reach a thing is told it is missing, byte for byte and read for read, and changes nothing",
  watched(async (api, kv) => {
    const t = await things(api);
    let refusals = 0;
    for (const row of api.rows) {
      for (const who of EVERYBODY) {
        const want = expected(row, who);
        if (want === "answers" || want === "own") continue;
        api.now += 60_000; // room in every rate limit
        await refuses(api, kv, row, t, who, want);
        refusals++;
      }
    }
    assert.ok(refusals > 500, `${refusals} refusals`);
  }),
);

Deno.test("isolation matrix: whoever reaches a thing gets an answer, and of what others hold none tells", async (step) => {
  const allowed = await rowsAndCallers();
  for (const [row, callers] of allowed) {
    await step.step(row, async () => {
      for (const who of callers) {
        await withApi(async (api) => {
          const t = await things(api), found = api.rows.find((other) => nameOf(other) === row)!;
          const good = goodRequest(found, t.ids);
          if (good.first !== undefined) await api.call(...good.first, { key: t.keys.platform! });
          const answer = await ask(api, good, t.keys[who]);
          if (expected(found, who) === "answers") {
            assert.ok(answer.status < 300, `${who}: ${answer.text}`);
            return;
          }
          assert.ok(
            answer.status < 300 || answer.body.error.code === "scope_denied",
            `${who}: ${answer.text}`,
          );
          if (["platform", "own partner", "own tenant", ...IDENTITIES].includes(who)) return;
          const mine = who === "sibling tenant" ? [t.ids.partner_id] : [];
          for (const id of Object.values(t.ids)) {
            assert.ok(mine.includes(id) || !answer.text.includes(`"${id}"`), `${who} is told of ${id}`);
          }
        })();
      }
    });
  }
});

async function rowsAndCallers(): Promise<[row: string, callers: Who[]][]> {
  const found: [string, Who[]][] = [];
  await withApi((api) => {
    for (const row of api.rows) {
      const callers = EVERYBODY.filter((who) => ["answers", "own"].includes(expected(row, who)));
      found.push([nameOf(row), row.permission === "public" ? ["no key"] : callers]);
    }
    return Promise.resolve();
  })();
  return found;
}

Deno.test(
  "isolation: of an event out of reach no part of its payload is read, by its id or by replay",
  watched(async (api, kv) => {
    const t = await things(api), { tenant_id } = t.ids, key = t.keys["own tenant"]!;
    const big = await api.call("POST", `/v1/tenants/${tenant_id}/owners/o/events`, {
      key,
      body: { type: "order.paid", data: "x".repeat(200_000) },
    });
    assert.equal(big.status, 201, big.text);
    const event: string = big.body.event.id, stranger = t.keys["other partner"]!;
    const made = await api.call("POST", "/v1/webhooks", {
      key: stranger,
      body: { url: URL_OK, events: ["*"] },
    });
    const asked = async (who: string, id: string) => {
      await api.call("GET", "/v1/keys", { key: who });
      const byId = await reads(kv, () => api.call("GET", `/v1/events/${id}`, { key: who }));
      const traced = await reads(kv, () => api.call("GET", `/v1/events/${id}/trace`, { key: who }));
      const path = `/v1/webhooks/${made.body.id}/replay`;
      const replayed = await reads(kv, () => api.call("POST", path, { key: who, body: { event_ids: [id] } }));
      return { byId, traced, replayed };
    };
    assert.ok((await asked(key, event)).byId.read.includes("ev_chunk"));
    await asked(stranger, missingOf(event)); // what is cached then is cached for both
    const out = await asked(stranger, event), none = await asked(stranger, missingOf(event));
    for (const name of ["byId", "traced", "replayed"] as const) {
      assert.deepEqual(out[name].read, none[name].read, name);
      assert.equal(sameBytes(out[name].answer), sameBytes(none[name].answer), name);
    }
  }),
);

Deno.test(
  "isolation: a slug, a name or an id that another holds answers as if nobody did",
  withApi(async (api) => {
    const t = await things(api), stranger = t.keys["other partner's tenant"]!;
    const { body: { id } } = await api.call("GET", "/v1/tenants", { key: t.keys["other partner"]! })
      .then(({ body }) => ({ body: body.data[0] }));
    const free: [what: string, key: string, method: string, path: string, body: unknown][] = [
      ["a slug", t.keys["other partner"]!, "POST", "/v1/tenants", { slug: "pp-one", name: "n" }],
      ["a domain", stranger, "POST", `/v1/tenants/${id}/domains`, { name: "acme.dev" }],
      ["an address", stranger, "POST", `/v1/tenants/${id}/identities`, {
        display_name: "n",
        address: "ada@acme.dev",
      }],
      ["a type", stranger, "PUT", `/v1/tenants/${id}/event-types/order.paid`, { schema: true, example: 1 }],
      ["an event id", stranger, "POST", `/v1/tenants/${id}/owners/cart-1/events`, {
        type: "order.paid",
        data: 1,
        event_id: t.ids.event_id,
      }],
    ];
    for (const [what, key, method, path, body] of free) {
      const answer = await api.call(method, path, { key, body });
      assert.equal(answer.status, 201, `${what}: ${answer.text}`);
    }
  }),
);

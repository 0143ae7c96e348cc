/** Lists, cursors, the delivery log and events (reference §1, §3). */
import assert from "node:assert/strict";
import { indexWrites } from "../../actors/event_index.ts";
import { eventWrites, type StoredEvent } from "../../actors/event_store.ts";
import { writeAll } from "../../lib/edge/commit_batch.ts";
import { type EndpointId, type EventKey, firstDelivery, type TenantId, ulidFrom } from "../../lib/ids.ts";
import { type AttemptRow, keys } from "../../lib/keys.ts";
import { CURSOR_TTL_MS, MAX_FIRST_LAG_MS, SECOND_MS } from "../../lib/limits.ts";
import { changeEvent } from "../support/rows.ts";
import { type Api, type Json, refused, URL_OK, withApi, world } from "./support.ts";

/** Appends events to custom owners a and b in turn, a second apart. */
async function appended(api: Api, tenant: TenantId, count: number) {
  const made = [];
  for (let i = 0; i < count; i++) {
    api.now += SECOND_MS;
    const owner = { kind: "custom" as const, tenant, id: i % 2 ? "b" : "a" };
    const type = i % 3 ? "order.placed" : "order.paid";
    made.push(await api.services.owners.run(owner, (tx) => tx.append({ type, data: { n: i } })));
  }
  return made;
}

async function attempts(api: Api, endpoint: EndpointId, count: number): Promise<AttemptRow[]> {
  const rows: AttemptRow[] = [];
  for (let i = 0; i < count; i++) {
    api.now += SECOND_MS;
    const event = api.services.ids.ulid() as EventKey;
    const row: AttemptRow = {
      id: api.services.ids.next("delivery"),
      event,
      event_id: `evt_${event}` as AttemptRow["event_id"],
      event_type: i % 2 ? "message.sent" : "message.received",
      tenant_id: null,
      attempt: 1,
      first_attempt: 1,
      status: (["succeeded", "failed", "dead"] as const)[i % 3]!,
      http_status: 200,
      error: null,
      duration_ms: 5,
      next_attempt_at: null,
      created_at: api.now,
    };
    await api.kv.set(keys.attempt(endpoint, row.id), row);
    rows.push(row);
  }
  return rows;
}

function eventOf(api: Api, tenant: TenantId, n: number): StoredEvent {
  const key = api.services.ids.ulid() as EventKey, id = `evt_${key}` as StoredEvent["id"];
  const scope = { tenant, partner: null, identity: null, about: null };
  const body = new TextEncoder().encode("{}");
  return {
    key,
    id,
    type: "order.paid",
    ...scope,
    kind: "custom",
    owner: `o${n % 5}`,
    seq: n + 1,
    at: api.now,
    body,
  };
}

const endpoint = async (api: Api, key: string): Promise<EndpointId> =>
  (await api.call("POST", "/v1/webhooks", { key, body: { url: URL_OK, events: ["*"] } })).body.id;

/** Follows cursors to the end. */
async function all(api: Api, key: string, path: string): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let cursor: string | null = null, pages = 0;
  do {
    const glue = path.includes("?") ? "&" : "?";
    const answer = await api.call("GET", cursor === null ? path : `${path}${glue}cursor=${cursor}`, { key });
    assert.equal(answer.status, 200, answer.text);
    ids.push(...answer.body.data.map((row: Json) => row.id));
    cursor = answer.body.next_cursor;
    pages++;
  } while (cursor !== null);
  return { ids, pages };
}

Deno.test(
  "lists: newest first, 25 by default, every row once whatever the page size",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const id = await endpoint(api, key);
    const newest = (await attempts(api, id, 60)).map((row) => row.id).reverse();
    const path = `/v1/webhooks/${id}/deliveries`;
    const first = await api.call("GET", path, { key });
    assert.equal(first.body.data.length, 25);
    assert.match(first.body.next_cursor, /^c_/);
    for (const limit of [1, 7, 20, 30, 59, 60, 61, 100]) {
      const { ids, pages } = await all(api, key, `${path}?limit=${limit}`);
      assert.deepEqual(ids, newest, `limit ${limit}`);
      assert.equal(pages, Math.ceil(60 / limit), `limit ${limit}`);
    }
  }),
);

Deno.test(
  "lists: a row inserted or deleted between pages never shifts the others",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const id = await endpoint(api, key);
    const rows = await attempts(api, id, 6);
    const path = `/v1/webhooks/${id}/deliveries?limit=2`;
    const one = await api.call("GET", path, { key });
    await attempts(api, id, 1);
    await api.kv.delete(keys.attempt(id, rows[4]!.id)); // the very row the cursor names
    const two = await api.call("GET", `${path}&cursor=${one.body.next_cursor}`, { key });
    assert.deepEqual(two.body.data.map((row: Json) => row.id), [rows[3]!.id, rows[2]!.id]);
  }),
);

Deno.test(
  "cursors: bound to operation, filters and key; 24 hours; anything else is 400 with path cursor",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const id = await endpoint(api, key), other = await endpoint(api, key);
    await attempts(api, id, 5);
    await attempts(api, other, 5);
    const path = (of: string, query = "") => `/v1/webhooks/${of}/deliveries?limit=2${query}`;
    const { body } = await api.call("GET", path(id, "&event_type=message.sent&before=2027-01-01T00:00:00Z"), {
      key,
    });
    const plain = (await api.call("GET", path(id), { key })).body.next_cursor as string;
    assert.equal(body.next_cursor, null);
    const middle = plain.length >> 1;
    const flipped = plain.slice(0, middle) + (plain[middle] === "A" ? "B" : "A") + plain.slice(middle + 1);
    const table: [reason: string, path: string, cursor: string, key: string][] = [
      ["another endpoint", path(other), plain, key],
      ["another filter", path(id, "&status=failed"), plain, key],
      ["another key", path(id), plain, (await api.key()).secret],
      ["another operation", "/v1/webhooks?limit=2", plain, key],
      ["changed", path(id), flipped, key],
      ["cut", path(id), plain.slice(0, -1), key],
      ["padded", path(id), `${plain}A`, key],
      ["no cursor at all", path(id), "hello", key],
      ["empty", path(id), "", key],
    ];
    for (const [reason, at, cursor, by] of table) {
      const answer = await api.call("GET", `${at}&cursor=${encodeURIComponent(cursor)}`, { key: by });
      assert.equal(answer.status, 400, reason);
      refused(answer, 400, "invalid_request", ["cursor"]);
    }
    const limit = await api.call("GET", `/v1/webhooks/${id}/deliveries?limit=3&cursor=${plain}`, { key });
    assert.equal(limit.status, 200, "the page size may change");
    api.now += CURSOR_TTL_MS - 1;
    assert.equal((await api.call("GET", `${path(id)}&cursor=${plain}`, { key })).status, 200);
    api.now += 1;
    refused(await api.call("GET", `${path(id)}&cursor=${plain}`, { key }), 410, "cursor_expired");
  }),
);

Deno.test(
  "deliveries: filters, and the log of a deleted endpoint stays readable",
  withApi(async (api) => {
    const { platform: key } = await world(api);
    const id = await endpoint(api, key);
    const rows = await attempts(api, id, 12);
    await api.call("DELETE", `/v1/webhooks/${id}`, { key });
    // A first attempt's id is of its event, which may have been up to 3 s before.
    const early = firstDelivery(
      id,
      ulidFrom(rows[4]!.created_at - MAX_FIRST_LAG_MS, new Uint8Array(10)) as EventKey,
    );
    await api.kv.delete(keys.attempt(id, rows[4]!.id));
    rows[4] = { ...rows[4]!, id: early };
    await api.kv.set(keys.attempt(id, early), rows[4]);
    const time = (i: number) => encodeURIComponent(new Date(rows[i]!.created_at).toISOString());
    const table: [query: string, wanted: (row: AttemptRow, i: number) => boolean][] = [
      ["status=dead", (row) => row.status === "dead"],
      ["event_type=message.sent", (row) => row.event_type === "message.sent"],
      [`event_id=${rows[3]!.event_id}`, (_, i) => i === 3],
      [`after=${time(4)}`, (_, i) => i >= 4],
      [`before=${time(4)}`, (_, i) => i < 4],
      [
        `after=${time(2)}&before=${time(9)}&status=failed`,
        (row, i) => i >= 2 && i < 9 && row.status === "failed",
      ],
      [`after=${time(9)}&before=${time(2)}`, () => false],
    ];
    for (const [query, wanted] of table) {
      const { ids } = await all(api, key, `/v1/webhooks/${id}/deliveries?limit=2&${query}`);
      assert.deepEqual(ids, rows.filter(wanted).map((row) => row.id).sort().reverse(), query);
    }
    for (
      const [query, path] of [["status=ok", "status"], ["after=yesterday", "after"], [
        "event_id=x",
        "event_id",
      ]]
    ) {
      refused(
        await api.call("GET", `/v1/webhooks/${id}/deliveries?${query}`, { key }),
        400,
        "invalid_request",
        [path!],
      );
    }
    refused(await api.call("POST", `/v1/webhooks/${id}/test`, { key }), 404, "webhook_not_found");
    const replay = { event_ids: [rows[0]!.event_id] };
    refused(
      await api.call("POST", `/v1/webhooks/${id}/replay`, { key, body: replay }),
      404,
      "webhook_not_found",
    );
  }),
);

Deno.test(
  "events: blocks of several commits that overlap, and rows of releases before, are paged through as one list",
  withApi(async (api) => {
    const { lone, loneKey: key } = await world(api);
    const commits: StoredEvent[][] = [[], [], []], made: StoredEvent[] = [];
    for (let i = 0; i < 60; i++) {
      if (i % 20 === 0) api.now += SECOND_MS;
      const event = eventOf(api, lone, i);
      made.push(event);
      if (i % 4 < 3) commits[i % 4]!.push(event);
      else {
        const { type, identity, owner } = event;
        await api.kv.set(keys.eventOfTenant(lone, event.key), { type, identity, owner });
      }
    }
    for (const events of commits) {
      const commit = api.kv.atomic();
      writeAll(commit, indexWrites(events));
      await commit.commit();
    }
    for (const event of made) {
      const commit = api.kv.atomic();
      writeAll(commit, eventWrites(event));
      await commit.commit();
    }
    const newest = made.map(({ id }) => id).reverse();
    for (const limit of [1, 7, 59, 60, 61]) {
      const { ids, pages } = await all(api, key, `/v1/tenants/${lone}/events?limit=${limit}`);
      assert.deepEqual(ids, newest, `limit ${limit}`);
      assert.equal(pages, Math.ceil(60 / limit), `limit ${limit}`);
    }
    const some = await all(api, key, `/v1/tenants/${lone}/events?limit=2&owner_id=o3`);
    assert.deepEqual(some.ids, made.filter(({ owner }) => owner === "o3").map(({ id }) => id).reverse());
  }),
);

Deno.test(
  "events: the list filters by type, owner, identity and half-open time; newest first",
  withApi(async (api) => {
    const { lone, loneKey: key } = await world(api);
    const made = await appended(api, lone, 12);
    const time = (i: number) => encodeURIComponent(new Date(made[i]!.occurred_at).toISOString());
    const identity = `idn_${made[0]!.key}`;
    const table: [query: string, wanted: (i: number) => boolean][] = [
      ["", () => true],
      ["type=order.paid", (i) => i % 3 === 0],
      ["owner_id=b", (i) => i % 2 === 1],
      [`identity_id=${identity}`, () => false],
      [`since=${time(3)}&until=${time(7)}`, (i) => i >= 3 && i < 7],
      [`since=${time(7)}&until=${time(3)}`, () => false],
    ];
    for (const [query, wanted] of table) {
      const { ids } = await all(api, key, `/v1/tenants/${lone}/events?limit=2${query && `&${query}`}`);
      assert.deepEqual(ids, made.filter((_, i) => wanted(i)).map((event) => event.id).reverse(), query);
    }
    const [row] = (await api.call("GET", `/v1/tenants/${lone}/events?limit=1`, { key })).body.data;
    assert.deepEqual(row, {
      id: made[11]!.id,
      type: "order.placed",
      tenant_id: lone,
      identity_id: null,
      owner_kind: "custom",
      owner_id: "b",
      sequence: 6,
      occurred_at: "2026-10-09T12:00:12.000Z",
      erased: false,
    });
  }),
);

Deno.test(
  "events: one is answered with the stored bytes, by its own or its deterministic id; an erased one is not there",
  withApi(async (api) => {
    const { lone, loneKey, p } = await world(api);
    const [event] = await appended(api, lone, 1);
    const answer = await api.call("GET", `/v1/events/${event!.id}`, { key: loneKey });
    assert.equal(answer.status, 200);
    assert.equal(
      answer.text,
      `{"id":"${
        event!.id
      }","type":"order.paid","api_version":"2026-10-01","occurred_at":"2026-10-09T12:00:01.000Z",` +
        `"tenant_id":"${lone}","identity_id":null,"sequence":1,"data":{"n":0}}`,
    );
    assert.equal(answer.headers.get("content-type"), "application/json; charset=utf-8");

    const event_id = api.services.ids.next("event");
    const append = (tenant: TenantId) =>
      api.services.owners.run(
        { kind: "custom", tenant, id: "x" },
        (tx) => tx.append({ type: "order.paid", data: { of: tenant }, event_id }),
      );
    await append(p.tenant);
    refused(await api.call("GET", `/v1/events/${event_id}`, { key: loneKey }), 404, "event_not_found");
    await append(lone);
    const mine = await api.call("GET", `/v1/events/${event_id}`, { key: loneKey });
    assert.deepEqual([mine.body.id, mine.body.data.of], [event_id, lone], "the same id in two tenants");
    const theirs = await api.call("GET", `/v1/events/${event_id}`, { key: p.tenantKey });
    assert.equal(theirs.body.data.of, p.tenant);

    await changeEvent(api.kv, event!.key, { body: null });
    refused(await api.call("GET", `/v1/events/${event!.id}`, { key: loneKey }), 404, "event_not_found");
    const list = await api.call("GET", `/v1/tenants/${lone}/events`, { key: loneKey });
    assert.deepEqual(list.body.data.map((shown: Json) => shown.erased), [false, true]);
  }),
);

Deno.test(
  "events: an identity-level key sees its identity's alone",
  withApi(async (api) => {
    const { p, identity, identityKey } = await world(api);
    const append = (id: typeof identity) =>
      api.services.owners.run(
        { kind: "mailbox", tenant: p.tenant, id },
        (tx) => tx.append({ type: "identity.resumed", data: { identity_id: id }, identity: id }),
      );
    const other = await append(await api.identity(p.tenant)), own = await append(identity);
    const list = await api.call("GET", `/v1/tenants/${p.tenant}/events`, { key: identityKey });
    assert.deepEqual(list.body.data.map((row: Json) => row.id), [own.id]);
    assert.equal((await api.call("GET", `/v1/events/${own.id}`, { key: identityKey })).status, 200);
    refused(await api.call("GET", `/v1/events/${other.id}`, { key: identityKey }), 404, "event_not_found");
  }),
);

Deno.test(
  "replay: by ids and by window, refused inputs, and a redelivery is a replay of one",
  withApi(async (api) => {
    const { lone, loneKey: key } = await world(api);
    const made = await appended(api, lone, 3);
    const { body: { id } } = await api.call("POST", `/v1/tenants/${lone}/webhooks`, {
      key,
      body: { url: URL_OK, events: ["*"] },
    });
    const replay = (body: Json) => api.call("POST", `/v1/webhooks/${id}/replay`, { key, body });
    const since = "2026-10-09T12:00:02Z", until = "2026-10-09T12:00:09Z";
    const byIds = await replay({ event_ids: [made[0]!.id, made[2]!.id] });
    assert.deepEqual([byIds.status, byIds.body], [202, { queued: 2 }], byIds.text);
    assert.deepEqual((await replay({ since, until })).body, { queued: 2 });
    assert.deepEqual((await replay({ since, until, status: "dead" })).body, { queued: 0 });
    const table: [body: Json, paths: string[]][] = [
      [{}, ["event_ids"]],
      [{ event_ids: [] }, ["event_ids"]],
      [{ event_ids: Array(101).fill(made[0]!.id) }, ["event_ids"]],
      [{ event_ids: ["x"] }, ["event_ids.0"]],
      [{ since }, ["until"]],
      [{ since: until, until: since }, ["until"]],
      [{ since, until, status: "ok" }, ["status"]],
      [{ since, until, all: true }, ["all"]],
    ];
    for (const [body, paths] of table) refused(await replay(body), 400, "invalid_request", paths);
    const [row] = await attempts(api, id, 1);
    await api.kv.set(keys.attempt(id, row!.id), { ...row, event: made[1]!.key, event_id: made[1]!.id });
    const again = await api.call("POST", `/v1/webhooks/${id}/deliveries/${row!.id}/redeliver`, { key });
    assert.deepEqual([again.status, again.body], [202, { queued: 1 }], again.text);
    const audit = await api.call("GET", "/v1/audit-events?action=webhook.replayed", { key });
    assert.ok(audit.body.data.length >= 2 && audit.body.data.every((entry: Json) => entry.subject === id));
  }),
);

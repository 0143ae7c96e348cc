/** What pages hold and forms do. */
import assert from "node:assert/strict";
import { keys } from "../../lib/keys.ts";
import { consoleRows, openRows } from "../../routes/console/rows.ts";
import { type Api, URL_OK, withApi, world } from "../routes/support.ts";
import { seed, type Seeded } from "./seed.ts";
import { signedIn, Visitor } from "./support.ts";

const CSP =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/** Every page, as somebody who sees everything. */
function addresses({ acme, endpoints, attempts, events }: Seeded): string[] {
  const values: Record<string, string> = {
    scope: acme.id,
    webhook_id: endpoints.healthy.id,
    delivery_id: attempts[0]!.id,
    event_id: events[0]!.id,
    name: "message.received",
    run: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  };
  return consoleRows.filter(({ method }) => method === "GET")
    .map(({ path }) => path.replace(/\{([a-z_]+)\}/g, (_, name) => values[name]!));
}

Deno.test(
  "console pages: every answer carries the policy, and no page has a script, a style or an address from outside",
  withApi(async (api) => {
    const seeded = await seed(api.services), { healthy } = seeded.endpoints;
    await api.kv.set(keys.replayRun(healthy.id, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), {
      endpoint: healthy.id,
      events: [],
      created_at: api.now,
    });
    const visitor = await signedIn(api, (await api.key()).secret);
    const pages = [
      ...addresses(seeded),
      "/console/sign-in",
      "/console/portal?token=x",
      "/console/nothing",
      "/console/platform",
      `/console/${seeded.partner}`,
    ];
    assert.ok(openRows.length >= 5);
    let seen = 0;
    for (const path of pages) {
      const { status, headers, text } = await visitor.get(path);
      assert.equal(headers.get("content-security-policy"), CSP, path);
      assert.equal(headers.get("cache-control"), "no-store", path);
      assert.equal(headers.get("x-content-type-options"), "nosniff", path);
      assert.match(headers.get("request-id")!, /^req_/, path);
      if (status === 303 || path.includes("/find")) continue;
      assert.equal(status, path === "/console/nothing" ? 404 : 200, path);
      assert.ok(text.startsWith('<!doctype html><html lang="en">'), path);
      assert.equal(/<script(?! src="\/console\/)/.test(text), false, path);
      assert.equal(/<style|\sstyle="|\son[a-z]+="|javascript:/.test(text), false, path);
      for (const [, address] of text.matchAll(/\s(?:src|href|action)="([^"]*)"/g)) {
        assert.match(address!, /^(\/console|#|\?)/, `${path} leads to ${address}`);
      }
      for (const [form] of text.matchAll(/<form method="post".*?<\/form>/gs)) {
        assert.match(form, /name="csrf" value="[\w-]{43}"/, path);
      }
      seen++;
    }
    assert.ok(seen >= 20, String(seen));
  }),
);

Deno.test(
  "console pages: assets are served with their type, answer 304 to what is known, and nothing else is there",
  withApi(async (api) => {
    const visitor = new Visitor(api);
    for (
      const [file, type] of [["console.css", "text/css"], ["console.js", "text/javascript"], [
        "icon.svg",
        "image/svg+xml",
      ]]
    ) {
      const got = await visitor.get(`/console/assets/${file}`);
      assert.equal(got.status, 200);
      assert.ok(got.headers.get("content-type")!.startsWith(type!));
      const again = await visitor.get(`/console/assets/${file}`, {
        "if-none-match": got.headers.get("etag")!,
      });
      assert.equal(again.status, 304);
    }
    for (const file of ["console.map", "..", "%2e%2e%2fconsole.tsx"]) {
      assert.notEqual((await visitor.get(`/console/assets/${file}`)).status, 200, file);
    }
  }),
);

Deno.test(
  "console pages: what people and events say is shown as text",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = await signedIn(api, loneKey),
      evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`;
    const made = await visitor.post(`/console/${lone}/endpoints/new`, {
      url: URL_OK,
      all: "1",
      description: evil,
      once: api.services.ids.ulid(),
    });
    assert.equal(made.status, 200, made.text);
    const refused = await visitor.post(`/console/${lone}/endpoints/new`, {
      url: evil,
      all: "1",
      description: evil,
      once: api.services.ids.ulid(),
    });
    assert.equal(refused.status, 400);
    const pages = [
      made,
      refused,
      await visitor.get(`/console/${lone}/endpoints?q=${encodeURIComponent(evil)}`),
      await visitor.get(`/console/${lone}/events?type=${encodeURIComponent(evil)}`),
      await visitor.get(`/console/${lone}/endpoints`),
    ];
    for (const { text } of pages) assert.ok(!text.includes("<script>") && !text.includes("<img"), text);
  }),
);

Deno.test(
  "console pages: an endpoint is created, its secret shown once, changed, tested, rotated, disabled and deleted",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = await signedIn(api, loneKey), once = () => api.services.ids.ulid();
    const form = {
      url: URL_OK,
      events: "message.received",
      description: "Tickets",
      headers: "X-Route: eu\nAuthorization: Bearer abc",
      once: once(),
    };
    const made = await visitor.post(`/console/${lone}/endpoints/new`, form);
    const secret = /whsec_[A-Za-z0-9+/=]+/.exec(made.text)?.[0];
    assert.ok(secret, made.text);
    const again = await visitor.post(`/console/${lone}/endpoints/new`, form);
    assert.ok(!again.text.includes("whsec_"), "a reload makes no second endpoint and shows no secret");
    const { body: list } = await api.call("GET", `/v1/tenants/${lone}/webhooks`, { key: loneKey });
    assert.equal(list.data.length, 1);
    const [row] = list.data, base = `/console/endpoints/${row.id}`;
    assert.deepEqual([row.events, row.headers], [["message.received"], {
      authorization: "***",
      "x-route": "***",
    }]);

    const page = await visitor.get(base);
    assert.ok(page.text.includes("authorization: ***") && !page.text.includes("abc"));
    const edit = { url: URL_OK, all: "1", description: "", v1a: "1", once: once() };
    assert.equal((await visitor.post(`${base}/edit`, edit)).location, `${base}?done=saved`);
    const tested = await visitor.post(`${base}/test`, { once: once() });
    assert.match(tested.location!, /deliveries\/dlv_[0-9A-Z]{26}\?done=tested$/);
    assert.match((await visitor.get(tested.location!)).text, /The receiver answered 204 in/);
    const rotated = await visitor.post(`${base}/rotate-secret`, { overlap_hours: "24", once: once() });
    const next = /whsec_[A-Za-z0-9+/=]+/.exec(rotated.text)?.[0];
    assert.ok(next && next !== secret);
    assert.equal((await visitor.post(`${base}/disable`)).location, `${base}?done=disabled`);
    const shown = (await api.call("GET", `/v1/webhooks/${row.id}`, { key: loneKey })).body;
    assert.deepEqual(
      [shown.events, shown.description, shown.enabled, shown.signature_versions, shown.headers["x-route"]],
      [["*"], null, false, ["v1", "v1a"], "***"],
    );
    assert.equal((await visitor.post(`${base}/delete`)).location, `/console/${lone}/endpoints?done=deleted`);
    assert.equal((await api.call("GET", `/v1/webhooks/${row.id}`, { key: loneKey })).status, 404);
    assert.match((await visitor.get(base)).text, /Deleted/, "its log stays readable");
  }),
);

Deno.test(
  "console pages: what the API refuses is said beside its field, and what was typed stays",
  withApi(async (api) => {
    const { loneKey, lone } = await world(api);
    const visitor = await signedIn(api, loneKey);
    const got = await visitor.post(`/console/${lone}/endpoints/new`, {
      url: "http://10.0.0.1/x",
      description: "kept text",
      identities: "idn_no",
      headers: "not a header",
      once: api.services.ids.ulid(),
    });
    assert.equal(got.status, 400);
    assert.match(got.text, /id="headers-error"/);
    assert.ok(got.text.includes("kept text") && got.text.includes("http://10.0.0.1/x"));
    const more = await visitor.post(`/console/${lone}/endpoints/new`, {
      url: "http://10.0.0.1/x",
      all: "1",
      once: api.services.ids.ulid(),
    });
    assert.match(more.text, /aria-describedby="url-hint url-error" aria-invalid="true"/);
    assert.match(more.text, /<a href="#url">Address: /);
  }),
);

Deno.test(
  "console pages: a replay is counted before it runs, runs once, and says how far it is",
  withApi(async (api) => {
    const seeded = await seed(api.services), { healthy } = seeded.endpoints;
    const visitor = await signedIn(api, (await api.key()).secret), base = `/console/endpoints/${healthy.id}`;
    // As old as the events: one made after them would be a stranger to them all the same, but replay does not ask that.
    const window = "since=2026-10-09T11:00&until=2026-10-09T12:30";
    const counted = await visitor.get(`${base}/replay?${window}&status=succeeded`);
    assert.match(counted.text, /40 events would be delivered again/);
    assert.match((await visitor.get(`${base}/replay?${window}&status=dead`)).text, /No event fits/);
    assert.equal(
      (await visitor.get(`${base}/replay?since=2026-10-09T13:00&until=2026-10-09T12:30`)).status,
      400,
    );
    const fields = {
      since: "2026-10-09T11:00",
      until: "2026-10-09T12:30",
      status: "succeeded",
      once: api.services.ids.ulid(),
    };
    const run = await visitor.post(`${base}/replay`, fields);
    assert.equal(run.location, `${base}/replays/${fields.once}`);
    const progress = await visitor.get(run.location!);
    assert.match(progress.text, /0 of 40 events tried/);
    assert.match(progress.text, /<progress max="40" value="0"/);
    assert.equal((await visitor.post(`${base}/replay`, fields)).location, run.location, "sent twice");
    let items = 0;
    for await (const { value } of api.kv.list<{ items?: unknown[] }>({ prefix: keys.jobs() })) {
      items += value.items?.length ?? 0;
    }
    assert.equal(items, 40);
    assert.equal((await visitor.post(`${base}/replay`, { ...fields, event_id: "evt_no" })).status, 400);
  }),
);

Deno.test(
  "console pages: an event shows its bytes as sent and who receives it; a delivery every attempt and its words",
  withApi(async (api) => {
    const seeded = await seed(api.services), { events, endpoints } = seeded;
    const visitor = await signedIn(api, (await api.key()).secret);
    const event = await visitor.get(`/console/events/${events[20]!.id}`);
    assert.match(event.text, /&quot;amount&quot;: 42.5,/);
    assert.match(event.text, /Its event types leave this one out/);
    assert.match(event.text, /The endpoint is disabled/);
    const retried = seeded.attempts.find(({ status }) => status === "failed")!;
    const delivery = await visitor.get(`/console/endpoints/${endpoints.healthy.id}/deliveries/${retried.id}`);
    for (
      const word of [
        "500 status_5xx",
        "503 status_5xx",
        "204",
        "attempt 3 of 13",
        "The receiver failed while",
      ]
    ) {
      assert.ok(delivery.text.includes(word), word);
    }
  }),
);

Deno.test(
  "console pages: a delivery that succeeded at once is over until it is redelivered, and then waits for attempt 2",
  withApi(async (api) => {
    const { endpoints: { healthy }, attempts } = await seed(api.services);
    const visitor = await signedIn(api, (await api.key()).secret);
    const { id } = attempts.find((row) => row.attempt === 1 && row.status === "succeeded")!;
    const path = `/console/endpoints/${healthy.id}/deliveries/${id}`;
    const before = await visitor.get(path);
    assert.equal(before.text.split("attempt 1 of 13").length, 2);
    assert.ok(!/id="attempts"[^>]*data-live/.test(before.text) && !before.text.includes("Queued again"));
    const done = await visitor.post(`${path}/redeliver`, { once: api.services.ids.ulid() });
    assert.equal(done.location, `${path}?done=queued`);
    const after = await visitor.get(path);
    assert.match(after.text, /id="attempts"[^>]*data-live/);
    assert.match(after.text, /Queued again/);
    assert.equal(after.text.split("attempt 1 of 13").length, 2);
  }),
);

Deno.test(
  "console pages: dead letters are redriven; switching finds a tenant by its slug",
  withApi(async (api) => {
    const { acme } = await seed(api.services);
    const visitor = await signedIn(api, (await api.key()).secret);
    const id = api.services.ids.next("deadLetter"), event = api.services.ids.ulid();
    await api.kv.set(keys.deadLetter(id), {
      id,
      job: { v: 1, kind: "fanout", events: [event], throws: 13 },
      error: "TypeError",
      created_at: api.now,
    });
    assert.ok((await visitor.get("/console/dead-letters")).text.includes(id));
    const done = await visitor.post(`/console/dead-letters/${id}/redrive`, { once: api.services.ids.ulid() });
    assert.equal(done.location, "/console/dead-letters?done=redriven");
    assert.ok(!(await visitor.get(done.location!)).text.includes(id));
    assert.equal((await visitor.get("/console/scopes?q=acme")).location, `/console/${acme.id}`);
    assert.match((await visitor.get("/console/scopes?q=nobody")).text, /No tenant in your reach/);
  }),
);

Deno.test(
  "console pages: logs and metrics name the row, never the address",
  withApi(async (api: Api) => {
    const { acme, endpoints } = await seed(api.services);
    const visitor = await signedIn(api, (await api.key()).secret);
    await visitor.get(`/console/endpoints/${endpoints.healthy.id}`);
    await visitor.get(`/console/${acme.id}/endpoints?q=canary`);
    const told = api.lines.join("\n");
    assert.match(told, /"route":"\/console\/endpoints\/\{webhook_id\}"/);
    assert.ok(!told.includes("canary") && !told.includes(endpoints.healthy.id));
  }),
);

/** The mailbox routes over the whole API: what they take, answer and refuse. */
import assert from "node:assert/strict";
import { advanceJob, jobOwner } from "../../actors/job_runner.ts";
import type { TenantId } from "../../lib/ids.ts";
import { type Api, type Json, refused, withApi } from "../routes/support.ts";

const NOOR = "noor@werkbank.example", MARTA = "marta@lindenhof.example";

interface Client {
  api: Api;
  key: string;
  tenant: TenantId;
  identity: string;
  /** Calls below `/v1/identities/{identity}`. */
  on(method: string, path: string, body?: unknown, headers?: Record<string, string>): ReturnType<Api["call"]>;
  /** The envelope of an event as it is sent. */
  sent(event: Json): Promise<string>;
}

const withClient = (test: (c: Client) => Promise<void>) =>
  withApi(async (api) => {
    const { secret: key } = await api.key();
    const tenant = await api.tenant(key, "acme");
    const made = await api.call("POST", `/v1/tenants/${tenant}/identities`, {
      key,
      body: { display_name: "Noor Aziz", address: NOOR },
    });
    assert.equal(made.status, 201, made.text);
    const identity = made.body.identity.id;
    await test({
      api,
      key,
      tenant,
      identity,
      on: (method, path, body, headers = {}) =>
        api.call(method, `/v1/identities/${identity}${path}`, {
          key,
          headers,
          ...body === undefined ? {} : { body },
        }),
      sent: async (event) => (await api.call("GET", `/v1/events/${event.id}`, { key })).text,
    });
  });

const mail = (change: Json = {}) => ({
  from: { address: MARTA },
  to: [{ address: NOOR }],
  text: "Hello",
  ...change,
});
const demo = (name: string) => Deno.readTextFile(new URL(`../../demo/mails/${name}`, import.meta.url));

Deno.test(
  "identity routes: create, read, list, update, pause, resume answer the new state and its event",
  withClient(async ({ api, key, tenant, identity, on, sent }) => {
    const read = await on("GET", "");
    assert.deepEqual([read.status, read.body.id, read.body.addresses[0].address], [200, identity, NOOR]);
    const list = await api.call("GET", `/v1/tenants/${tenant}/identities`, { key });
    assert.deepEqual(list.body.data.map((row: Json) => row.id), [identity]);
    const updated = await on("PATCH", "", { description: "Sales" });
    assert.deepEqual([updated.status, updated.body.identity.description], [200, "Sales"]);
    assert.deepEqual(Object.keys(updated.body.event), ["id", "type", "sequence"]);
    assert.deepEqual([updated.body.event.type, updated.body.event.sequence], ["identity.updated", 2]);
    assert.deepEqual(JSON.parse(await sent(updated.body.event)).data.changed, ["description"]);
    assert.equal((await on("PATCH", "", { description: "Sales" })).body.event, null);
    const paused = await on("POST", "/pause");
    assert.deepEqual([paused.status, paused.body.identity.paused_reason], [200, "manual"]);
    refused(await on("POST", "/pause", {}), 409, "invalid_state");
    assert.equal((await on("POST", "/resume")).body.event.type, "identity.resumed");
    refused(await on("POST", "/pause", { reason: "abuse_threshold" }), 400, "invalid_request", ["metrics"]);
    refused(await on("PATCH", "", { status: "paused" }), 400, "invalid_request", ["status"]);
    refused(await on("PATCH", "", { display_name: "x".repeat(129) }), 400, "invalid_request", [
      "display_name",
    ]);
  }),
);

Deno.test(
  "address routes: add, activate, promote, retire; the tenant's second use of an address is 409",
  withClient(async ({ api, key, tenant, on }) => {
    const added = await on("POST", "/addresses", { address: "n@werkbank.example" });
    assert.deepEqual([added.status, added.body.address.status], [201, "pending"]);
    const at = `/addresses/${added.body.address.id}`;
    assert.equal((await on("POST", `${at}/activate`)).body.address.status, "active");
    const promoted = await on("POST", `${at}/promote`, { retire_after_days: 0 });
    assert.equal(promoted.body.event.type, "identity.address_promoted");
    const { addresses } = (await on("GET", "")).body;
    assert.equal((await on("POST", `/addresses/${addresses[0].id}/retire`)).body.address.status, "retired");
    refused(await on("POST", `${at}/retire`), 409, "invalid_state");
    refused(await on("POST", "/addresses", { address: "no address" }), 400, "invalid_request", ["address"]);
    const body = { display_name: "Other", address: "n@werkbank.example" };
    refused(await api.call("POST", `/v1/tenants/${tenant}/identities`, { key, body }), 409, "already_exists");
    refused(await on("POST", "/addresses/adr_01K6GZ4A7E1B3D5F7H9K2M4P6R/retire"), 404, "address_not_found");
  }),
);

Deno.test(
  "a raw mail is received, read back and listed",
  withClient(async ({ on, sent }) => {
    const raw = { "content-type": "message/rfc822" };
    const first = await on("POST", "/messages", await demo("plain.eml"), raw);
    assert.equal(first.status, 201, first.text);
    assert.deepEqual([first.body.event.type, first.body.event.sequence], ["message.received", 2]);
    const reply = await on("POST", "/messages", await demo("multipart_attachment.eml"), raw);
    assert.equal(reply.body.message.thread_id, first.body.message.thread_id);
    const { data } = JSON.parse(await sent(reply.body.event));
    assert.equal(data.attachments.length, 2);
    const read = await on("GET", `/messages/${reply.body.message.id}`);
    assert.equal(read.body.extracted_text, data.extracted_text);
    assert.equal(read.body.recipients, null);
    const list = await on("GET", "/messages?limit=1");
    assert.deepEqual(list.body.data, [reply.body.message]);
    const rest = await on("GET", `/messages?limit=1&cursor=${list.body.next_cursor}`);
    assert.deepEqual(rest.body.data.map((row: Json) => row.id), [first.body.message.id]);
    refused(await on("POST", "/messages", "no mail at all", raw), 400, "invalid_request", ["body"]);
    refused(await on("POST", "/messages", "", raw), 400, "invalid_request", ["body"]);
    refused(
      await on("POST", "/messages", "a=b", { "content-type": "text/plain" }),
      415,
      "unsupported_media_type",
    );
  }),
);

Deno.test(
  "a parsed mail says what holds it back; release names the key, and needs a reason to be a line",
  withClient(async ({ on, sent }) => {
    const held = await on("POST", "/messages", mail({ quarantine_reason: "spam", text: "CANARY" }));
    assert.deepEqual([held.body.event.type, held.body.message.status], [
      "message.quarantined",
      "quarantined",
    ]);
    const at = `/messages/${held.body.message.id}`;
    assert.equal((await on("GET", at)).body.extracted_text, null);
    refused(await on("POST", `${at}/reprocess`), 409, "invalid_state");
    refused(await on("POST", `${at}/release`, { reason: "a\nb" }), 400, "invalid_request", ["reason"]);
    const released = await on("POST", `${at}/release`, { reason: "Known supplier" });
    const { data } = JSON.parse(await sent(released.body.event));
    assert.match(data.released_by_key_id, /^key_/);
    assert.deepEqual([data.released_by_user_id, data.reason], [null, "Known supplier"]);
    refused(await on("POST", `${at}/release`), 409, "invalid_state");
    const again = await on("POST", `${at}/reprocess`);
    assert.equal(JSON.parse(await sent(again.body.event)).data.reprocessed, true);
    const triaged = await on("POST", `${at}/triage`, {
      needs_reply: true,
      priority: "low",
      category: "sales",
    });
    assert.deepEqual(triaged.body.message.flags, ["needs_reply"]);
    refused(await on("POST", `${at}/triage`, { needs_reply: "yes" }), 400, "invalid_request");
  }),
);

Deno.test(
  "HTML is the text of a parsed mail that has no other; a verification is a second event",
  withClient(async ({ on, sent }) => {
    const body = mail({ text: undefined, html: "<p>Your <b>code</b></p>", verification: { kind: "code" } });
    const done = await on("POST", "/messages", body);
    assert.deepEqual(done.body.events.map((event: Json) => event.type), [
      "message.received",
      "verification.received",
    ]);
    assert.equal(JSON.parse(await sent(done.body.event)).data.extracted_text, "Your code");
    assert.equal(JSON.parse(await sent(done.body.events[1])).data.sender_domain, "lindenhof.example");
  }),
);

Deno.test(
  "message input is strict at every depth, bounded, and refuses what goes with the other direction",
  withClient(async ({ on }) => {
    const outbound = { direction: "outbound", from: { address: NOOR }, to: [{ address: MARTA }] };
    const table: [Json, string[], string][] = [
      [mail({ body: "x" }), ["body"], "unknown field"],
      [mail({ from: { address: MARTA, phone: "1" } }), ["from.phone"], "unknown field inside"],
      [mail({ from: undefined }), ["from"], "no sender"],
      [mail({ to: Array(101).fill({ address: NOOR }) }), ["to"], "too many recipients"],
      [mail({ subject: "x".repeat(999) }), ["subject"], "subject too long"],
      [
        mail({ attachments: [{ content_type: "text/plain", size: -1 }] }),
        ["attachments.0.size"],
        "negative size",
      ],
      [mail({ message_id: "no brackets" }), ["message_id"], "no message id"],
      [mail({ thread_id: "msg_01K6GZ4A7E1B3D5F7H9K2M4P6R" }), ["thread_id"], "an id of another kind"],
      [mail({ bcc: [MARTA] }), ["bcc"], "bcc on an inbound mail"],
      [{ ...outbound, quarantine_reason: "spam" }, ["quarantine_reason"], "quarantine of an outbound one"],
      [{ ...outbound, from: { address: MARTA } }, ["from.address"], "sender is not the identity"],
    ];
    for (const [body, fields, why] of table) {
      const answer = await on("POST", "/messages", body);
      assert.equal(answer.status, 400, why);
      refused(answer, 400, "invalid_request", fields);
    }
  }),
);

Deno.test(
  "outcomes: sent, bounced with its suppression, and 409 for the impossible; suppressing again is 200 with the first event",
  withClient(async ({ on }) => {
    const body = { direction: "outbound", from: { address: NOOR }, to: [{ address: MARTA }], text: "Hi" };
    const queued = await on("POST", "/messages", body);
    assert.deepEqual([queued.status, queued.body.event, queued.body.message.status], [201, null, "queued"]);
    const at = `/messages/${queued.body.message.id}/outcomes`;
    refused(await on("POST", at, { outcome: "delivered", recipient: MARTA }), 409, "invalid_state");
    refused(await on("POST", at, { outcome: "vanished" }), 400, "invalid_request", ["outcome"]);
    refused(await on("POST", at, { outcome: "canceled", why: "x" }), 400, "invalid_request", ["why"]);
    const sent = await on("POST", at, { outcome: "sent", provider: "northrelay" });
    assert.equal(sent.body.message.status, "sent");
    const bounced = await on("POST", at, { outcome: "bounced", recipient: MARTA, bounce_type: "hard" });
    assert.deepEqual(bounced.body.events.map((event: Json) => event.type), [
      "message.bounced",
      "suppression.created",
    ]);
    assert.deepEqual((await on("GET", at.replace("/outcomes", ""))).body.recipients, { [MARTA]: "bounced" });
    const again = await on("POST", "/suppressions", { address: MARTA });
    assert.equal(again.status, 200);
    assert.deepEqual(again.body.event, bounced.body.events[1]);
    assert.equal(again.body.suppression.reason, "hard_bounce");
    assert.equal((await on("POST", "/suppressions", { address: "x@y.example" })).status, 201);
  }),
);

Deno.test(
  "EmitEvent: data goes out as the producer wrote it; other types and other fields are refused",
  withClient(async ({ identity, on, sent }) => {
    const json = { "content-type": "application/json" };
    const text =
      `{"type":"quota.warning","data":{ "limit": 1e3, "used":900.50,"scope":"tenant","metric":"sent" }}`;
    const warned = await on("POST", "/events", text, json);
    assert.equal(warned.status, 201, warned.text);
    assert.ok((await sent(warned.body.event)).endsWith(
      `"data":{ "limit": 1e3, "used":900.50,"scope":"tenant","metric":"sent" }}`,
    ));
    const data = { identity_id: identity, kid: "k1" };
    const created = { type: "identity.key_created", data };
    assert.deepEqual((await on("POST", "/events", created)).body.emitted, true);
    const again = await on("POST", "/events", created);
    assert.deepEqual([again.status, again.body], [200, { emitted: false, event: null }]);
    refused(await on("POST", "/events", { type: "message.sent", data: {} }), 400, "invalid_request", [
      "type",
    ]);
    refused(await on("POST", "/events", { ...created, data: { ...data, x: 1 } }), 400, "invalid_request", [
      "data.x",
    ]);
  }),
);

Deno.test(
  "DELETE starts one erasure job, and the identity is gone for every route once it has run",
  withClient(async ({ api, tenant, on }) => {
    for (let i = 0; i < 20; i++) await on("POST", "/messages", mail()); // more than one request takes on
    const first = await on("DELETE", "");
    const second = await on("DELETE", "");
    assert.deepEqual([first.status, first.body.identity.status], [202, "deleting"]);
    assert.equal(first.body.erasure_request_id, second.body.erasure_request_id);
    refused(await on("POST", "/messages", mail()), 409, "invalid_state");
    const job = jobOwner(tenant, first.body.erasure_request_id);
    const row = await advanceJob(api.services, job);
    assert.equal(row.status, "completed");
    refused(await on("GET", ""), 404, "identity_not_found");
    refused(await on("POST", "/messages", mail()), 404, "identity_not_found");
  }),
);

Deno.test(
  "a small mailbox is gone, and identity.deleted on its way, by the time its DELETE is answered",
  withClient(async ({ api, key, tenant, identity, on }) => {
    await on("POST", "/messages", mail());
    const { status, body } = await on("DELETE", "");
    assert.deepEqual([status, body.identity.status], [202, "deleting"]);
    const path = `/v1/tenants/${tenant}/events?type=identity.deleted`;
    const told = await api.call("GET", path, { key });
    assert.deepEqual(told.body.data.map((event: { identity_id: string }) => event.identity_id), [identity]);
    refused(await on("GET", ""), 404, "identity_not_found");
    const request = await api.call("GET", `/v1/erasure-requests/${body.erasure_request_id}`, { key });
    assert.deepEqual([request.body.status, request.body.receipt.messages], ["completed", 1]);
  }),
);

Deno.test(
  "S1: another tenant's key finds neither identity nor message; an identity key reaches its own alone",
  withClient(async ({ api, key, tenant, identity, on }) => {
    const message = (await on("POST", "/messages", mail())).body.message.id;
    const other = (await api.key({ level: "tenant", tenant_id: await api.tenant(key, "other") })).secret;
    const paths = ["", `/messages`, `/messages/${message}`];
    for (const path of paths) {
      const answer = await api.call("GET", `/v1/identities/${identity}${path}`, { key: other });
      refused(answer, 404, "identity_not_found");
    }
    const second = await api.call("POST", `/v1/tenants/${tenant}/identities`, {
      key,
      body: { display_name: "B" },
    });
    const at = `/v1/identities/${second.body.identity.id}`;
    refused(await api.call("GET", `${at}/messages/${message}`, { key }), 404, "message_not_found");
    refused(await api.call("POST", `${at}/messages/${message}/reprocess`, { key }), 404, "message_not_found");
    const own = (await api.key({ level: "identity", identity_id: identity as never })).secret;
    assert.equal((await api.call("GET", `/v1/identities/${identity}`, { key: own })).status, 200);
    refused(await api.call("GET", at, { key: own }), 404, "identity_not_found");
  }),
);

Deno.test(
  "no_content_in_logs: nothing of a mail shows up in a log line, also when it is refused",
  withClient(async ({ api, on }) => {
    const canary = mail({
      from: { address: "canary@secret.example", name: "CANARY" },
      subject: "CANARY",
      text: "CANARY",
    });
    await on("POST", "/messages", canary);
    await on("POST", "/messages", { ...canary, CANARY: 1 });
    await on("POST", "/messages", "Subject: CANARY\r\n\r\nCANARY", { "content-type": "message/rfc822" });
    await on("POST", "/suppressions", { address: "canary@secret.example" });
    assert.ok(api.lines.length > 0);
    assert.equal(/canary/i.test(api.lines.join("\n")), false);
  }),
);

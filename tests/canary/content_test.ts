/**
 * P1, end to end: a string planted in every content field of a running service, through mails, events, endpoints and keys, failing
 * deliveries, refusals and faults of ours, and no log line, metric, error answer, queue message, job or delivery row that holds one.
 */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { type Service, startService } from "./service.ts";
import { type Witness, witness } from "./witness.ts";

/** A canary for a field; no two alike, none that could be there by chance. */
const plant = (field: string): string => `canary${field.replaceAll("_", "")}qzx`;
const CANARY = /canary[a-z0-9]+qzx/i;
const mail = (field: string) => `${plant(field)}@canary.example`;

/** Families that hold content by their purpose: payloads, state, what people named, and answers kept for a repeat. */
const CONTENT = new Set(
  ("ev ev_chunk ev_alias ev_tenant ev_partner own seq owners owner_of endpoint partner tenant tenant_slug key event_type mail_address domain " +
    "domain_name retire_due idem idem_chunk message").split(" "),
);

const eml = (field: string) =>
  [
    `From: "${plant(field + "from")}" <${mail(field + "sender")}>`,
    `To: "${plant(field + "to")}" <${plant("address")}@canary.example>`,
    `Subject: ${plant(field + "subject")}`,
    `Message-ID: <${plant(field + "id")}@canary.example>`,
    "Date: Fri, 09 Oct 2026 12:00:00 +0000",
    'Content-Type: multipart/mixed; boundary="b"',
    "",
    "--b",
    "Content-Type: text/plain; charset=utf-8",
    "",
    `${plant(field + "text")} https://x.example/?${plant(field + "link")}`,
    "--b",
    `Content-Type: text/plain; name="${plant(field + "file")}.txt"`,
    `Content-Disposition: attachment; filename="${plant(field + "file")}.txt"`,
    "",
    plant(field + "attachment"),
    "--b--",
    "",
  ].join("\r\n");

/** Everything that takes content, taken. Returns the secrets shown meanwhile. */
async function use(s: Service): Promise<string[]> {
  const secrets: string[] = [];
  const partner = await s.make("POST", "/v1/partners", { name: plant("partner") });
  const tenant = (await s.make("POST", "/v1/tenants", { slug: "acme", name: plant("tenant") })).id;
  const at = `/v1/tenants/${tenant}`;
  for (const path of ["/fine", "/broken", "/gone", "/away", "/later"]) {
    const hook = await s.make("POST", `${at}/webhooks`, {
      url: s.url(`${path}?${plant("query")}=${plant("value")}`),
      events: ["*"],
      description: plant("description"),
      headers: { "x-token": plant("header") },
    });
    secrets.push(hook.secret);
    if (path === "/fine") {
      secrets.push((await s.make("POST", `/v1/webhooks/${hook.id}/rotate-secret`, {})).secret);
    }
    await s.make("POST", `/v1/webhooks/${hook.id}/test`);
  }
  const minted = await s.make("POST", "/v1/keys", {
    name: plant("keyname"),
    level: "tenant",
    tenant_id: tenant,
    permissions: ["events:write"],
  });
  secrets.push(minted.secret, (await s.make("POST", `/v1/keys/${minted.id}/rotate`, {})).secret);

  const { identity } = await s.make("POST", `${at}/identities`, {
    display_name: plant("display"),
    address: mail("address"),
  }, { "idempotency-key": plant("idempotency") });
  const box = `/v1/identities/${identity.id}`;
  await s.make("PATCH", box, { description: plant("about") });
  await s.make("POST", `${box}/messages`, eml("raw"), { "content-type": "message/rfc822" });
  const parsed = {
    from: { address: mail("from"), name: plant("fromname") },
    to: [{ address: mail("address"), name: plant("toname") }],
    cc: [{ address: mail("cc"), name: plant("ccname") }],
    subject: plant("subject"),
    text: plant("text"),
    attachments: [{ filename: plant("filename"), content_type: "text/plain", size: 3 }],
  };
  await s.make("POST", `${box}/messages`, parsed);
  const held = await s.make("POST", `${box}/messages`, { ...parsed, quarantine_reason: "spam" });
  await s.make("POST", `${box}/messages/${held.message.id}/release`, { reason: plant("release") });
  await s.make("POST", `${box}/suppressions`, { address: mail("suppressed"), reason: "manual" });
  await s.make("PUT", `${at}/event-types/order.paid`, {
    schema: { type: "object", description: plant("schema") },
    example: { note: plant("example") },
    description: plant("typedescription"),
  });
  const custom = {
    type: "order.paid",
    data: { [plant("name")]: plant("data"), deep: [{ x: plant("deep") }] },
  };
  await s.make("POST", `${at}/owners/${plant("owner")}/events`, custom);
  await s.make("POST", `${at}/owners/${plant("owner")}/events/batch`, { events: [custom, custom] });
  await s.make("POST", `${at}/domains`, { name: `${plant("domain")}.example` });
  await s.make("POST", "/v1/erasure-requests", {
    tenant_id: tenant,
    scope: "message",
    identity_id: identity.id,
    message_id: held.message.id,
    reason: plant("erasure"),
  });
  await s.make("GET", `${box}/messages`);
  await s.make("PATCH", `/v1/partners/${partner.id}`, { status: "suspended" });
  return secrets;
}

/** Requests that are refused, with content where the fault is. Not in a field's name: a refusal names its fields. */
async function misuse(s: Service): Promise<void> {
  const { data: [tenant] } = await s.make("GET", "/v1/tenants"), at = `/v1/tenants/${tenant.id}`;
  const { data: [identity] } = await s.make("GET", `${at}/identities`), box = `/v1/identities/${identity.id}`;
  const json = plant("refused");
  const table: [method: string, path: string, body?: unknown, headers?: Record<string, string>][] = [
    ["GET", `/${json}?${json}=1`],
    ["GET", `/v1/tenants/${json}`],
    ["GET", `/v1/webhooks?cursor=${json}`],
    ["PURGE", `${at}/webhooks`],
    ["POST", "/v1/tenants", `{"name":"${json}"`],
    ["POST", "/v1/tenants", `{"name":"${json}","name":"${json}"}`],
    ["POST", "/v1/tenants", json, { "content-type": "text/plain" }],
    ["POST", "/v1/tenants", { slug: json + " ", name: json }],
    ["POST", "/v1/tenants", { slug: "acme", name: json }],
    ["POST", "/v1/tenants", { slug: 1, name: json }, { authorization: `Bearer ${json}` }],
    ["POST", `${at}/webhooks`, { url: `https://10.0.0.1/${json}?${json}#${json}`, events: [] }],
    ["POST", `${at}/webhooks`, { url: `https://${json}:${json}@x.example/${json}`, events: ["*"] }],
    ["POST", `${at}/webhooks`, { url: `https://localhost/${json}`, events: ["*"], headers: { host: json } }],
    ["POST", `${box}/messages`, { from: { address: json }, to: json, subject: [json], text: json }],
    ["POST", `${box}/messages`, { from: { address: mail("x") }, to: [], kind: json, trust: json }],
    ["POST", `${box}/messages`, `${json}\r\n${json}`, { "content-type": "message/rfc822" }],
    ["POST", `${box}/messages`, {
      ...{ from: { address: mail("elsewhere") } },
      direction: "outbound",
      text: json,
    }],
    ["POST", `${box}/suppressions`, { address: json, reason: json }],
    ["POST", `${box}/events`, { type: "identity.key_created", data: { kid: [json] } }],
    ["POST", `${at}/owners/${json}/events`, { type: "order.paid", data: json }],
    ["POST", `${at}/owners/${"x".repeat(300)}${json}/events`, { type: "order.paid", data: {} }],
    ["POST", `${at}/owners/k/events`, { type: "order.paid", data: {}, event_id: json }],
    ["PUT", `${at}/event-types/other.type`, { schema: { type: json, pattern: `(${json}` }, example: json }],
    ["PUT", `${at}/event-types/other.type`, { schema: { enum: ["a"] }, example: json }],
    ["POST", `${at}/domains`, { name: `${json} ${json}` }],
    ["POST", "/v1/exports", { tenant_id: json }],
  ];
  for (const [method, path, body, headers] of table) {
    const answer = await s.ask(method, path, body, headers);
    assert.ok(
      answer.status >= 400 && answer.status < 500,
      `${method} ${path}: ${answer.status} ${answer.text}`,
    );
  }
}

/** Faults of ours whose own text quotes content. */
async function breakIt(s: Service): Promise<void> {
  const { data: [tenant] } = await s.make("GET", "/v1/tenants"), at = `/v1/tenants/${tenant.id}`;
  const { guard, eventTypes, owners } = s.services, boom = () => Promise.reject(new Error(plant("thrown")));
  const broken: [object, string, string, string, unknown][] = [
    [guard, "check", "POST", `${at}/webhooks`, { url: s.url("/x"), events: ["*"] }],
    [eventTypes, "put", "PUT", `${at}/event-types/a.b`, {
      schema: {},
      example: 1,
      description: plant("lost"),
    }],
    [owners, "run", "POST", `${at}/owners/${plant("owner")}/events`, {
      type: "order.paid",
      data: { x: plant("lost") },
    }],
  ];
  for (const [of, name, method, path, body] of broken) {
    const real = Reflect.get(of, name);
    Reflect.set(of, name, boom);
    const answer = await s.ask(method, path, body, { "idempotency-key": plant("again") });
    Reflect.set(of, name, real);
    assert.equal(answer.status, 500, `${path}: ${answer.text}`);
  }
}

/** Until every delivery has had an attempt or more, and the one that is gone is switched off. */
async function delivered(s: Service): Promise<void> {
  const giveUp = performance.now() + 20_000;
  const enough = () =>
    s.received.filter(({ path }) => path === "/fine").length >= 8 &&
    s.received.filter(({ path }) => path === "/broken").length >= 20 &&
    s.lines.some((line) => line.includes("gone"));
  while (!enough()) {
    assert.ok(performance.now() < giveUp, `${s.received.length} requests, ${s.lines.length} lines`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const holds = (secrets: readonly string[]) => (text: string): string | undefined =>
  CANARY.exec(text)?.[0] ?? secrets.find((secret) => text.includes(secret));

function search(s: Service, seen: Witness, secrets: readonly string[], metrics: string): void {
  const find = holds(secrets);
  for (
    const [where, texts] of [["log", s.lines], ["output", seen.printed], ["queue", seen.queued]] as const
  ) {
    for (const text of texts) assert.equal(find(text), undefined, `${where}: ${text}`);
  }
  assert.equal(find(metrics), undefined, "metrics");
  for (const { method, path, status, text } of s.said) {
    if (status >= 400) assert.equal(find(text), undefined, `${method} ${path}: ${text}`);
  }
  const families = new Set<string>();
  for (const { family, text } of seen.rows) {
    families.add(family);
    const secret = secrets.find((one) => text.includes(one));
    assert.equal(secret, undefined, `a secret in the clear: ${family}`);
    assert.ok(!text.includes(plant("header")), `the value of a static header in the clear: ${family}`);
    if (!CONTENT.has(family)) {
      assert.equal(CANARY.exec(text)?.[0], undefined, `${family}: ${text.slice(0, 500)}`);
    }
  }
  for (const family of ["job", "attempt", "pair", "health", "audit", "ev", "own", "endpoint"]) {
    assert.ok(families.has(family), `no ${family} row was written: the test proves nothing`);
  }
}

Deno.test("no_content_in_logs, P1: canaries in every content field show up in no log, metric, error, queue or job row", async () => {
  using seen = witness();
  const s = await startService((path) => {
    const body = plant("response");
    if (path === "/fine") return new Response(body);
    if (path === "/gone") return new Response(body, { status: 410 });
    if (path === "/away") {
      return new Response(body, { status: 302, headers: { location: `https://${body}.example/${body}` } });
    }
    if (path === "/later") return new Response(body, { status: 503, headers: { "retry-after": body } });
    return new Response(body, { status: 500, statusText: body, headers: { "x-canary": body } });
  });
  try {
    const secrets = [...await use(s), s.key, ...s.secrets];
    secrets.push(...secrets.filter((text) => text.startsWith("whsec_")).map((text) => text.slice(6)));
    await misuse(s);
    await breakIt(s);
    await delivered(s);
    await s.server.system.sweep();
    const metrics = (await s.ask("GET", "/metrics")).text;
    assert.match(metrics, /webhook_attempts_total/);
    await s.stop(); // what is said while stopping counts, too
    assert.ok(s.lines.length > 50 && s.lines.some((line) => line.includes('"stopped"')));
    assert.ok(seen.queued.length > 0, "no doorbell rang: the test proves nothing of the queue");
    assert.ok(s.received.some(({ body }) => CANARY.test(body)), "content does reach its receivers");
    assert.ok(s.received.some(({ headers }) => headers.get("x-token") === plant("header")));
    search(s, seen, secrets, metrics);
  } finally {
    await s.end();
  }
});

/**
 * `deno task demo`: the whole of it in one process, with no network and no set-up. Three mails and a batch of 100 events of an
 * application's own go in through the HTTP API; two endpoints of a receiver that refuses everything twice get them. Exits 0 only if
 * every event arrived exactly as stored and every signature verified with the `standardwebhooks` package.
 */
import { createKey } from "../actors/key_admin.ts";
import { completeConfig, parseConfig } from "../lib/edge/config.ts";
import { realIds, realNow, realRandom } from "../lib/edge/ports.ts";
import { permission } from "../lib/keys.ts";
import { MAX_BATCH_EVENTS, SECOND_MS } from "../lib/limits.ts";
import { refuseStart, type Server, startServer } from "../main.ts";
import { aligned, type Endpoint, report, type StoredEvent } from "./demo/report.ts";
import { type Receiver, startReceiver } from "./demo/receiver.ts";

const MAILS = ["plain.eml", "multipart_attachment.eml", "emoji_long.eml"];
const TYPE = "order.paid";
const ENDPOINTS: Endpoint[] = [
  { name: "everything", path: "/everything", wants: () => true },
  { name: "mail only", path: "/mail", wants: (type) => type === "message.received" },
];
/** The schedule of 30 s and 2 min becomes 60 ms and 240 ms. */
const RETRY_SCALE = 0.002;
const DEADLINE_MS = 20 * SECOND_MS;

// deno-lint-ignore no-explicit-any
type Json = any;
type Send = (method: string, path: string, body?: BodyInit, type?: string) => Promise<string>;

/** The API over its socket, with a key made as `pmail keys create` makes it. */
async function api(server: Server): Promise<Send> {
  const { services } = server;
  const { secret } = await createKey(
    { ...services, pepper: services.config.keyPepper, mode: services.config.keyMode, ids: realIds() },
    { name: "demo", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  return async (method, path, body, type = "application/json") => {
    const headers = {
      authorization: `Bearer ${secret}`,
      ...(body === undefined ? {} : { "content-type": type }),
    };
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers,
      body: body ?? null,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text;
  };
}

/** Endpoints, then mails and orders. Resolves to the ids of the events the API acknowledged. */
async function feed(send: Send, receiver: Receiver): Promise<string[]> {
  const json = async (method: string, path: string, body: unknown): Promise<Json> =>
    JSON.parse(await send(method, path, JSON.stringify(body)));
  const tenant = (await json("POST", "/v1/tenants", { slug: "demo", name: "Demo" })).id;
  const example = { order_id: "ord_1000", amount: 42.5, currency: "EUR" };
  await json("PUT", `/v1/tenants/${tenant}/event-types/${TYPE}`, {
    description: "An order was paid.",
    schema: { type: "object", properties: { amount: { type: "number" } }, required: ["order_id", "amount"] },
    example,
  });
  for (const { path, wants } of ENDPOINTS) {
    const events = wants(TYPE) ? ["*"] : ["message.received"];
    const url = `http://${receiver.target}${path}`;
    const { secret } = await json("POST", `/v1/tenants/${tenant}/webhooks`, { url, events });
    receiver.secrets.set(path, secret);
  }

  const acknowledged: string[] = [];
  const { identity, event } = await json("POST", `/v1/tenants/${tenant}/identities`, {
    display_name: "Noor Aziz",
    address: "noor@werkbank.example",
  });
  acknowledged.push(event.id);
  for (const mail of MAILS) {
    const raw = await Deno.readFile(new URL(`../demo/mails/${mail}`, import.meta.url));
    const answer: Json = JSON.parse(
      await send("POST", `/v1/identities/${identity.id}/messages`, raw, "message/rfc822"),
    );
    acknowledged.push(...answer.events.map(({ id }: { id: string }) => id));
  }
  const orders = Array.from({ length: MAX_BATCH_EVENTS }, (_, n) => ({
    type: TYPE,
    data: { ...example, order_id: `ord_${1000 + n}`, amount: n + 0.5 },
  }));
  const batch = await json("POST", `/v1/tenants/${tenant}/owners/shop-1/events/batch`, { events: orders });
  acknowledged.push(...batch.data.map(({ event }: Json) => event.id));
  return acknowledged;
}

async function demo(folder: string): Promise<number> {
  const startedAt = realNow();
  const receiver = startReceiver();
  const parsed = parseConfig({
    PM_PORT: "0",
    PM_KV_PATH: `${folder}/pm.db`,
    PM_ALLOWED_TARGETS: receiver.target,
    PM_RETRY_SCALE: String(RETRY_SCALE),
    PM_LOG: "error",
  });
  const server = await startServer(await completeConfig(parsed, realRandom), { write: console.error });
  try {
    const send = await api(server);
    const events: StoredEvent[] = [];
    for (const id of await feed(send, receiver)) {
      const envelope = await send("GET", `/v1/events/${id}`);
      const { type, occurred_at } = JSON.parse(envelope);
      events.push({ id, type, occurredAt: Date.parse(occurred_at), envelope });
    }
    const due = ENDPOINTS.reduce(
      (sum, { wants }) => sum + events.filter(({ type }) => wants(type)).length,
      0,
    );
    const inTime = await receiver.accepted(due, DEADLINE_MS);
    const { rows, missing } = report(events, ENDPOINTS, receiver.arrivals);
    if (!inTime) missing.unshift(`not all of ${due} deliveries came within ${DEADLINE_MS / SECOND_MS} s`);
    console.log(
      `${MAILS.length} mails and a batch of ${MAX_BATCH_EVENTS} events, each refused twice (500, 503) before it is taken:\n`,
    );
    console.log(aligned(rows));
    console.log(
      missing.length === 0
        ? `\nAll ${events.length} events arrived exactly as stored, every signature verified, in ${
          realNow() - startedAt
        } ms.`
        : `\nNot as it has to be:\n${missing.map((line) => `  ${line}`).join("\n")}`,
    );
    return missing.length === 0 ? 0 : 1;
  } finally {
    await server.stop();
    await receiver.close();
  }
}

const folder = await Deno.makeTempDir({ prefix: "pylota-demo-" });
const code = await demo(folder).finally(() => Deno.remove(folder, { recursive: true })).catch(refuseStart);
Deno.exit(code);

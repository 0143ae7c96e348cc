/** A store with something of everything in it, made through the API, and the ids of all of it by prefix. */
import assert from "node:assert/strict";
import { deadLetterOf } from "./dead_letter.ts";
import { type Api, type Json, URL_OK, world } from "../routes/support.ts";

export interface Fixture {
  /** Key strings, widest first; the last two are no good. */
  keys: string[];
  known: Map<string, string[]>;
}

export const ADDRESS = "noor@werkbank.example";
export const ORDER_SCHEMA = {
  type: "object",
  properties: { amount: { type: "number" } },
  required: ["amount"],
};

export async function fixture(api: Api): Promise<Fixture> {
  const w = await world(api);
  const known = new Map<string, string[]>();
  const learn = (text: string) => {
    for (const [id, prefix] of text.matchAll(/\b([a-z]{3})_[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g)) {
      if (prefix === "req") continue;
      const ids = known.get(prefix!) ?? [];
      if (!ids.includes(id)) known.set(prefix!, [...ids, id]);
    }
  };
  const make = async (method: string, path: string, body?: Json, key = w.platform): Promise<Json> => {
    const answer = await api.call(method, path, { key, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    learn(answer.text);
    return answer.body;
  };

  const tenant = w.lone, at = `/v1/tenants/${tenant}`;
  learn(JSON.stringify([tenant, w.p.tenant, w.p.id, w.q.id]));
  const { identity } = await make("POST", `${at}/identities`, {
    display_name: "Noor Aziz",
    address: ADDRESS,
  });
  const box = `/v1/identities/${identity.id}`;
  const mail = { from: { address: "marta@lindenhof.example" }, to: [{ address: ADDRESS }], text: "Hello" };
  await make("POST", `${box}/messages`, mail);
  await make("POST", `${box}/messages`, { ...mail, quarantine_reason: "spam" });
  await make("POST", `${box}/messages`, {
    direction: "outbound",
    from: { address: ADDRESS },
    to: [mail.from],
  });
  await make("POST", `${at}/domains`, { name: "werkbank.example" });
  await make("PUT", `${at}/event-types/order.paid`, { schema: ORDER_SCHEMA, example: { amount: 1 } });
  await make("POST", `${at}/owners/cart-7/events`, { type: "order.paid", data: { amount: 1 } });
  const hook = await make("POST", `${at}/webhooks`, { url: URL_OK, events: ["*"] });
  await make("POST", "/v1/webhooks", { url: URL_OK, events: ["message.received"] });
  await make("POST", "/v1/webhooks", { url: URL_OK, events: ["*"] }, w.p.key);
  await make("POST", `/v1/webhooks/${hook.id}/test`);
  await make("POST", "/v1/exports", { tenant_id: tenant });
  const thread = (await make("GET", `${box}/messages`)).data[0].thread_id;
  await make("POST", "/v1/erasure-requests", {
    tenant_id: tenant,
    scope: "thread",
    identity_id: identity.id,
    thread_id: thread,
    reason: "asked",
  });
  await make("GET", `${at}/events`);
  await make("GET", "/v1/keys");
  learn(await deadLetterOf(api, hook.id));
  const gone = await api.key({ expires_at: api.now + 1 });
  api.now += 1;
  return {
    keys: [w.platform, w.p.key, w.loneKey, w.p.tenantKey, w.identityKey, gone.secret, "pmk_test_nothing"],
    known,
  };
}

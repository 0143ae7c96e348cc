// deno-lint-ignore-file layers/effects -- a test wires the real clock and network
/** The shop beside a real service: another process on the same store, which delivers what the library appended. */
import assert from "node:assert/strict";
import { sharedFile, sign } from "@pylota/webhooks";
import { eventually, makePlace, platformKey, startService } from "../../tests/e2e/support/process.ts";
import { makeShop, type Order } from "./orders.ts";
import { setUp } from "./set_up.ts";

Deno.test("example orders: what is paid is told, what is told is confirmed once, and a lost race leaves one event", async (t) => {
  let shop: ((request: Request) => Promise<Response>) | null = null;
  const deliveries: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const response = await shop!(request);
    if (new URL(request.url).pathname === "/hook" && response.status === 204) {
      deliveries.push(request.headers.get("webhook-id")!);
    }
    return response;
  });
  const target = `127.0.0.1:${server.addr.port}`;
  await using place = await makePlace({ PM_ALLOWED_TARGETS: target });
  await using _service = await startService(place.env);
  const kv = sharedFile(await Deno.openKv(place.env.PM_KV_PATH));
  try {
    const api = `http://127.0.0.1:${place.env.PM_PORT}`, key = await platformKey(place.env);
    const settings = await setUp(api, key, `http://${target}/hook`, (request) => fetch(request));
    shop = makeShop({ kv, ...settings });
    const call = async (method: string, path: string, body?: unknown) => {
      const response = await shop!(
        new Request(`http://${target}${path}`, { method, body: body ? JSON.stringify(body) : null }),
      );
      return [response.status, await response.text()] as const;
    };
    const state = async (id: string) => (JSON.parse((await call("GET", `/orders/${id}`))[1]) as Order).state;

    await t.step("paid orders are confirmed by the deliveries they cause", async () => {
      for (const id of ["1001", "1002"]) {
        assert.equal((await call("POST", "/orders", { id, amount: 42.5 }))[0], 201);
        assert.match((await call("POST", `/orders/${id}/pay`))[1], /"paid"/);
      }
      for (const id of ["1001", "1002"]) {
        await eventually(`${id} is confirmed`, async () => await state(id) === "confirmed", 10_000);
      }
      assert.equal(deliveries.length, 2);
    });

    await t.step("many who pay one order at once cause one event", async () => {
      await call("POST", "/orders", { id: "1003", amount: 1 });
      const paid = await Promise.all(Array.from({ length: 8 }, () => call("POST", "/orders/1003/pay")));
      assert.ok(paid.every(([status]) => status === 200));
      await eventually("it is confirmed", async () => await state("1003") === "confirmed", 10_000);
      const headers = { authorization: `Bearer ${key}` };
      const events =
        await (await fetch(`${api}/v1/tenants/${settings.tenant}/events?owner_id=order-1003`, { headers }))
          .json();
      assert.equal(events.data.length, 1);
    });

    await t.step("a delivery that comes again changes nothing, and a forged one is refused", async () => {
      const body = JSON.stringify({ type: "order.paid", data: { order_id: "1001" } });
      const post = async (secret: string) => {
        const headers = { ...sign(secret, { id: deliveries[0]!, body }) };
        return (await shop!(new Request(`http://${target}/hook`, { method: "POST", headers, body }))).status;
      };
      assert.equal(await post(settings.secret), 204);
      assert.equal(await post("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 400);
    });
  } finally {
    kv.close();
    await server.shutdown();
  }
});

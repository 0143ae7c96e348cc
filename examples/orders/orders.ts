/**
 * A small shop. An order and the event that tells of its payment are one commit; a service on the same store delivers the event; the
 * shop receives it at `/hook`, as any customer of its webhooks would, and confirms the order once.
 */
import { makeOutbox, verify, WebhookVerificationError } from "@pylota/webhooks";

export interface Order {
  id: string;
  amount: number;
  state: "open" | "paid" | "confirmed";
}

export interface Shop {
  /** The store the service runs on. The shop's keys begin with a word of their own: `shop`. */
  kv: Deno.Kv;
  /** Whose events they are: `ten_…`. */
  tenant: string;
  /** The endpoint's secret: `whsec_…`. */
  secret: string;
}

const orderKey = (id: string): Deno.KvKey => ["shop", "order", id];
const seenKey = (webhookId: string): Deno.KvKey => ["shop", "seen", webhookId];

const PATHS = { orders: "/orders", hook: "/hook" };

/** The shop's HTTP side. */
export function makeShop({ kv, tenant, secret }: Shop): (request: Request) => Promise<Response> {
  const outbox = makeOutbox(kv);

  async function create(request: Request): Promise<Response> {
    const { id, amount } = await request.json();
    if (typeof id !== "string" || typeof amount !== "number") {
      return new Response("id and amount", { status: 400 });
    }
    const key = orderKey(id), order: Order = { id, amount, state: "open" };
    const { ok } = await kv.atomic().check({ key, versionstamp: null }).set(key, order).commit();
    return ok ? Response.json(order, { status: 201 }) : new Response("it exists", { status: 409 });
  }

  /** The order is paid if and only if its event exists. Who loses a race starts again from what the winner left. */
  async function pay(id: string): Promise<Response> {
    for (;;) {
      const entry = await kv.get<Order>(orderKey(id));
      if (entry.value === null) return new Response("no such order", { status: 404 });
      if (entry.value.state !== "open") return Response.json(entry.value);
      const paid: Order = { ...entry.value, state: "paid" };
      const operation = kv.atomic().check(entry).set(entry.key, paid);
      await outbox.append(operation, {
        tenant,
        owner: `order-${id}`,
        type: "order.paid",
        data: { order_id: id, amount: paid.amount },
      });
      if ((await operation.commit()).ok) return Response.json(paid);
    }
  }

  /** Deliveries come at least once; the row under the webhook's id makes their effect happen once. */
  async function receive(request: Request): Promise<Response> {
    const body = await request.text();
    try {
      const { id: webhookId } = verify(secret, request.headers, body);
      const event = JSON.parse(body);
      if (event.type !== "order.paid") return new Response(null, { status: 204 });
      const entry = await kv.get<Order>(orderKey(event.data.order_id));
      if (entry.value === null) return new Response("no such order", { status: 404 });
      const seen = seenKey(webhookId);
      const { ok } = await kv.atomic()
        .check({ key: seen, versionstamp: null }, entry)
        .set(seen, true)
        .set(entry.key, { ...entry.value, state: "confirmed" })
        .commit();
      // Not ok: seen before, or the order moved. Only the second is worth another delivery.
      return new Response(null, { status: ok || (await kv.get(seen)).value === true ? 204 : 409 });
    } catch (error) {
      if (error instanceof WebhookVerificationError) return new Response(error.fault, { status: 400 });
      throw error;
    }
  }

  return async (request) => {
    const { pathname } = new URL(request.url), { method } = request;
    const [, id, action] = /^\/orders\/([\w-]{1,64})(?:\/(pay))?$/.exec(pathname) ?? [];
    if (method === "POST" && pathname === PATHS.orders) return await create(request);
    if (method === "POST" && pathname === PATHS.hook) return await receive(request);
    if (method === "POST" && id && action) return await pay(id);
    if (method === "GET" && id && !action) {
      const { value } = await kv.get<Order>(orderKey(id));
      return value === null ? new Response("no such order", { status: 404 }) : Response.json(value);
    }
    return new Response("not found", { status: 404 });
  };
}

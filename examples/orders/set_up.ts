/** What the shop needs of the service, once: a tenant, its event type, and an endpoint that leads to the shop. Over the HTTP API. */
export interface SetUp {
  tenant: string;
  secret: string;
}

type Send = (request: Request) => Promise<Response>;

/**
 * @param api the service: `http://127.0.0.1:8000`.
 * @param key an API key of the level platform.
 * @param hook where the shop receives: `http://127.0.0.1:9000/hook`, which is in the service's PM_ALLOWED_TARGETS.
 */
export async function setUp(api: string, key: string, hook: string, send: Send): Promise<SetUp> {
  async function call(method: string, path: string, body: unknown) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await send(new Request(api + path, { method, headers, body: JSON.stringify(body) }));
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${answer.error.message} ${answer.error.fix}`);
    return answer;
  }
  const tenant = await call("POST", "/v1/tenants", { slug: "shop", name: "Shop" });
  await call("PUT", `/v1/tenants/${tenant.id}/event-types/order.paid`, {
    description: "An order was paid.",
    schema: {
      type: "object",
      properties: { order_id: { type: "string" }, amount: { type: "number" } },
      required: ["order_id", "amount"],
    },
    example: { order_id: "1001", amount: 42.5 },
  });
  const webhook = await call("POST", `/v1/tenants/${tenant.id}/webhooks`, {
    url: hook,
    events: ["order.paid"],
  });
  return { tenant: tenant.id, secret: webhook.secret };
}

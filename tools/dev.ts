/**
 * `deno task dev`: the service on 127.0.0.1:8000 with an embedded store, local secrets, a key, a tenant and an endpoint that leads
 * to its own receiver; prints one `curl` that causes a delivery. `PM_ENV=local` only.
 */
import { createKey } from "../actors/key_admin.ts";
import { loadConfig } from "../lib/edge/config.ts";
import { kvPlace } from "../lib/edge/open_kv.ts";
import { realNow, realRandom } from "../lib/edge/ports.ts";
import { permission } from "../lib/keys.ts";
import { refuseStart, type Server, startServer, stopOnSignal } from "../main.ts";
import { makeReceiver, RECEIVER_PATH } from "./dev/receiver.ts";

/** What the first start made, kept beside the store (mode 0600). */
interface DevState {
  key: string;
  tenant_id: string;
  webhook_id: string;
  secret: string;
}

const EVENT_TYPE = "order.paid";
/** Text, so that 42.50 goes out as it stands here. */
const EXAMPLE = '{"order_id":"ord_1001","amount":42.50,"currency":"EUR"}';
const FILE_MODE = 0o600;

async function dev(): Promise<void> {
  const config = await loadConfig(realRandom);
  if (config.env !== "local") {
    console.error("Cannot start: deno task dev is for PM_ENV=local. Use deno task start.");
    Deno.exit(1);
  }
  // The port is known once it listens (PM_PORT=0), so the one target that may be dialled is added then.
  const allowedTargets = new Set(config.allowedTargets);
  let state: DevState | null = null;
  const server = await startServer(
    { ...config, host: "127.0.0.1", allowedTargets },
    { before: makeReceiver(() => state?.secret ?? null, realNow) },
  );
  stopOnSignal(server);
  Deno.cron("sweep", "* * * * *", () => server.system.sweep());

  const target = `127.0.0.1:${server.port}`;
  allowedTargets.add(target);
  const path = kvPlace(config.kvPath) === "file" ? `${config.kvPath}.dev.json` : null;
  const url = `http://${target}${RECEIVER_PATH}`;
  state = path === null ? null : await read(path);
  if (state === null || !await points(server, state, url)) state = await prepare(server, url);
  if (path !== null) await Deno.writeTextFile(path, JSON.stringify(state, null, 2), { mode: FILE_MODE });
  console.log(greeting(`http://${target}`, state));
}

async function read(path: string): Promise<DevState | null> {
  try {
    return JSON.parse(await Deno.readTextFile(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Points the endpoint of an earlier start at this one. False when the store does not know it any more. */
async function points(server: Server, { key, webhook_id }: DevState, url: string): Promise<boolean> {
  const { ok } = await call(server, key, "PATCH", `/v1/webhooks/${webhook_id}`, { url, enabled: true });
  return ok;
}

/** A platform key, a tenant, an event type and an endpoint, made through the routes as a person would. */
async function prepare(server: Server, url: string): Promise<DevState> {
  const { services } = server;
  const { secret: key } = await createKey(
    { ...services, pepper: services.config.keyPepper, mode: services.config.keyMode },
    { name: "development", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  const expect = async (method: string, path: string, body: unknown) => {
    const { ok, answer } = await call(server, key, method, path, body);
    if (!ok) throw new Error(`${method} ${path}: ${answer.error.message}`);
    return answer;
  };
  // A slug of its own: the store may hold the tenant of an earlier start whose notes are gone.
  const slug = `demo-${services.ids.ulid().slice(-8).toLowerCase()}`;
  const tenant = await expect("POST", "/v1/tenants", { slug, name: "Demo" });
  await expect("PUT", `/v1/tenants/${tenant.id}/event-types/${EVENT_TYPE}`, {
    description: "An order was paid.",
    schema: { type: "object" },
    example: JSON.parse(EXAMPLE),
  });
  const webhook = await expect("POST", `/v1/tenants/${tenant.id}/webhooks`, { url, events: ["*"] });
  return { key, tenant_id: tenant.id, webhook_id: webhook.id, secret: webhook.secret };
}

async function call(server: Server, key: string, method: string, path: string, body: unknown) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const request = new Request(`http://127.0.0.1${path}`, { method, headers, body: JSON.stringify(body) });
  const response = await server.fetch(request);
  return { ok: response.ok, answer: await response.json() };
}

function greeting(origin: string, state: DevState): string {
  const event = `{"type":"${EVENT_TYPE}","data":${EXAMPLE}}`;
  return `
Pylota webhooks is ready at ${origin}
  key       ${state.key}
  tenant    ${state.tenant_id}
  endpoint  ${state.webhook_id} → ${origin}${RECEIVER_PATH}

Cause a delivery:

curl -X POST ${origin}/v1/tenants/${state.tenant_id}/owners/order-1001/events -H 'Authorization: Bearer ${state.key}' -H 'Content-Type: application/json' -d '${event}'

and see it arrive, verified, at ${origin}${RECEIVER_PATH}
The console is at ${origin}/console (sign in with the key), the API reference at ${origin}/docs.
`;
}

await dev().catch(refuseStart);

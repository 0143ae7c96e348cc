/** Runs the shop on 127.0.0.1:9000 beside a service on the same store (README.md). */
import { sharedFile } from "@pylota/webhooks";
import { makeShop } from "./orders.ts";
import { setUp } from "./set_up.ts";

const PORT = 9_000;
const store = Deno.env.get("PM_KV_PATH") ?? "./data/pm.db";
const kv = sharedFile(await Deno.openKv(store));
const remembered = `${store}.shop.json`;
const read = async () => JSON.parse(await Deno.readTextFile(remembered));
const settings = await read().catch(async () => {
  const api = Deno.env.get("PM_URL") ?? "http://127.0.0.1:8000", key = Deno.env.get("PM_API_KEY") ?? "";
  const made = await setUp(api, key, `http://127.0.0.1:${PORT}/hook`, (request) => fetch(request));
  await Deno.writeTextFile(remembered, JSON.stringify(made), { mode: 0o600 });
  return made;
});
Deno.serve({ hostname: "127.0.0.1", port: PORT }, makeShop({ kv, ...settings }));

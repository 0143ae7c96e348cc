/**
 * The yardstick: N signed POSTs of 1 KB in a loop over 64 connections, nothing stored. `deno run bare.ts '{"origin","n"}'`.
 * Prints `{ perSecond, cpuUs }`. This is what the machine could do at the most with this client and this receiver.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import process from "node:process";
import { Pool } from "undici";
import { envelope, inParallel, SECRET, warmUp } from "./payload.ts";

const CONNECTIONS = 64;
const { origin, n } = JSON.parse(Deno.args[0]!) as { origin: string; n: number };
const pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1 });
let serial = 0;

async function post(): Promise<void> {
  const i = serial++;
  const id = `evt_01BENCH${String(i).padStart(19, "0")}`, body = Buffer.from(envelope(i));
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac("sha256", SECRET).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const answer = await pool.request({
    method: "POST",
    path: "/hook/bare",
    headers: {
      "content-type": "application/json",
      "user-agent": "bench/1",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${signature}`,
    },
    body,
  });
  await answer.body.dump();
  if (answer.statusCode !== 204) throw new Error(`the receiver answered ${answer.statusCode}`);
}

await inParallel(warmUp(n), CONNECTIONS, post);
const cpu = process.cpuUsage(), start = performance.now();
await inParallel(n, CONNECTIONS, post);
const perSecond = Math.round(n / (performance.now() - start) * 1_000),
  { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ perSecond, cpuUs: Math.round((user + system) / n) }));
Deno.exit(0);

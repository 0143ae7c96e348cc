// What the peers' processes (Node) share: packages from the folder they were installed in, the bench's event, signing, POST.
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import process from "node:process";

/** Packages come from the temporary folder, not from this project. */
export const load = createRequire(`${process.env.PEERS_DIR}/package.json`);
export const SECRET = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
export const nowMs = () => performance.timeOrigin + performance.now();

/** The same envelope as bench/payload.ts makes, byte for byte in its shape. */
export function envelope(i, id) {
  const number = String(i).padStart(8, "0");
  return JSON.stringify({
    id,
    type: "invoice.paid",
    api_version: "2026-10-01",
    occurred_at: "2026-12-01T08:15:30.125Z",
    tenant_id: "ten_01BENCH0000000000000000000",
    identity_id: null,
    sequence: i + 1,
    data: {
      id: `in_${number}`,
      sent_at: nowMs(),
      customer: {
        id: `cus_${i % 997}`,
        name: "Aurélie Lindqvist",
        email: `billing+${i % 997}@example.com`,
        country: "SE",
      },
      currency: "EUR",
      amount_due: 12_900 + i % 100,
      amount_paid: 12_900 + i % 100,
      tax: { rate: 0.25, amount: 2_580, country: "SE", reverse_charge: false },
      lines: [
        { id: `il_${number}1`, description: "Pro plan, monthly, 5 seats", quantity: 5, unit_amount: 1_900 },
        { id: `il_${number}2`, description: "Extra storage, 100 GB", quantity: 2, unit_amount: 1_200 },
        { id: `il_${number}3`, description: "Support, business hours", quantity: 1, unit_amount: 1_000 },
      ],
      period: { start: "2026-11-01T00:00:00.000Z", end: "2026-12-01T00:00:00.000Z" },
      paid_at: "2026-12-01T08:15:30.125Z",
      hosted_url: `https://billing.example.com/i/${number}`,
      metadata: { order: `ord-${number}`, source: "renewal", region: "eu-north-1" },
    },
  });
}

const CONNECTIONS = 64;
let pool;

/** One signed POST of a job `{ id, endpoint, body }`; resolves with what the peer keeps as its outcome. Throws unless 2xx. */
export async function deliver({ id, endpoint, body }) {
  const { Pool } = load("undici");
  pool ??= new Pool(process.env.RECEIVER, { connections: CONNECTIONS, pipelining: 1 });
  const start = performance.now();
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac("sha256", SECRET).update(`${id}.${timestamp}.${body}`).digest("base64");
  const answer = await pool.request({
    method: "POST",
    path: `/hook/${endpoint}`,
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
  if (answer.statusCode < 200 || answer.statusCode > 299) throw new Error(`status ${answer.statusCode}`);
  return { status: answer.statusCode, ms: Math.round(performance.now() - start) };
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

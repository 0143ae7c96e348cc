/**
 * The receiver at `/dev/receiver`: verifies what arrives with the `standardwebhooks` package, as a customer would, and shows the
 * last deliveries as a page or, with `Accept: application/json`, as JSON. Development only.
 */
import { Webhook } from "standardwebhooks";

export const RECEIVER_PATH = "/dev/receiver";
const KEPT = 50;
const MAX_BODY_BYTES = 1_048_576;

interface Received {
  webhook_id: string;
  at: string;
  verified: boolean;
  /** Why it was not verified. */
  error: string | null;
  body: string;
}

export function makeReceiver(secret: () => string | null, now: () => number) {
  const received: Received[] = [];

  async function take(request: Request): Promise<Response> {
    const body = await request.text();
    if (body.length > MAX_BODY_BYTES) return new Response(null, { status: 413 });
    const headers = Object.fromEntries(request.headers);
    let error: string | null = null;
    try {
      new Webhook(secret() ?? "").verify(body, headers);
    } catch (thrown) {
      error = (thrown as Error).message;
    }
    received.unshift({
      webhook_id: headers["webhook-id"] ?? "",
      at: new Date(now()).toISOString(),
      verified: error === null,
      error,
      body,
    });
    received.length = Math.min(received.length, KEPT);
    return new Response(null, { status: error === null ? 204 : 400 });
  }

  return (request: Request): Promise<Response> | Response | null => {
    if (new URL(request.url).pathname !== RECEIVER_PATH) return null;
    if (request.method === "POST") return take(request);
    if (request.method !== "GET") return new Response(null, { status: 405, headers: { allow: "GET, POST" } });
    if (request.headers.get("accept")?.includes("application/json")) return Response.json({ data: received });
    return new Response(page(received), {
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
      },
    });
  };
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function page(received: readonly Received[]): string {
  const rows = received.map(({ at, webhook_id, verified, error, body }) =>
    `<article><h2>${verified ? "✓ verified" : `✗ ${escaped(error ?? "")}`}</h2><p>${at} · <code>${
      escaped(webhook_id)
    }</code></p>` +
    `<pre>${escaped(pretty(body))}</pre></article>`
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Receiver</title><style>body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
article{border:1px solid #8888;border-radius:.5rem;padding:0 1rem;margin:1rem 0}pre{overflow:auto}h2{font-size:1rem}</style>
<h1>Received ${received.length === KEPT ? `(last ${KEPT})` : ""}</h1>${
    rows.join("\n") || "<p>Nothing yet: run the curl command.</p>"
  }</html>`;
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

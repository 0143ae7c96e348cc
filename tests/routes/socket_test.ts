/** What only a real socket shows: absolute-form targets, bodies cut off in mid-stream, broken requests. */
import assert from "node:assert/strict";
import { type Api, withApi } from "./support.ts";

/** Sends bytes as they are and reads until the server closes or `enough`. */
async function raw(port: number, parts: (string | Uint8Array)[], enough: RegExp): Promise<string> {
  const socket = await Deno.connect({ hostname: "127.0.0.1", port });
  const encoder = new TextEncoder();
  const writing = (async () => {
    const writer = socket.writable.getWriter();
    for (const part of parts) await writer.write(typeof part === "string" ? encoder.encode(part) : part);
    writer.releaseLock();
  })().catch(() => {}); // the server may hang up while we still send
  let text = "";
  const buffer = new Uint8Array(65_536);
  for (;;) {
    const read = await socket.read(buffer).catch(() => null);
    if (read === null) break;
    text += new TextDecoder().decode(buffer.subarray(0, read));
    if (enough.test(text)) break;
  }
  socket.close();
  await writing;
  return text;
}

async function served(api: Api, body: (port: number) => Promise<void>): Promise<void> {
  const listening = Promise.withResolvers<number>();
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => listening.resolve(port),
  }, (request, info) => api.fetch(request, info.remoteAddr.hostname));
  try {
    await body(await listening.promise);
  } finally {
    await server.shutdown();
  }
}

Deno.test(
  "socket: an absolute-form target with a foreign host is routed by its path",
  withApi((api) =>
    served(api, async (port) => {
      const head = "Host: other.test\r\nConnection: close\r\n\r\n";
      const found = await raw(port, [`GET http://evil.test/health HTTP/1.1\r\n${head}`], /"status":"ok"/);
      assert.match(found, /^HTTP\/1\.1 200/);
      const missing = await raw(
        port,
        [`GET http://evil.test/nowhere HTTP/1.1\r\n${head}`],
        /route_not_found/,
      );
      assert.match(missing, /^HTTP\/1\.1 404/);
    })
  ),
);

Deno.test(
  "socket: an endless chunked body is answered 413 before it ends",
  withApi((api) =>
    served(api, async (port) => {
      const { secret } = await api.key();
      const head = `POST /v1/webhooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n` +
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
      const chunk = `10000\r\n${" ".repeat(65_536)}\r\n`;
      const answer = await raw(port, [head, ...Array(17).fill(chunk)], /payload_too_large/);
      assert.match(answer, /^HTTP\/1\.1 413/);
      assert.match(answer, /payload_too_large/);
    })
  ),
);

Deno.test(
  "socket: a client that goes away in mid-body harms nobody",
  withApi((api) =>
    served(api, async (port) => {
      const { secret } = await api.key();
      const socket = await Deno.connect({ hostname: "127.0.0.1", port });
      const head = `POST /v1/webhooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
      await socket.write(new TextEncoder().encode(head));
      socket.close();
      const answer = await raw(
        port,
        ["GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"],
        /"ok"/,
      );
      assert.match(answer, /^HTTP\/1\.1 200/);
    })
  ),
);

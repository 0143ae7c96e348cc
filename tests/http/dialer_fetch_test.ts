import assert from "node:assert/strict";
import { makeFetchDialer } from "../../lib/edge/dialer_fetch.ts";
import { DEADLINE_MS, MAX_RESPONSE_BYTES } from "../../lib/limits.ts";
import { cert, ManualTimers, receiver, request } from "./support.ts";

/** `fetch` cannot be pinned, so the URL names the address itself here. */
const here = (port: number, scheme = "http") =>
  request(port, { url: new URL(`${scheme}://127.0.0.1:${port}/hook`) });

function fetchDialer(permits = () => true) {
  const timers = new ManualTimers();
  return { timers, dialer: makeFetchDialer({ fetch: globalThis.fetch, timers, permits }) };
}

Deno.test("fetch transport: a redirect is an answer, never followed; Retry-After is passed on", async () => {
  await using rx = await receiver((socket) =>
    socket.end("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  );
  const { dialer, timers } = fetchDialer();
  const result = await dialer.dial(here(rx.port));
  assert.equal(result.kind === "response" && result.status, 302);
  assert.equal(rx.requests.length, 1);
  assert.equal(timers.pending, 0);
});

Deno.test("fetch transport: 4 KB of the body are kept", async () => {
  await using rx = await receiver((socket) => {
    socket.write(
      "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n",
    );
    socket.write("z".repeat(100_000));
  });
  const { dialer } = fetchDialer();
  const result = await dialer.dial(here(rx.port));
  assert(result.kind === "response");
  assert.equal(result.retryAfter, "7");
  assert.equal(result.body.length, MAX_RESPONSE_BYTES);
});

Deno.test("fetch transport: deadline, refused connection, bad certificate and shutdown have the same codes", async () => {
  await using silent = await receiver(() => {});
  const { dialer, timers } = fetchDialer();
  const hung = dialer.dial(here(silent.port));
  await silent.arrived(1);
  timers.advance(DEADLINE_MS);
  assert.deepEqual(await hung, { kind: "failed", error: "timeout", detail: "deadline" });

  const gone = await receiver(() => {});
  await gone[Symbol.asyncDispose]();
  const refused = await dialer.dial(here(gone.port));
  assert.equal(refused.kind === "failed" && refused.error, "connect");

  await using secure = await receiver(() => {}, { tls: { key: cert("self_key"), cert: cert("self") } });
  const untrusted = await dialer.dial(here(secure.port, "https"));
  assert.equal(untrusted.kind === "failed" && untrusted.error, "tls");

  const open = dialer.dial(here(silent.port));
  await silent.arrived(2);
  await dialer.close();
  assert.deepEqual(await open, { kind: "failed", error: "connect", detail: "shutdown" });
});

Deno.test("fetch transport: what the guard does not permit is blocked before a socket opens", async () => {
  await using rx = await receiver(() => {});
  const { dialer } = fetchDialer(() => false);
  const result = await dialer.dial(here(rx.port));
  assert.equal(result.kind === "failed" && result.error, "ssrf_blocked");
  assert.equal(rx.connections(), 0);
});

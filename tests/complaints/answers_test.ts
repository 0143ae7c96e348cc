/**
 * What users of other webhook systems complained about, on the receiving side: answers that broke the sender. Each goes over a real
 * socket and the whole guarded client; only a status decides.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { makeGuardedHttp, type Sent } from "../../lib/edge/http.ts";
import { DEADLINE_MS, MAX_RESPONSE_BYTES } from "../../lib/limits.ts";
import { sign, verify } from "../../mod/webhooks.ts";
import { ManualTimers, type Receiver, receiver, testDialer } from "../http/support.ts";

type Answering = Parameters<typeof receiver>[0];

/** One delivery to a receiver that answers so. */
async function deliver(
  answer: Answering,
  meanwhile: (timers: ManualTimers, rx: Receiver) => Promise<void> = () => Promise.resolve(),
): Promise<Sent> {
  const timers = new ManualTimers();
  await using rx = await receiver(answer);
  await using dialer = testDialer({ timers });
  const allowedTargets = new Set([`127.0.0.1:${rx.port}`]);
  const http = makeGuardedHttp({
    rules: { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets },
    resolver: { resolve: () => Promise.reject(new Error("an address needs no DNS")) },
    dialer,
    timers,
    now: () => timers.now,
  });
  const sent = http.send({
    url: `http://127.0.0.1:${rx.port}/in`,
    headers: { "webhook-id": "evt_1", "content-type": "application/json" },
    body: new TextEncoder().encode("{}"),
  });
  await meanwhile(timers, rx);
  const result = await sent;
  assert.equal(rx.requests.length, 1, "sent once");
  return result;
}

/** Bytes as they are: text in Latin-1, so that one character is one byte. */
const bytes = (...parts: (string | Uint8Array)[]): Answering => (socket) => {
  for (const part of parts) socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
};
const succeeded = (httpStatus: number) => ({ kind: "succeeded", httpStatus });

Deno.test("complaint: response headers that are not ASCII break the delivery", async () => {
  const values = ["caf\xe9", "\xe6\x97\xa5\xe6\x9c\xac", "\xff\xfe\x80", "=?utf-8?q?x?="];
  for (const value of values) {
    const sent = await deliver(bytes(`HTTP/1.1 200 OK\r\nX-Name: ${value}\r\nContent-Length: 0\r\n\r\n`));
    assert.deepEqual(sent.outcome, succeeded(200), JSON.stringify(value));
  }
  const reason = await deliver(bytes("HTTP/1.1 202 Angenommen \xfc\xdf\r\nContent-Length: 0\r\n\r\n"));
  assert.deepEqual(reason.outcome, succeeded(202));
});

Deno.test("complaint: an empty response counts as a failure", async () => {
  for (
    const [answer, status] of [
      ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200],
      ["HTTP/1.1 204 No Content\r\n\r\n", 204],
      ["HTTP/1.1 201 \r\nContent-Length: 0\r\n\r\n", 201],
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200],
    ] as const
  ) {
    assert.deepEqual((await deliver(bytes(answer))).outcome, succeeded(status), answer);
  }
  const closed = await deliver((socket) => socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"));
  assert.deepEqual(closed.outcome, succeeded(200));
  const nothing = await deliver((socket) => socket.end());
  assert.deepEqual(nothing.outcome, { kind: "failed", error: "connect", httpStatus: null });
});

Deno.test("complaint: a response of 10 MB fills the sender's memory, or fails", async () => {
  for (const [status, outcome] of [[200, "succeeded"], [500, "failed"]] as const) {
    const sent = await deliver((socket) => {
      socket.write(`HTTP/1.1 ${status} Big\r\nContent-Length: ${10 * 1024 * 1024}\r\n\r\n`);
      for (let i = 0; i < 160; i++) socket.write("x".repeat(65_536));
    });
    assert.deepEqual([sent.outcome.kind, "httpStatus" in sent.outcome && sent.outcome.httpStatus], [
      outcome,
      status,
    ]);
    assert.equal(sent.responseBody!.length, MAX_RESPONSE_BYTES);
  }
});

Deno.test("complaint: a body that drips holds a worker for ever", async () => {
  let drip = () => {};
  const sent = await deliver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    drip = () => void socket.write("1\r\nb\r\n");
  }, async (timers, rx) => {
    await rx.arrived(1);
    drip();
    // Its first bytes are through this event loop before another answer is.
    await deliver(bytes("HTTP/1.1 204 No Content\r\n\r\n"));
    await deliver(bytes("HTTP/1.1 204 No Content\r\n\r\n"));
    timers.advance(DEADLINE_MS);
    await rx.closed(1);
  });
  assert.deepEqual(sent.outcome, succeeded(200));
});

Deno.test("complaint: a response that is no text, or not what its headers say, breaks the delivery", async () => {
  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 128, 10]);
  const answers: [reason: string, type: string, body: Uint8Array][] = [
    ["an image", "Content-Type: image/png", png],
    ["bytes that are no UTF-8", "Content-Type: text/plain; charset=utf-8", Uint8Array.of(0xff, 0xfe, 0xc3)],
    ["JSON that is none", "Content-Type: application/json", new TextEncoder().encode("{oops")],
    ["a type that is none", "Content-Type: ;;;", png],
    ["gzip", "Content-Encoding: gzip", gzipSync("fine")],
    ["gzip that is none", "Content-Encoding: gzip", png],
    ["a coding nobody knows", "Content-Encoding: x-mine", png],
  ];
  for (const [reason, header, body] of answers) {
    const sent = await deliver(
      bytes(`HTTP/1.1 200 OK\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n`, body),
    );
    assert.deepEqual(sent.outcome, succeeded(200), reason);
  }
});

Deno.test("complaint: the case of a header's name matters", async () => {
  for (const name of ["retry-after", "Retry-After", "RETRY-AFTER", "rEtRy-aFtEr"]) {
    const sent = await deliver(bytes(`HTTP/1.1 503 Wait\r\n${name}: 120\r\nCONTENT-LENGTH: 0\r\n\r\n`));
    assert.deepEqual(
      sent.outcome,
      { kind: "failed", error: "status_5xx", httpStatus: 503, retryAfterMs: 120_000 },
      name,
    );
  }
  // And for receivers that hand our headers on under other names: the verifier of the library takes any.
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`, body = '{"a":1}';
  const signed = Object.entries(sign(secret, { id: "evt_1", body }));
  for (const other of [(name: string) => name.toUpperCase(), (name: string) => `W${name.slice(1)}`]) {
    const headers = Object.fromEntries(signed.map(([name, value]) => [other(name), value]));
    assert.equal(verify(secret, headers, body).id, "evt_1", Object.keys(headers)[0]);
  }
});

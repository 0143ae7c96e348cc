import assert from "node:assert/strict";
import { DEADLINE_MS, MAX_RESPONSE_BYTES } from "../../lib/limits.ts";
import { ManualTimers, OK, receiver, reply, request, testDialer } from "./support.ts";

const text = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);

Deno.test("no_redirects_and_caps: the request is one POST with our headers, the stored bytes and no more", async () => {
  await using rx = await receiver(reply(OK));
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert.deepEqual(result, { kind: "response", status: 204, retryAfter: null, body: new Uint8Array(0) });
  assert.equal(rx.requests.length, 1);
  assert.equal(rx.requests[0]!.body, '{"a":1}');
  assert.deepEqual(rx.requests[0]!.head.split("\r\n"), [
    "POST /hook?a=1 HTTP/1.1",
    `host: hooks.example.com:${rx.port}`,
    "connection: keep-alive",
    "content-type: application/json",
    "webhook-id: evt_1",
    "content-length: 7",
  ]);
});

for (const status of [301, 302, 303, 307, 308, 304]) {
  Deno.test(`no_redirects_and_caps: ${status} is an answer, never followed`, async () => {
    await using rx = await receiver((socket) =>
      socket.write(
        `HTTP/1.1 ${status} Moved\r\nLocation: http://hooks.example.com:${rx.port}/next\r\nContent-Length: 0\r\n\r\n`,
      )
    );
    await using dialer = testDialer();
    const result = await dialer.dial(request(rx.port));
    assert.equal(result.kind === "response" && result.status, status);
    await dialer.close();
    assert.equal(rx.requests.length, 1);
  });
}

Deno.test("no_redirects_and_caps: 15 s without an answer is a timeout and the connection is dropped", async () => {
  await using rx = await receiver(() => {});
  const timers = new ManualTimers();
  await using dialer = testDialer({ timers });
  const dialled = dialer.dial(request(rx.port));
  await rx.arrived(1);
  let settled = false;
  dialled.then(() => settled = true);
  timers.advance(DEADLINE_MS - 1);
  await Promise.resolve();
  assert.equal(settled, false);
  timers.advance(1);
  assert.deepEqual(await dialled, { kind: "failed", error: "timeout", detail: "deadline" });
  await rx.closed(1);
});

Deno.test("no_redirects_and_caps: the deadline also ends a connection that was never made", async () => {
  // A TLS handshake that never starts: the socket is open, undici not yet connected and deaf to an abort.
  await using rx = await receiver(() => {});
  const timers = new ManualTimers();
  await using dialer = testDialer({ timers });
  const dialled = dialer.dial(request(rx.port, { scheme: "https", timeoutMs: 3_000 }));
  timers.advance(3_000);
  assert.deepEqual(await dialled, { kind: "failed", error: "timeout", detail: "deadline" });
  assert.equal(rx.requests.length, 0);
});

Deno.test("no_redirects_and_caps: no time left is a timeout without a connection", async () => {
  await using rx = await receiver(reply(OK));
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port, { timeoutMs: 0 }));
  assert.deepEqual(result, { kind: "failed", error: "timeout", detail: "deadline" });
  assert.equal(rx.connections(), 0);
});

Deno.test("no_redirects_and_caps: deadlines of different lengths end in their own order on one timer", async () => {
  await using rx = await receiver(() => {});
  const timers = new ManualTimers();
  await using dialer = testDialer({ timers });
  const order: number[] = [];
  const all = [9_000, 2_000, 5_000].map((timeoutMs) =>
    dialer.dial(request(rx.port, { timeoutMs })).then(() => order.push(timeoutMs))
  );
  await rx.arrived(3);
  assert.equal(timers.pending, 1);
  timers.advance(2_000);
  await all[1];
  timers.advance(3_000);
  await all[2];
  timers.advance(4_000);
  await all[0];
  assert.deepEqual(order, [2_000, 5_000, 9_000]);
});

Deno.test("no_redirects_and_caps: 4 KB of a 10 MB body are kept, then the connection goes", async () => {
  await using rx = await receiver((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${10 * 1024 * 1024}\r\n\r\n`);
    for (let i = 0; i < 160; i++) socket.write("x".repeat(65_536));
  });
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert(result.kind === "response");
  assert.equal(result.status, 200);
  assert.equal(text(result.body), "x".repeat(MAX_RESPONSE_BYTES));
  await rx.closed(1);
});

Deno.test("no_redirects_and_caps: exactly 4 KB is complete and keeps the connection", async () => {
  await using rx = await receiver(
    reply(
      `HTTP/1.1 200 OK\r\nContent-Length: ${MAX_RESPONSE_BYTES}\r\n\r\n${"y".repeat(MAX_RESPONSE_BYTES)}`,
    ),
  );
  await using dialer = testDialer();
  for (let i = 0; i < 3; i++) {
    const result = await dialer.dial(request(rx.port));
    assert.equal(result.kind === "response" && result.body.length, MAX_RESPONSE_BYTES);
  }
  assert.equal(rx.connections(), 1);
});

Deno.test("no_redirects_and_caps: a body that drips ends with the deadline, and the status stands", async () => {
  let more = () => {};
  await using rx = await receiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    more = () => void socket.write("1\r\nb\r\n");
  });
  const timers = new ManualTimers();
  await using dialer = testDialer({ timers });
  const dialled = dialer.dial(request(rx.port));
  await rx.arrived(1);
  more();
  // Answers on another connection: by then the first bytes of the drip are through the same event loop.
  await using other = await receiver(reply(OK));
  for (let i = 0; i < 5; i++) await dialer.dial(request(other.port));
  timers.advance(DEADLINE_MS);
  const result = await dialled;
  assert(result.kind === "response");
  assert.equal(result.status, 200);
  assert.match(text(result.body), /^ab?$/);
  await rx.closed(1);
});

Deno.test("no_redirects_and_caps: a body that breaks off leaves the status standing", async () => {
  await using rx = await receiver((socket) =>
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
  );
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert(result.kind === "response");
  assert.equal(result.status, 200);
});

Deno.test("no_redirects_and_caps: bytes that are no text come back as they are, and headers need not be ASCII", async () => {
  await using rx = await receiver((socket) => {
    socket.write(
      new Uint8Array([...new TextEncoder().encode("HTTP/1.1 200 OK\r\nX-Caf"), 0xe9, 0x3a, 0x20, 0xff]),
    );
    socket.write("\r\nX-Name: é日本\r\nContent-Length: 3\r\n\r\n");
    socket.write(new Uint8Array([0, 255, 128]));
  });
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  // A header NAME outside ASCII is no HTTP; only the answer may differ by parser, never an exception.
  assert(result.kind === "response" || result.error === "connect");

  await using ok = await receiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nX-Name: \xe9日本\r\nContent-Length: 3\r\n\r\n");
    socket.write(new Uint8Array([0, 255, 128]));
  });
  const answer = await dialer.dial(request(ok.port));
  assert(answer.kind === "response");
  assert.deepEqual([...answer.body], [0, 255, 128]);
});

Deno.test("no_redirects_and_caps: interim answers are passed over", async () => {
  await using rx = await receiver(reply("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK));
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert.equal(result.kind === "response" && result.status, 204);
});

Deno.test("no_redirects_and_caps: Retry-After is read in any case of its name, for 429 and 503", async () => {
  for (const [status, name] of [[429, "retry-AFTER"], [503, "Retry-After"]] as const) {
    await using rx = await receiver(
      reply(`HTTP/1.1 ${status} Wait\r\n${name}: 120\r\nContent-Length: 0\r\n\r\n`),
    );
    await using dialer = testDialer();
    const result = await dialer.dial(request(rx.port));
    assert.equal(result.kind === "response" && result.retryAfter, "120");
  }
});

Deno.test("no_redirects_and_caps: answers that are no HTTP, or none, are connect failures", async () => {
  const answers = [
    "",
    "nonsense\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
  ]
    .concat(`HTTP/1.1 200 OK\r\n${"X-Long: y\r\n".repeat(4_000)}\r\n`);
  for (const answer of answers) {
    await using rx = await receiver((socket) => socket.end(answer));
    await using dialer = testDialer();
    const result = await dialer.dial(request(rx.port));
    assert(result.kind === "failed", answer.slice(0, 40));
    assert.equal(result.error, "connect", `${answer.slice(0, 40)}: ${result.detail}`);
    assert.equal(rx.requests.length, 1);
  }
});

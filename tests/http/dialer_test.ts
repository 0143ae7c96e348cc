import assert from "node:assert/strict";
import { KEEP_ALIVE_MS, POOL_IDLE_MS } from "../../lib/limits.ts";
import { pinnedLookup, type PoolOptions, Pools } from "../../lib/edge/pools.ts";
import { cert, ManualTimers, OK, receiver, reply, request, testDialer } from "./support.ts";

const TLS = { key: cert("cert_key"), cert: cert("cert") };
const CLOSE = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

Deno.test("D3: the socket goes to the judged address, SNI, Host and the certificate stay with the name", async () => {
  await using rx = await receiver(reply(OK), { host: "127.0.0.3", tls: TLS });
  await using dialer = testDialer({ ca: cert("ca") });
  const result = await dialer.dial(request(rx.port, { scheme: "https", address: "127.0.0.3" }));
  assert.deepEqual(result, { kind: "response", status: 204, retryAfter: null, body: new Uint8Array(0) });
  const [seen] = rx.requests;
  assert.equal(seen!.localAddress, "127.0.0.3");
  assert.equal(seen!.servername, "hooks.example.com");
  assert.match(seen!.head, new RegExp(`\r\nhost: hooks\\.example\\.com:${rx.port}\r\n`));
});

Deno.test("D3: the look-up hook answers with the judged address in both forms, later, and never throws", async () => {
  const look = (host: string, options: { all?: boolean }) =>
    new Promise<unknown[]>((done) => {
      let later = false;
      pinnedLookup("hooks.example.com", "2606:4700::1")(host, options, (...got) => {
        assert(later);
        done(got);
      });
      later = true;
    });
  assert.deepEqual(await look("hooks.example.com", {}), [null, "2606:4700::1", 6]);
  assert.deepEqual(await look("hooks.example.com", { all: true }), [null, [{
    address: "2606:4700::1",
    family: 6,
  }]]);
  const [error] = await look("other.example.com", {});
  assert.equal((error as { code: string }).code, "ssrf_blocked");
});

Deno.test("D3: connections are not shared between addresses of one origin, nor between origins of one address", async () => {
  await using rx = await receiver(reply(OK), { host: "0.0.0.0" });
  await using dialer = testDialer();
  const url = (host: string) => new URL(`http://${host}:${rx.port}/`);
  for (const address of ["127.0.0.1", "127.0.0.2", "127.0.0.1"]) {
    await dialer.dial(request(rx.port, { address }));
  }
  await dialer.dial(request(rx.port, { url: url("other.example.com") }));
  assert.deepEqual(rx.requests.map((r) => [r.localAddress, r.connection]), [
    ["127.0.0.1", 1],
    ["127.0.0.2", 2],
    ["127.0.0.1", 1],
    ["127.0.0.1", 3],
  ]);
});

Deno.test("D3: what the guard does not permit is blocked before a socket opens, whoever calls", async () => {
  await using rx = await receiver(reply(OK));
  await using dialer = testDialer({ permits: (_url, address) => address !== "127.0.0.1" });
  const blocked = { kind: "failed", error: "ssrf_blocked", detail: "ssrf_blocked" };
  assert.deepEqual(await dialer.dial(request(rx.port)), blocked);
  // The look-up hook is never asked for a literal, so the literal must be the judged address itself.
  const url = new URL(`http://127.0.0.1:${rx.port}/`);
  assert.deepEqual(await dialer.dial(request(rx.port, { url, address: "93.184.216.34" })), blocked);
  assert.equal(rx.connections(), 0);
});

for (
  const [name, options, dial] of [
    ["a self-signed certificate", { key: cert("self_key"), cert: cert("self") }, {}],
    ["a certificate for another name", TLS, { url: "https://other.example.com" }],
    ["plain HTTP where TLS is due", undefined, {}],
  ] as const
) {
  Deno.test(`tls: ${name} is refused and nothing is sent`, async () => {
    await using rx = await receiver((socket) => socket.end("nope"), {
      ...(options ? { tls: options } : { onConnection: (socket) => socket.end("nope") }),
    });
    await using dialer = testDialer({ ca: cert("ca") });
    const url = "url" in dial ? { url: new URL(`${dial.url}:${rx.port}/`) } : {};
    const result = await dialer.dial(request(rx.port, { scheme: "https", ...url }));
    assert.equal(result.kind === "failed" && result.error, "tls", JSON.stringify(result));
    assert.equal(rx.requests.length, 0);
  });
}

Deno.test("tls: a certificate of no known authority is refused without a private one too", async () => {
  await using rx = await receiver(reply(OK), { tls: TLS });
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port, { scheme: "https" }));
  assert.equal(result.kind === "failed" && result.error, "tls");
});

Deno.test("a refused connection is connect", async () => {
  const rx = await receiver(reply(OK));
  await rx[Symbol.asyncDispose]();
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert.deepEqual(result, { kind: "failed", error: "connect", detail: "ECONNREFUSED" });
});

Deno.test("sent once: a connection reset after the request is one POST and one connect failure", async () => {
  await using rx = await receiver((socket) => socket.resetAndDestroy());
  await using dialer = testDialer();
  const result = await dialer.dial(request(rx.port));
  assert.equal(result.kind === "failed" && result.error, "connect");
  // A second dial and its answer leave room for a stray repeat of the first to show up.
  await dialer.dial(request(rx.port, { body: new TextEncoder().encode("second") }));
  assert.deepEqual(rx.requests.map((r) => r.body), ['{"a":1}', "second"]);
});

Deno.test("sent once: also when the reset comes on a connection that has been used before", async () => {
  await using rx = await receiver((socket, { body }) => {
    if (body === "reset") socket.resetAndDestroy();
    else socket.write(OK);
  });
  await using dialer = testDialer();
  await dialer.dial(request(rx.port));
  const result = await dialer.dial(request(rx.port, { body: new TextEncoder().encode("reset") }));
  assert.equal(result.kind === "failed" && result.error, "connect");
  await dialer.dial(request(rx.port));
  assert.deepEqual(rx.requests.map((r) => [r.body, r.connection]), [['{"a":1}', 1], ["reset", 1], [
    '{"a":1}',
    2,
  ]]);
});

Deno.test("a receiver that closes idle connections causes no failure once its close has arrived", async () => {
  await using rx = await receiver((socket) => socket.end(OK)); // says keep-alive by default, closes all the same
  await using dialer = testDialer();
  for (let i = 1; i <= 5; i++) {
    const result = await dialer.dial(request(rx.port));
    assert.equal(result.kind, "response", JSON.stringify(result));
    await rx.closed(i);
  }
  assert.equal(rx.requests.length, 5);
});

Deno.test("a connection is reused when the receiver allows it and not when it says close", async () => {
  for (const [answer, connections] of [[OK, 1], [CLOSE, 4]] as const) {
    await using rx = await receiver(reply(answer));
    await using dialer = testDialer();
    for (let i = 0; i < 4; i++) assert.equal((await dialer.dial(request(rx.port))).kind, "response");
    assert.equal(rx.connections(), connections);
  }
  assert(KEEP_ALIVE_MS < 5_000);
});

Deno.test("attempts in flight at once have a connection each and do not queue behind one another", async () => {
  const held: (() => void)[] = [];
  await using rx = await receiver((socket, { body }) => {
    if (body === "slow") held.push(() => socket.write(OK));
    else socket.write(OK);
  });
  await using dialer = testDialer();
  const slow = Array.from(
    { length: 40 },
    () => dialer.dial(request(rx.port, { body: new TextEncoder().encode("slow") })),
  );
  await rx.arrived(40);
  assert.equal((await dialer.dial(request(rx.port))).kind, "response");
  for (const go of held) go();
  for (const result of await Promise.all(slow)) assert.equal(result.kind, "response");
  assert.equal(rx.connections(), 41);
});

Deno.test("D4: closing ends what is in flight and what comes after as shutdown", async () => {
  await using rx = await receiver(() => {});
  const dialer = testDialer();
  const dialled = dialer.dial(request(rx.port));
  await rx.arrived(1);
  await dialer.close();
  const shutdown = { kind: "failed", error: "connect", detail: "shutdown" };
  assert.deepEqual(await dialled, shutdown);
  assert.deepEqual(await dialer.dial(request(rx.port)), shutdown);
  assert.equal(rx.requests.length, 1);
});

Deno.test("lanes: bounded, the least recently used goes first and idle ones go by themselves", async () => {
  const timers = new ManualTimers();
  const options: PoolOptions = { clock: () => timers.now, permits: () => true, maxPools: 3 };
  const pools = new Pools(options);
  const get = (host: string) =>
    pools.get(new URL(`https://${host}.example.com/`), "93.184.216.34", timers.now);
  const a = get("a");
  get("b");
  get("c");
  assert.equal(get("a"), a);
  get("d");
  assert.equal(pools.size, 3);
  assert.equal(get("a"), a); // b went, not a
  timers.advance(POOL_IDLE_MS + 1);
  get("e");
  assert.equal(pools.size, 1);
  await pools.destroy();
});

Deno.test("lanes: one that is retired while busy finishes its request", async () => {
  let answer = () => {};
  await using rx = await receiver((socket, { body }) => {
    if (body === "held") answer = () => void socket.write(OK);
    else socket.write(OK);
  });
  await using dialer = testDialer({ maxPools: 1 });
  const held = dialer.dial(request(rx.port, { body: new TextEncoder().encode("held") }));
  await rx.arrived(1);
  await dialer.dial(request(rx.port, { url: new URL(`http://other.example.com:${rx.port}/`) }));
  answer();
  assert.equal((await held).kind, "response");
  await rx.closed(1);
});

import assert from "node:assert/strict";
import dgram from "node:dgram";
import { DnsFailure, makeResolver } from "../../lib/edge/resolver.ts";
import { DNS_PROBE_MS, DNS_TIMEOUT_MS } from "../../lib/limits.ts";
import { ManualTimers } from "./support.ts";

const NOERROR = 0, SERVFAIL = 2, NXDOMAIN = 3;
const TYPE: Record<number, string> = { 1: "A", 2: "NS", 28: "AAAA" };
type Zone = (name: string, type: string) => { rcode: number; data?: number[][] } | "silence";

/** A name server on this machine that answers as `zone` says. */
async function nameServer(zone: Zone) {
  const socket = dgram.createSocket("udp4");
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  socket.on("message", (query: Uint8Array, from) => {
    let at = 12;
    const labels: string[] = [];
    for (; query[at] !== 0; at += query[at]! + 1) {
      labels.push(String.fromCharCode(...query.subarray(at + 1, at + 1 + query[at]!)));
    }
    const type = TYPE[query[at + 2]!] ?? "?";
    const question = query.subarray(12, at + 5);
    const name = labels.join(".") + ".";
    asked.push(`${name} ${type}`);
    waiting.splice(0).forEach((go) => go());
    const answer = zone(name, type);
    if (answer === "silence") return;
    const records = (answer.data ?? []).map((
      data,
    ) => [0xc0, 12, 0, query[at + 2]!, 0, 1, 0, 0, 0, 60, 0, data.length, ...data]);
    const header = [query[0]!, query[1]!, 0x81, 0x80 | answer.rcode, 0, 1, 0, records.length, 0, 0, 0, 0];
    socket.send(new Uint8Array([...header, ...question, ...records.flat()]), from.port, from.address);
  });
  await new Promise<void>((ready) => socket.bind(0, "127.0.0.1", () => ready()));
  return {
    nameServer: { ipAddr: "127.0.0.1", port: socket.address().port },
    asked,
    async arrived(question: string) {
      while (!asked.includes(question)) await new Promise<void>((go) => waiting.push(go));
    },
    [Symbol.asyncDispose]: () => new Promise<void>((done) => socket.close(() => done())),
  };
}

Deno.test("resolver: A and AAAA of the rooted name, every time anew", async () => {
  await using dns = await nameServer((_name, type) => ({
    rcode: NOERROR,
    data: type === "A"
      ? [[93, 184, 216, 34], [8, 8, 8, 8]]
      : [[0x26, 0x06, 0x47, 0, ...Array(11).fill(0), 1]],
  }));
  const timers = new ManualTimers();
  const resolver = makeResolver({ resolveDns: Deno.resolveDns, timers, nameServer: dns.nameServer });
  for (let i = 0; i < 2; i++) {
    const { a, aaaa } = await resolver.resolve("hooks.example.com");
    assert.deepEqual(a.sort(), ["8.8.8.8", "93.184.216.34"]);
    assert.deepEqual(aaaa, ["2606:4700::1"]);
  }
  assert.deepEqual(
    dns.asked.toSorted(),
    ["hooks.example.com. A", "hooks.example.com. A"]
      .concat(["hooks.example.com. AAAA", "hooks.example.com. AAAA"]),
  );
  assert.equal(timers.pending, 0);
});

for (
  const [what, rcode] of [["no such name", NXDOMAIN], ["no such records", NOERROR], [
    "SERVFAIL for the name",
    SERVFAIL,
  ]] as const
) {
  Deno.test(`resolver: ${what} is two empty lists`, async () => {
    await using dns = await nameServer(() => ({ rcode }));
    const timers = new ManualTimers();
    const resolver = makeResolver({ resolveDns: Deno.resolveDns, timers, nameServer: dns.nameServer });
    assert.deepEqual(await resolver.resolve("hooks.example.com"), { a: [], aaaa: [] });
  });
}

async function faultWhen(zone: Zone, after: (timers: ManualTimers, probed: Promise<void>) => Promise<void>) {
  await using dns = await nameServer(zone);
  const timers = new ManualTimers();
  const resolver = makeResolver({ resolveDns: Deno.resolveDns, timers, nameServer: dns.nameServer });
  const resolved = resolver.resolve("hooks.example.com").then(() => null, (error) => error);
  await dns.arrived("hooks.example.com. A");
  timers.advance(DNS_TIMEOUT_MS);
  await after(timers, dns.arrived(". NS"));
  const error = await resolved;
  assert(error instanceof DnsFailure);
  return error.fault;
}

Deno.test("resolver: a name whose servers do not answer, while the resolver does, is the name's fault", async () => {
  const zone: Zone = (name) => name === "." ? { rcode: SERVFAIL } : "silence";
  assert.equal(await faultWhen(zone, async (_timers, probed) => await probed), "name");
});

Deno.test("D4: a resolver that answers nothing at all is our fault", async () => {
  const fault = await faultWhen(() => "silence", async (timers, probed) => {
    await probed;
    timers.advance(DNS_PROBE_MS);
  });
  assert.equal(fault, "ours");
});

Deno.test("D4: look-ups that fail together ask after the resolver once", async () => {
  const timers = new ManualTimers();
  let probes = 0;
  const resolveDns = ((name: string) => {
    if (name === ".") probes++;
    return Promise.reject(new Deno.errors.ConnectionRefused("no"));
  }) as typeof Deno.resolveDns;
  const resolver = makeResolver({ resolveDns, timers });
  const all = await Promise.allSettled([1, 2, 3].map((i) => resolver.resolve(`h${i}.example.com`)));
  for (const one of all) assert.equal(one.status === "rejected" && one.reason.fault, "ours");
  assert.equal(probes, 1);
});

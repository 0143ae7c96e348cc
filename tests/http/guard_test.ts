import assert from "node:assert/strict";
import { DEADLINE_MS, DNS_CHECK_MS } from "../../lib/limits.ts";
import { type GuardedHttp, makeGuardedHttp, permits } from "../../lib/edge/http.ts";
import type { Addresses, Dialer, DialRequest, DialResult } from "../../lib/edge/ports.ts";
import { DnsFailure } from "../../lib/edge/resolver.ts";
import type { UrlRules } from "../../lib/ssrf/url.ts";
import { ManualTimers, OK, receiver, reply, testDialer } from "./support.ts";

const PUBLIC = "93.184.216.34";
const URL_TEXT = "https://hooks.example.com/w?token=x";
const NO_CONTENT: DialResult = { kind: "response", status: 204, retryAfter: null, body: new Uint8Array(0) };

interface Setup {
  answers?: (host: string, turn: number) => Promise<Addresses> | Addresses;
  dial?: (request: DialRequest) => DialResult;
  allowed?: string[];
}

/** The guard over scripted DNS and a dialler that only writes down what it was asked. */
function setup(
  { answers = () => ({ a: [PUBLIC], aaaa: [] }), dial = () => NO_CONTENT, allowed = [] }: Setup = {},
) {
  const timers = new ManualTimers();
  const dialled: DialRequest[] = [];
  const asked: string[] = [];
  const rules: UrlRules = {
    apiHost: null,
    consoleHost: null,
    platformDomain: null,
    allowedTargets: new Set(allowed),
  };
  const dialer: Dialer = {
    dial: (request) => (dialled.push(request), Promise.resolve(dial(request))),
    close: () => Promise.resolve(),
  };
  const resolver = {
    resolve: async (host: string) => (asked.push(host), await answers(host, asked.length)),
  };
  const http = makeGuardedHttp({ rules, resolver, dialer, timers, now: () => timers.now });
  return { http, timers, dialled, asked, rules };
}

const send = (http: GuardedHttp, url = URL_TEXT) =>
  http.send({ url, headers: { "webhook-id": "evt_1" }, body: new TextEncoder().encode("{}") });

Deno.test("D3: a URL is judged, resolved, judged again and dialled at one of its judged addresses", async () => {
  const { http, dialled, asked } = setup();
  assert.deepEqual((await send(http)).outcome, { kind: "succeeded", httpStatus: 204 });
  assert.deepEqual(asked, ["hooks.example.com"]);
  assert.equal(dialled.length, 1);
  assert.equal(dialled[0]!.address, PUBLIC);
  assert.equal(dialled[0]!.url.href, URL_TEXT);
  assert.equal(dialled[0]!.timeoutMs, DEADLINE_MS);
});

Deno.test("D3: DNS rebinding: answers are asked for and judged in every attempt, none is kept", async () => {
  const { http, dialled, asked } = setup({
    answers: (_host, turn) => ({ a: [turn === 1 ? PUBLIC : "127.0.0.1"], aaaa: [] }),
  });
  assert.equal((await send(http)).outcome.kind, "succeeded");
  assert.deepEqual((await send(http)).outcome, { kind: "failed", error: "ssrf_blocked", httpStatus: null });
  assert.equal(asked.length, 2);
  assert.deepEqual(dialled.map((d) => d.address), [PUBLIC]);
});

Deno.test("D3: one bad answer among good ones, of either family, blocks the attempt", async () => {
  for (const answer of [{ a: [PUBLIC, "10.0.0.1"], aaaa: [] }, { a: [PUBLIC], aaaa: ["::1"] }]) {
    const { http, dialled } = setup({ answers: () => answer });
    assert.deepEqual((await send(http)).outcome, { kind: "failed", error: "ssrf_blocked", httpStatus: null });
    assert.equal(dialled.length, 0);
  }
});

Deno.test("D3: of several addresses each attempt takes the next, IPv4 before IPv6", async () => {
  const { http, dialled } = setup({ answers: () => ({ a: ["8.8.8.8", "8.8.4.4"], aaaa: ["2606:4700::1"] }) });
  for (let i = 0; i < 3; i++) await send(http);
  assert.deepEqual(dialled.map((d) => d.address), ["8.8.8.8", "8.8.4.4", "8.8.8.8"]);
  const v6 = setup({ answers: () => ({ a: [], aaaa: ["2606:4700::1"] }) });
  await send(v6.http);
  assert.equal(v6.dialled[0]!.address, "2606:4700::1");
});

Deno.test("D3: a refused URL asks no DNS and dials nothing", async () => {
  const cases = [
    ["https://127.0.0.1/", "ssrf_blocked"],
    ["http://hooks.example.com/", "ssrf_blocked"],
    ["https://hooks.example.com:99999/", "invalid_url"],
  ] as const;
  for (const [url, error] of cases) {
    const { http, dialled, asked } = setup();
    assert.deepEqual((await send(http, url)).outcome, { kind: "failed", error, httpStatus: null });
    assert.equal(dialled.length + asked.length, 0);
  }
});

Deno.test("dns: a name without addresses, or whose servers fail, is charged as dns", async () => {
  const none = setup({ answers: () => ({ a: [], aaaa: [] }) });
  assert.deepEqual((await send(none.http)).outcome, { kind: "failed", error: "dns", httpStatus: null });
  const broken = setup({ answers: () => Promise.reject(new DnsFailure("name", "SERVFAIL")) });
  assert.deepEqual((await send(broken.http)).outcome, { kind: "failed", error: "dns", httpStatus: null });
});

Deno.test("D4: a broken DNS set-up, a lack of sockets and a shutdown are ours, never the endpoint's", async () => {
  const dns = setup({ answers: () => Promise.reject(new DnsFailure("ours", "no resolver")) });
  assert.deepEqual((await send(dns.http)).outcome, { kind: "ours", reason: "dns_unreachable" });
  const unforeseen = setup({ answers: () => Promise.reject(new Error("boom")) });
  assert.deepEqual((await send(unforeseen.http)).outcome, { kind: "ours", reason: "dns_unreachable" });
  for (const detail of ["EMFILE", "EADDRNOTAVAIL", "shutdown", "UND_ERR_INVALID_ARG", "NotCapable"]) {
    const { http } = setup({ dial: () => ({ kind: "failed", error: "connect", detail }) });
    assert.deepEqual((await send(http)).outcome, { kind: "ours", reason: detail });
  }
  const theirs = setup({ dial: () => ({ kind: "failed", error: "connect", detail: "ECONNREFUSED" }) });
  assert.equal((await send(theirs.http)).outcome.kind, "failed");
});

Deno.test("no_redirects_and_caps: the 15 s hold for DNS and the request together", async () => {
  const late: ((answer: Addresses) => void)[] = [];
  const { http, timers, dialled } = setup({ answers: () => new Promise((answer) => late.push(answer)) });
  const slow = send(http);
  timers.advance(6_000);
  late[0]!({ a: [PUBLIC], aaaa: [] });
  const sent = await slow;
  assert.equal(dialled[0]!.timeoutMs, DEADLINE_MS - 6_000);
  assert.equal(sent.durationMs, 6_000);
  assert.equal(timers.pending, 0);

  const hung = send(http);
  timers.advance(DEADLINE_MS);
  assert.deepEqual(await hung, {
    outcome: { kind: "failed", error: "timeout", httpStatus: null },
    durationMs: DEADLINE_MS,
  });
  late[1]!({ a: [PUBLIC], aaaa: [] }); // too late to matter
  assert.equal(dialled.length, 1);
});

Deno.test("allowed targets: exact host and port, http, no DNS for literals and localhost", async () => {
  await using rx = await receiver(reply(OK));
  const allowed = [`127.0.0.1:${rx.port}`, `localhost:${rx.port}`];
  const { rules, timers } = setup({ allowed });
  await using dialer = testDialer({ permits: permits(rules) });
  const resolver = { resolve: () => Promise.reject(new Error("not asked")) };
  const http = makeGuardedHttp({ rules, resolver, dialer, timers, now: () => timers.now });
  for (const host of ["127.0.0.1", "localhost"]) {
    const { outcome } = await send(http, `http://${host}:${rx.port}/x`);
    assert.deepEqual(outcome, { kind: "succeeded", httpStatus: 204 });
  }
  assert.deepEqual(rx.requests.map((r) => r.head.split("\r\n")[1]), allowed.map((host) => `host: ${host}`));
  const other = await send(http, `http://127.0.0.1:${rx.port + 1}/x`);
  assert.deepEqual(other.outcome, { kind: "failed", error: "ssrf_blocked", httpStatus: null });
});

Deno.test("check: the rule and its sentence for a refused URL or address", async () => {
  const { http } = setup({ answers: () => ({ a: ["10.0.0.1"], aaaa: [] }) });
  const literal = await http.check("https://127.0.0.1/");
  assert.deepEqual(literal, {
    ok: false,
    rule: "ip_literal",
    message: "must name its host, not give an IP address",
  });
  const inside = await http.check(URL_TEXT);
  assert.equal(inside.ok ? "" : inside.rule, "private_address");
});

Deno.test("check: a name that does not resolve yet, or DNS out of reach, leaves it to the attempts", async () => {
  const resolved = async (answers: Setup["answers"]) => {
    const { http, timers } = setup(answers ? { answers } : {});
    const verdict = http.check(URL_TEXT);
    timers.advance(DNS_CHECK_MS - 1);
    await Promise.resolve();
    return { verdict, timers };
  };
  const of = async (answers: Setup["answers"]) => {
    const verdict = await (await resolved(answers)).verdict;
    return verdict.ok ? verdict.resolved : verdict.rule;
  };
  assert.equal(await of(undefined), "public");
  assert.equal(await of(() => ({ a: [], aaaa: [] })), "none");
  assert.equal(await of(() => Promise.reject(new DnsFailure("ours", "x"))), "unknown");
  const { verdict, timers } = await resolved(() => new Promise(() => {}));
  timers.advance(1);
  const late = await verdict;
  assert.equal(late.ok && late.resolved, "unknown");
});

/** The URL rules where a constant decides: every port, the longest name, what is allowed for development, the platform's own names. */
import assert from "node:assert/strict";
import { judgeUrl, literalOf, target, type UrlRules } from "../../lib/ssrf/url.ts";
import { urlIsFine } from "./second_guard.ts";

const NONE: UrlRules = { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set() };
const fine = (url: string, rules: Partial<UrlRules> = {}) => judgeUrl(url, { ...NONE, ...rules }).ok;

Deno.test("ssrf_url_rules: every port there is, against the second guard", () => {
  const refused: number[] = [];
  for (let port = 0; port <= 65_535; port++) {
    const url = `https://hooks.example.com:${port}/`, ok = fine(url);
    if (ok !== urlIsFine(url)) assert.fail(`port ${port}`);
    if (!ok && port >= 1024) refused.push(port);
  }
  // https://fetch.spec.whatwg.org/#bad-port
  assert.deepEqual(
    refused,
    [
      1719,
      1720,
      1723,
      2049,
      3659,
      4045,
      4190,
      5060,
      5061,
      6000,
      6566,
      6665,
      6666,
      6667,
      6668,
      6669,
      6679,
      6697,
      10080,
    ],
  );
});

Deno.test("ssrf_url_rules: a name of 253 characters is the longest", () => {
  const name = (length: number) => `${"a.".repeat(100)}${"b".repeat(length - 204)}.com`;
  for (const [length, ok] of [[252, true], [253, true], [254, false]] as const) {
    assert.equal(name(length).length, length);
    assert.equal(fine(`https://${name(length)}/`), ok, String(length));
  }
});

Deno.test("allowed targets: http and https alone, exact host and port, the scheme's own port written out, and said to be allowed", () => {
  const rules = { allowedTargets: new Set(["127.0.0.1:9000", "receiver:80", "secure:443"]) };
  const table: [url: string, allowed: boolean | null][] = [
    ["http://127.0.0.1:9000/x", true],
    ["https://127.0.0.1:9000/x", true],
    ["ftp://127.0.0.1:9000/x", null],
    ["ws://127.0.0.1:9000/x", null],
    ["http://receiver/", true],
    ["https://receiver/", null],
    ["http://receiver:443/", null],
    ["https://secure/", true],
    ["http://secure/", null],
    ["https://hooks.example.com/", false],
  ];
  for (const [url, allowed] of table) {
    const verdict = judgeUrl(url, { ...NONE, ...rules });
    assert.equal(verdict.ok ? verdict.allowed : null, allowed, url);
  }
  assert.equal(target(new URL("https://a.example.com/")), "a.example.com:443");
  assert.equal(target(new URL("http://a.example.com/")), "a.example.com:80");
  assert.equal(target(new URL("http://a.example.com:443/")), "a.example.com:443");
});

Deno.test("literals: the address of a host that is one, without brackets, and null for a name", () => {
  const table: [string, string | null][] = [
    ["[::1]", "::1"],
    ["[2606:4700::1]", "2606:4700::1"],
    ["93.184.216.34", "93.184.216.34"],
    ["93.184.216.34.example.com", null],
    ["hooks.example.com", null],
  ];
  for (const [host, literal] of table) assert.equal(literalOf(host), literal, host);
});

Deno.test("ssrf_url_rules: names of ours that are not configured refuse nobody's", () => {
  for (const host of ["null", "undefined", "false"]) {
    assert.ok(fine(`https://${host}.com/`) && fine(`https://hooks.${host}/`), host);
    assert.ok(fine(`https://hooks.${host}/`, { apiHost: "", consoleHost: "", platformDomain: "" }), host);
  }
  const ours = { apiHost: "api.pylota.com", platformDomain: "mail.pylota.com" };
  for (const host of ["api.pylota.com", "mail.pylota.com", "x.mail.pylota.com"]) {
    assert.equal(fine(`https://${host}/`, ours), false, host);
  }
  for (const host of ["x.api.pylota.com", "xmail.pylota.com", "pylota.com"]) {
    assert.ok(fine(`https://${host}/`, ours), host);
  }
});

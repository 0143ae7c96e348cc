import assert from "node:assert/strict";
import fc from "fast-check";
import { judgeUrl, type UrlRules } from "../../lib/ssrf/url.ts";

const RULES: UrlRules = {
  apiHost: "api.pylota.dev",
  consoleHost: "Console.pylota.dev:8443",
  platformDomain: "mail.pylota.net.",
  allowedTargets: new Set(["127.0.0.1:9000", "localhost:9000", "[::1]:9000", "receiver:8080"]),
};

const rule = (url: string): string => {
  const verdict = judgeUrl(url, RULES);
  return verdict.ok ? "" : verdict.rule;
};

/** URL, the rule that refuses it ("" allows), why. */
const CASES: [url: string, rule: string, reason: string][] = [
  ["https://hooks.example.com/w?x=1", "", "an ordinary receiver"],
  ["HTTPS://Hooks.Example.com", "", "case does not matter"],
  ["https://bücher.example.com/", "", "an international name becomes punycode"],
  ["https://a_b-c.example.com/", "", "underscore and hyphen"],
  ["https://hooks.example.com/@127.0.0.1/?q=@x", "", "@ after the authority"],
  ["http://hooks.example.com/", "scheme", "plain http"],
  ["ftp://hooks.example.com/", "scheme", "another scheme"],
  ["//hooks.example.com/", "scheme", "no scheme"],
  ["https:hooks.example.com/", "scheme", "no slashes"],
  ["https:/hooks.example.com/", "scheme", "one slash"],
  ["https:///hooks.example.com/", "scheme", "three slashes, which the parser forgives"],
  ["", "scheme", "nothing"],
  ["https://user@hooks.example.com/", "userinfo", "user"],
  ["https://:@hooks.example.com/", "userinfo", "empty user and password"],
  ["https://hooks.example.com/#a", "fragment", "fragment"],
  ["https://hooks.example.com/#", "fragment", "empty fragment"],
  ["https://hooks.exa\tmple.com/", "characters", "a tab the parser drops"],
  [" https://hooks.example.com/", "characters", "leading space"],
  ["https://hooks.example.com/a b", "characters", "space in the path"],
  ["https://hooks.example.com/\u00a0", "characters", "no-break space"],
  ["https://hooks.example.com/\u2028", "characters", "line separator"],
  ["https://hooks.example.com\\@127.0.0.1/", "characters", "backslash"],
  ["https://hooks.example.com/\u0000", "characters", "NUL"],
  ["https://hooks.example.com/\u007f", "characters", "DEL"],
  ["https://hooks.example.com/\u0085", "characters", "a C1 control"],
  ["https://hoo\u200bks.example.com/", "characters", "zero width space"],
  ["https://hoo\u00adks.example.com/", "characters", "soft hyphen"],
  ["https://hooks.example.com/\ud800", "characters", "lone surrogate"],
  ["https://127.0.0.1/", "ip_literal", "dotted"],
  ["https://93.184.216.34/", "ip_literal", "also a public one"],
  ["https://2130706433/", "ip_literal", "integer"],
  ["https://0x7f.1/", "ip_literal", "hex, short"],
  ["https://0177.0.0.1/", "ip_literal", "octal"],
  ["https://１２７.０.０.１/", "ip_literal", "full-width digits"],
  ["https://①②⑦.⓪.⓪.①/", "ip_literal", "circled digits"],
  ["https://127。0。0。1/", "ip_literal", "ideographic full stops"],
  ["https://%31%32%37.0.0.1/", "ip_literal", "percent-encoded digits"],
  ["https://127.0.0.1./", "ip_literal", "trailing dot"],
  ["https://[2606:4700::1111]/", "ip_literal", "bracketed"],
  ["https://[::ffff:127.0.0.1]/", "ip_literal", "mapped"],
  ["https://[hooks.example.com]/", "invalid_url", "brackets round a name"],
  ["https://hooks.example.com:65536/", "invalid_url", "port overflow"],
  ["https://1.2.3.4.5/", "invalid_url", "ends in a number and is no address"],
  ["https://hooks<.example.com/", "invalid_url", "forbidden host character"],
  ["https://hooks.example.com./", "trailing_dot", "a second spelling of one host"],
  ["https://a..example.com/", "label", "empty label"],
  ["https://*.example.com/", "label", "wildcard"],
  ["https://hooks.example.com,evil.example.com/", "label", "comma"],
  [`https://${"a".repeat(63)}.example.com/`, "", "the longest label"],
  [`https://${"a".repeat(64)}.example.com/`, "label", "a label too long"],
  [`https://${"a.".repeat(120)}example.com/`, "", "251 characters"],
  [`https://${"a.".repeat(122)}example.com/`, "label", "255 characters"],
  ["https://metadata/", "single_label", "single label"],
  ["https://localhost/", "single_label", "single label"],
  ["https://foo.localhost/", "refused_name", "loopback name"],
  ["https://ＬＯＣＡＬ.ＩＮＴＥＲＮＡＬ/", "refused_name", "full-width letters"],
  ["https://hooks.example/", "refused_name", "the top-level name"],
  ["https://a.home.arpa/", "refused_name", "home.arpa"],
  ["https://api.pylota.dev/x", "refused_name", "our own API"],
  ["https://API.pylota.dev:8443/x", "refused_name", "our own API on another port"],
  ["https://console.pylota.dev/", "refused_name", "our own console, configured with case and port"],
  ["https://mail.pylota.net/", "refused_name", "the platform domain, configured with a dot"],
  ["https://x.mail.pylota.net/", "refused_name", "a name under it"],
  ["https://xmail.pylota.net/", "", "only looks like it"],
  ["https://sub.api.pylota.dev/", "", "the API host is refused exactly"],
  ["https://hooks.example.com:443/", "", "443"],
  ["https://hooks.example.com:/", "", "empty port"],
  ["https://hooks.example.com:80/", "port", "below 1024"],
  ["https://hooks.example.com:1023/", "port", "below 1024"],
  ["https://hooks.example.com:0/", "port", "0"],
  ["https://hooks.example.com:1024/", "", "first high port"],
  ["https://hooks.example.com:65535/", "", "last port"],
  ["https://hooks.example.com:6000/", "port", "X11"],
  ["https://hooks.example.com:10080/", "port", "amanda"],
  ["http://127.0.0.1:9000/x", "", "allowed target, http"],
  ["https://127.0.0.1:9000/x", "", "allowed target, https"],
  ["http://[::1]:9000/", "", "allowed target, IPv6"],
  ["http://receiver:8080/", "", "allowed target, single label"],
  ["http://localhost:9000/", "", "allowed target by name"],
  ["http://127.0.0.1:9001/", "scheme", "another port"],
  ["http://127.0.0.2:9000/", "scheme", "another host"],
  ["https://127.0.0.2:9000/", "ip_literal", "another host, https"],
  ["http://u@127.0.0.1:9000/", "userinfo", "the other rules hold for allowed targets"],
  ["http://127.0.0.1:9000/#x", "fragment", "the other rules hold for allowed targets"],
];

for (const [url, expected, reason] of CASES) {
  Deno.test(`ssrf_url_rules: ${reason}: ${JSON.stringify(url).slice(0, 60)} → ${expected || "allowed"}`, () => {
    assert.equal(rule(url), expected);
  });
}

Deno.test("ssrf_url_rules: every refused name, itself and under it", () => {
  const names =
    "localhost localdomain local internal invalid test example onion alt home.arpa arpa lan corp home intranet private i2p svc"
      .split(" ");
  for (const name of names) {
    assert.notEqual(rule(`https://${name}/`), "", name);
    assert.equal(rule(`https://hooks.${name}/`), "refused_name", name);
    assert.equal(rule(`https://${name}.example.com/`), "", name);
  }
});

Deno.test("ssrf_url_rules: 2,048 bytes, counted as UTF-8", () => {
  const base = "https://hooks.example.com/";
  assert.equal(rule(base + "a".repeat(2_048 - base.length)), "");
  assert.equal(rule(base + "a".repeat(2_049 - base.length)), "length");
  assert.equal(rule(base + "é".repeat(1_011)), "");
  assert.equal(rule(base + "é".repeat(1_012)), "length");
});

Deno.test("ssrf_url_rules: a refusal has a sentence for a person and no exception for any text", () => {
  fc.assert(fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.webUrl()), (text) => {
    const verdict = judgeUrl(text, RULES);
    if (!verdict.ok) assert.match(verdict.message, /^must /);
    else assert.equal(verdict.url.protocol, "https:");
  }));
});

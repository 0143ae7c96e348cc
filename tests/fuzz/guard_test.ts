/** The guard (reference §6) against a second one that shares nothing with it, over mutated corpus URLs and random addresses. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { judgeAnswers } from "../../lib/ssrf/address.ts";
import { REFUSED_IPV4, REFUSED_IPV6 } from "../../lib/ssrf/ranges.ts";
import { judgeUrl } from "../../lib/ssrf/url.ts";
import { parseCases } from "../../tools/ssrf.ts";
import { mutated, runs } from "./runs.ts";
import { addressIsPublic, notationsOf, urlIsFine, v6Bytes } from "./second_guard.ts";

const RULES = { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set<string>() };
const CASES = parseCases(await Deno.readTextFile(new URL("../corpus/ssrf_urls.tsv", import.meta.url)));

const PIECES = [
  ..."./:@?#%[]\\-_~0x&=,;*'\"<>^`{}|! \t\n\r\0",
  "..",
  "//",
  ":443",
  ":80",
  ":0443",
  ":65536",
  ":6000",
  "%2e",
  "%00",
  "%ff",
  "%31",
  "%E3%80%82",
  "。",
  "．",
  "｡",
  "１",
  "ⅷ",
  "ß",
  "ü",
  "\u00ad",
  "\u200b",
  "\u200d",
  "\u2028",
  "\ufeff",
  "\ud800",
  "İ",
  "K",
  "xn--",
  "xn--mnchen-3ya",
  ".local",
  ".example",
  "local.",
  "127.1",
  "0x7f.1",
  "[::1]",
  "@127.0.0.1",
  ".com",
  "https://",
  "http://",
];
const piece = fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: "binary", maxLength: 2 }));
const url = fc.constantFrom(...new Set(CASES.map((one) => one.url).filter((text) => text.length < 300)));

const agree = (text: string) => {
  const verdict = judgeUrl(text, RULES);
  assert.equal(verdict.ok, urlIsFine(text), `${JSON.stringify(text)}: ${JSON.stringify(verdict)}`);
};

Deno.test("ssrf_url_rules: two guards agree on every URL of the corpus", () => {
  for (const { url } of CASES) agree(url);
});

Deno.test("ssrf_url_rules: two guards agree on mutated URLs of the corpus", () => {
  // Mostly behind the scheme: what breaks it is refused before anything else is looked at.
  const behind = mutated(url.map((text) => text.replace(/^https:\/\//i, "")), piece).map((t) =>
    "https://" + t
  );
  const either = fc.oneof({ weight: 4, arbitrary: behind }, mutated(url, piece));
  fc.assert(fc.property(either, agree), runs(20_000));
});

Deno.test("ssrf_url_rules: two guards agree on URLs put together from pieces", () => {
  const authority = fc.array(fc.oneof({ weight: 3, arbitrary: fc.domain() }, piece), { maxLength: 4 });
  const rest = fc.oneof(fc.constant(""), fc.webPath(), piece);
  const made = fc.tuple(fc.constantFrom("https://", "HTTPS://", "https:/", "http://"), authority, rest);
  fc.assert(
    fc.property(made.map(([scheme, host, rest]) => scheme + host.join("") + rest), agree),
    runs(5_000),
  );
});

Deno.test("ssrf_url_rules: no notation of any IPv4 address passes for a host name", () => {
  const bytes = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
  const bases = fc.array(fc.constantFrom(8, 10, 16), { minLength: 1, maxLength: 4 });
  const dots = fc.constantFrom(".", "。", "．", "%2e");
  fc.assert(
    fc.property(bytes, bases, fc.integer({ min: 1, max: 4 }), dots, (bytes, bases, parts, dot) => {
      const host = notationsOf(bytes, bases, parts).replaceAll(".", dot);
      for (const text of [`https://${host}/`, `https://${host}:8443/x`, `https://${host}.`]) {
        assert.equal(judgeUrl(text, RULES).ok, false, text);
        agree(text);
      }
    }),
    runs(2_000),
  );
});

/** Addresses at and beside the edges of the ranges, where a mask goes wrong, and anywhere. */
const octets = (length: number) =>
  fc.array(fc.integer({ min: 0, max: 255 }), { minLength: length, maxLength: length });
const v4 = octets(4).map((bytes) => bytes.join("."));
const nearV4 = fc.tuple(fc.constantFrom(...REFUSED_IPV4.map(([cidr]) => cidr)), octets(4), fc.nat(3)).map(
  ([cidr, other, from]) => {
    const bytes = cidr.split("/")[0]!.split(".").map(Number);
    return bytes.map((byte, i) => i >= from ? other[i]! : byte).join(".");
  },
);
const v6Text = (bytes: readonly number[]) =>
  Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! << 8 | bytes[2 * i + 1]!).toString(16)).join(":");
const bases6 = [
  "2000::",
  "3fff:ffff::",
  "64:ff9b::",
  "::ffff:0:0",
  "2606:4700::5efe:0:0",
  "fe80::",
  "2606::",
];
const nearV6 = fc.tuple(
  fc.constantFrom(...REFUSED_IPV6.map(([cidr]) => cidr.split("/")[0]!), ...bases6),
  octets(16),
  fc.nat(15),
  fc.nat(15),
).map(([base, other, from, to]) =>
  v6Text(v6Bytes(base)!.map((byte, i) => i >= from && i <= to ? other[i]! : byte))
);
const shortened = nearV6.map((text) => text.replace(/(^|:)0(:0)+(:|$)/, "::"));
const dotted6 = fc.tuple(fc.constantFrom("::", "::ffff:", "2606:4700::", "2606:4700::200:5efe:"), v4).map((
  p,
) => p.join(""));
const address = fc.oneof(v4, nearV4, octets(16).map(v6Text), nearV6, shortened, dotted6);
const odd = mutated(address, fc.constantFrom(":", "::", ".", "0", "%eth0", "g", " ", "/8", "00", "１"));

Deno.test("ssrf_ranges: two guards agree on addresses, near the edges, anywhere and misspelt", () => {
  fc.assert(
    fc.property(fc.oneof({ weight: 3, arbitrary: address }, odd), (text) => {
      assert.equal(judgeAnswers([text]).ok, addressIsPublic(text), text);
    }),
    runs(10_000),
  );
});

Deno.test("ssrf_ranges: a look-up passes exactly when both guards pass each of its answers, in any order", () => {
  fc.assert(
    fc.property(fc.array(address, { maxLength: 4 }), (answers) => {
      const fine = answers.length > 0 && answers.every(addressIsPublic);
      assert.equal(judgeAnswers(answers).ok, fine);
      assert.equal(judgeAnswers([...answers].reverse()).ok, fine);
    }),
    runs(2_000),
  );
});

Deno.test("ssrf_ranges: an ISATAP interface id in each of its four forms, and no other group before 5efe", () => {
  const refused: number[] = [];
  for (let group = 0; group <= 0xffff; group++) {
    if (!judgeAnswers([`2606:4700:0:0:${group.toString(16)}:5efe:102:304`]).ok) refused.push(group);
  }
  // RFC 5214 §6.1: 0000:5efe, and the universal and group bits of RFC 4291 §2.5.1.
  assert.deepEqual(refused, [0, 0x100, 0x200, 0x300]);
});

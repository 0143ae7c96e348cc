import assert from "node:assert/strict";
import fc from "fast-check";
import { judgeAddress, judgeAnswers } from "../../lib/ssrf/address.ts";
import { REFUSED_IPV4, REFUSED_IPV6 } from "../../lib/ssrf/ranges.ts";

/** Plain arithmetic, so that the table is checked by something that shares no code with the guard. */
const v4 = (n: number) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255].join(".");
const v4Number = (text: string) => text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
const v4Ranges = REFUSED_IPV4.map(([cidr]) => {
  const [base, bits] = cidr.split("/");
  const first = v4Number(base!);
  return [first, first + 2 ** (32 - Number(bits)) - 1] as const;
});
const v4Refused = (n: number) => v4Ranges.some(([first, last]) => n >= first && n <= last);

const v6 = (n: bigint) =>
  Array.from({ length: 8 }, (_, i) => ((n >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(":");
function v6Number(text: string): bigint {
  const [head = "", tail = ""] = text.split("::");
  const parts = (half: string) => half === "" ? [] : half.split(":");
  const fill = Array(8 - parts(head).length - parts(tail).length).fill("0");
  return [...parts(head), ...fill, ...parts(tail)].reduce(
    (sum, part) => sum << 16n | BigInt(`0x${part}`),
    0n,
  );
}
const v6Ranges = REFUSED_IPV6.map(([cidr]) => {
  const [base, bits] = cidr.split("/");
  const first = v6Number(base!);
  return [first, first + (1n << BigInt(128 - Number(bits))) - 1n] as const;
});
const GLOBAL = [v6Number("2000::"), v6Number("4000::") - 1n] as const;
const v6Refused = (n: bigint) => {
  const isatap = ((n >> 32n) & 0xfcffffffn) === 0x5efen;
  return n < GLOBAL[0] || n > GLOBAL[1] || isatap ||
    v6Ranges.some(([first, last]) => n >= first && n <= last);
};

Deno.test("ssrf_ranges: the table is the specification's, entry for entry", () => {
  assert.deepEqual(
    REFUSED_IPV4.map(([cidr]) => cidr),
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
      .split(" "),
  );
  assert.deepEqual(
    REFUSED_IPV6.map(([cidr]) => cidr),
    ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"],
  );
});

Deno.test("ssrf_ranges: both edges of every IPv4 range, and what lies beside them", () => {
  for (const [first, last] of v4Ranges) {
    for (const edge of [first, last]) assert.equal(judgeAddress(v4(edge)).ok, false, v4(edge));
    for (const beside of [first - 1, last + 1]) {
      if (beside < 0 || beside > 0xffffffff) continue;
      assert.equal(judgeAddress(v4(beside)).ok, !v4Refused(beside), v4(beside));
    }
  }
});

Deno.test("ssrf_ranges: both edges of every IPv6 range and of global unicast, and what lies beside them", () => {
  for (const [first, last] of [...v6Ranges, GLOBAL]) {
    for (const n of [first - 1n, first, last, last + 1n]) {
      assert.equal(judgeAddress(v6(n)).ok, !v6Refused(n), v6(n));
    }
  }
});

Deno.test("ssrf_ranges: any IPv4 address is judged as arithmetic says", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffffff }), (n) => judgeAddress(v4(n)).ok === !v4Refused(n)),
    { numRuns: 2_000 },
  );
});

Deno.test("ssrf_ranges: any IPv6 address is judged as arithmetic says", () => {
  const anywhere = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n });
  const global = fc.bigInt({ min: GLOBAL[0], max: GLOBAL[1] });
  const isatap = global.map((n) => n >> 64n << 64n | 0x0200_5efe_0a00_0001n);
  fc.assert(
    fc.property(fc.oneof(anywhere, global, isatap), (n) => judgeAddress(v6(n)).ok === !v6Refused(n)),
    { numRuns: 2_000 },
  );
});

Deno.test("ssrf_ranges: no IPv6 form carries an IPv4 address through", () => {
  const embed = (n: number) => [
    `::${v4(n)}`,
    `::ffff:${v4(n)}`,
    `::ffff:0:${v4(n)}`,
    `64:ff9b::${v4(n)}`,
    `64:ff9b:1::${v4(n)}`,
    `2002:${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`,
    `2001:0:${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}::`,
    `2606:4700::5efe:${v4(n)}`,
    `2606:4700::200:5efe:${v4(n)}`,
  ];
  fc.assert(fc.property(fc.integer({ min: 0, max: 0xffffffff }), (n) => {
    for (const form of embed(n)) assert.equal(judgeAddress(form).ok, false, form);
  }));
});

Deno.test("ssrf_ranges: text that parsers read differently is no address", () => {
  const odd = ["", " ", "hooks.example.com", "127.1", "0177.0.0.1", "08.8.8.8", "0x8.8.8.8", "134744072"]
    .concat([
      "8.8.8",
      "8.8.8.8.8",
      "8.8.8.256",
      "8.8.8.8 ",
      "8.8.8.8\n",
      "[2606:4700::1]",
      "2606:4700::1%eth0",
    ])
    .concat(["2606:4700::1::2", "２606:4700::1", "８.8.8.8", "+8.8.8.8", "8.8.8.-8", "::g"]);
  for (const text of odd) {
    const verdict = judgeAddress(text);
    assert.equal(verdict.ok ? "" : verdict.rule, "not_an_address", JSON.stringify(text));
  }
});

Deno.test("ssrf_ranges: at least one answer, and one bad answer refuses the name wherever it stands", () => {
  const rule = (addresses: string[]) => {
    const verdict = judgeAnswers(addresses);
    return verdict.ok ? null : verdict.rule;
  };
  assert.equal(rule([]), "no_address");
  assert.equal(rule(["93.184.216.34", "2606:2800:220:1::1"]), null);
  assert.equal(rule(["93.184.216.34", "127.0.0.1"]), "private_address");
  assert.equal(rule(["127.0.0.1", "93.184.216.34"]), "private_address");
  assert.equal(rule(["93.184.216.34", "8.8.8.8", "::1"]), "private_address");
});

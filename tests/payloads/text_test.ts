import assert from "node:assert/strict";
import fc from "fast-check";
import { TEXT_BYTES_DEFAULT, TEXT_BYTES_MAX } from "../../lib/limits.ts";
import { capUtf8, cleanLine, cleanText, dropStyles, textBytes } from "../../lib/text.ts";

const bytes = (text: string) => new TextEncoder().encode(text).length;

Deno.test("payload_text_cap: the cut falls on a UTF-8 character boundary", () => {
  const table = [
    ["abc", 3, "abc", false, "exactly the cap"],
    ["abcd", 3, "abc", true, "one byte over"],
    ["aé", 2, "a", true, "two-byte character would be cut"],
    ["ab€", 4, "ab", true, "three-byte character would be cut"],
    ["ab🌱", 5, "ab", true, "four-byte character would be cut"],
    ["ab🌱", 6, "ab🌱", false, "four-byte character fits"],
    ["🌱", 0, "", true, "no room at all"],
    ["", 0, "", false, "nothing to cut"],
  ] as const;
  for (const [text, cap, kept, truncated, reason] of table) {
    assert.deepEqual(capUtf8(text, cap), { text: kept, truncated }, reason);
  }
});

Deno.test("payload_text_cap: any text, any cap: a prefix within the cap that no further character fits", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.nat(80), (text, cap) => {
    const cut = capUtf8(text, cap);
    assert.ok(text.startsWith(cut.text));
    assert.ok(bytes(cut.text) <= cap);
    assert.ok(cut.text.isWellFormed());
    assert.equal(cut.truncated, cut.text.length < text.length);
    const next = [...text.slice(cut.text.length)][0];
    if (next !== undefined) assert.ok(bytes(cut.text + next) > cap);
  }));
});

Deno.test("payload_text_cap: a tenant's policy is bounded, its absence is the default", () => {
  assert.equal(textBytes(undefined), TEXT_BYTES_DEFAULT);
  assert.equal(textBytes(NaN), TEXT_BYTES_DEFAULT);
  assert.equal(textBytes(-1), TEXT_BYTES_DEFAULT);
  assert.equal(textBytes(0), 0);
  assert.equal(textBytes(100), 100);
  assert.equal(textBytes(1e9), TEXT_BYTES_MAX);
});

Deno.test("body text loses control characters and lone surrogates, and keeps its lines", () => {
  assert.equal(cleanText("a\r\nb\rc\u0000\u0007\td\n\n\n\n\ne\ud83d "), "a\nb\nc\td\n\n\ne\ufffd");
});

Deno.test("a header line is one line, and its cut does not split a character", () => {
  assert.equal(cleanLine(" a\r\n b\u0000c ", 10), "a b c");
  assert.equal(cleanLine("ab🌱", 3), "ab");
});

Deno.test("style elements are dropped with their content, also an unclosed one", () => {
  assert.equal(dropStyles("a<STYLE type=x>p{}</style >b<style>q"), "ab");
  assert.equal(dropStyles("İ<style>p</style>"), "İ<style>p</style>");
});

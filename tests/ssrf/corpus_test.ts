import assert from "node:assert/strict";
import { judgeCase, parseCases } from "../../tools/ssrf.ts";

const text = await Deno.readTextFile(new URL("../corpus/ssrf_urls.tsv", import.meta.url));
const cases = parseCases(text);

Deno.test("ssrf_url_rules, ssrf_ranges: every row of the corpus is judged as its reason says", async () => {
  assert.equal(cases.length, 407);
  for (const one of cases) {
    const { verdict, because } = await judgeCase(one);
    assert.equal(
      verdict,
      one.expected,
      `line ${one.line} ${one.url.slice(0, 100)} (${because}): ${one.reason}`,
    );
  }
});

Deno.test("ssrf_url_rules: a corpus line that is none is named, not skipped", () => {
  assert.throws(() => parseCases("# c\nhttps://a.example.com/\t-\tperhaps\tx"), /line 2 is not a case/);
});

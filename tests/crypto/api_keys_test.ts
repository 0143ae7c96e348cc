import assert from "node:assert/strict";
import { hashKey, keyMatches, mintKey, parseKey } from "../../lib/edge/api_keys.ts";
import { realRandom } from "../../lib/edge/ports.ts";

const PEPPER = new Uint8Array(32).fill(9);

Deno.test("api_keys: a minted key parses into its own parts and its secret part has 256 bits", () => {
  for (const mode of ["live", "test"] as const) {
    const key = mintKey(mode, realRandom);
    assert.match(key.text, new RegExp(`^pmk_${mode}_[0-9a-z]{16}_[0-9a-z]{52}$`));
    assert.deepEqual(parseKey(key.text), key);
  }
  const zeros = mintKey("test", { bytes: (n) => new Uint8Array(n) });
  const ones = mintKey("test", { bytes: (n) => new Uint8Array(n).fill(255) });
  assert.equal(zeros.text, `pmk_test_${"0".repeat(16)}_${"0".repeat(52)}`);
  // 256 bits are 51 characters of five and one bit of the last.
  assert.equal(ones.text, `pmk_test_${"z".repeat(16)}_${"z".repeat(51)}g`);
});

Deno.test("api_keys: what is no key string is refused", () => {
  const { text } = mintKey("live", realRandom);
  const bad = [
    "",
    "pmk_",
    text + "0",
    text.slice(0, -1),
    text.toUpperCase(),
    " " + text,
    text + "\n",
    text.replace("live", "prod"),
  ];
  for (const t of bad) assert.equal(parseKey(t), null, t);
});

Deno.test("api_keys: only its own hash under the same pepper matches, of any length, also when none is known", () => {
  const key = mintKey("live", realRandom), other = mintKey("live", realRandom);
  const kept = hashKey(key.text, PEPPER);
  assert.match(kept, /^[0-9a-f]{64}$/);
  assert.ok(!kept.includes(key.text.slice(-10)));
  const cases: [string, string | null, Uint8Array, boolean][] = [
    [key.text, kept, PEPPER, true],
    [other.text, kept, PEPPER, false],
    [key.text, kept, new Uint8Array(32), false],
    [key.text, null, PEPPER, false],
    [key.text, "", PEPPER, false],
    [key.text, kept.slice(1), PEPPER, false],
    ["", kept, PEPPER, false],
  ];
  for (const [text, hash, pepper, expected] of cases) assert.equal(keyMatches(text, hash, pepper), expected);
});

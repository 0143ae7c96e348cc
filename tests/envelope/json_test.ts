/** What a producer wrote is what a receiver gets (O3), and what could be read two ways is refused. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../lib/errors.ts";
import {
  decodeUtf8,
  elementsOf,
  JsonText,
  membersOf,
  parseJson,
  readJson,
  stringify,
} from "../../lib/json.ts";

const refused = (run: () => unknown, message: RegExp) =>
  assert.throws(run, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, "invalid_request");
    const [first] = error.details!.errors as { path: string; message: string }[];
    assert.equal(first!.path, "body");
    assert.match(first!.message, message);
    return true;
  });

const VERBATIM = [
  ["trailing zeros", "1.50"],
  ["exponent", "1e2"],
  ["negative zero", "-0"],
  ["beyond 2^53", "9007199254740993"],
  ["more digits than a double", "0.1234567890123456789012345"],
  ["beyond the range of a double", "1e400"],
  ["integer-like keys keep their order", '{"2":0,"1":0,"a":0}'],
  ["__proto__ is a key like any other", '{"__proto__":{"x":1},"constructor":2}'],
  ["escapes stay as written", '{"a":"\\u00e9\\/\\n","b":"é/"}'],
  ["astral characters", '"\\ud83d\\ude00😀"'],
  ["separators in Unicode", '"\u2028\u2029"'],
  ["inner white space", '{ "a" : [ 1 ,\n2 ] }'],
] as const;

for (const [reason, text] of VERBATIM) {
  Deno.test(`O3: data goes through as written: ${reason}`, () => {
    const member = membersOf(readJson(`{"type":"t", "data" : ${text} ,"z":1}`))!.get("data")!;
    assert.equal(member.text, text);
    assert.deepEqual(member.value, JSON.parse(text));
    const elements = elementsOf(readJson(`[ ${text},${text} , {}]`))!;
    assert.deepEqual(elements.map((e) => e.text), [text, text, "{}"]);
  });
}

Deno.test("O3: members and elements are cut where the grammar says, for any JSON", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 6 }), fc.nat(8), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      const members = membersOf(readJson(text))!;
      assert.deepEqual([...members.keys()].sort(), Object.keys(object).sort());
      for (const [key, member] of members) {
        assert.ok(text.includes(member.text));
        assert.deepEqual(JSON.parse(member.text), JSON.parse(text)[key]);
        assert.equal(member.text, member.text.trim());
      }
      const list = JSON.stringify(Object.values(object), null, indent);
      const elements = elementsOf(readJson(list))!;
      assert.deepEqual(elements.map((e) => JSON.parse(e.text)), JSON.parse(list));
      assert.deepEqual(elements.map((e) => e.value), JSON.parse(list));
    }),
  );
});

Deno.test("O3: a number that is rebuilt keeps its digits", () => {
  const number = fc.tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.constant("0"), fc.bigInt({ min: 1n, max: 10n ** 30n }).map(String)),
    fc.oneof(fc.constant(""), fc.stringMatching(/^\.\d{1,25}$/)),
    fc.oneof(fc.constant(""), fc.stringMatching(/^[eE][+-]?\d{1,3}$/)),
  ).map((parts) => parts.join(""));
  fc.assert(fc.property(fc.array(number), (numbers) => {
    const text = `{"a":[${numbers.join(",")}]}`;
    assert.equal(stringify(parseJson(text)), text);
    assert.equal(JSON.stringify(parseJson(text)), text);
  }));
  assert.equal(typeof (parseJson("[1,1.5,-2e-7]") as unknown[])[1], "number");
});

Deno.test("O3: stringify agrees with JSON.stringify on plain values and splices texts", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    assert.equal(stringify(value), JSON.stringify(value));
    const text = new JsonText(' {"b":1.0}', { b: 1 });
    assert.equal(
      stringify({ a: [value, text], u: undefined }),
      `{"a":[${JSON.stringify(value)}, {"b":1.0}]}`,
    );
  }));
  assert.throws(() => JSON.stringify({ a: new JsonText("1.0", 1) }), /O3/);
});

const REFUSED = [
  ["no JSON", "{", /not valid JSON/],
  ["nothing", "", /not valid JSON/],
  ["trailing comma", "[1,]", /not valid JSON/],
  ["two values", "1 2", /not valid JSON/],
  ["a byte order mark", "\ufeff{}", /not valid JSON/],
  ["a key twice", '{"a":{"b":1,"b":2}}', /same key twice/],
  ["a key twice, once escaped", '{"a":1,"\\u0061":2}', /same key twice/],
  ["__proto__ twice", '{"__proto__":1,"__proto__":2}', /same key twice/],
  ["an escaped lone surrogate", '["\\ud800"]', /lone surrogate/],
  ["an escaped lone surrogate in a key", '{"\\udc00":1}', /lone surrogate/],
  ["a raw lone surrogate", '["\ud800"]', /lone surrogate/],
  ["65 levels", "[".repeat(65) + "]".repeat(65), /deeper than 64/],
  ["a hundred thousand levels", "[".repeat(1e5) + "]".repeat(1e5), /not valid JSON|deeper than 64/],
] as const;

for (const [reason, text, message] of REFUSED) {
  Deno.test(`readJson refuses ${reason}`, () => refused(() => readJson(text), message));
}

Deno.test("readJson takes what looks like a refusal and is none", () => {
  for (
    const text of [
      '{"a":"a","b":"a"}',
      '[{"a":1},{"a":1}]',
      '{"a":{"a":{"a":1}}}',
      '["\\\\ud800"]',
      '{"a":["a","a"]}',
    ]
  ) {
    assert.equal(readJson(text).text, text);
  }
  assert.equal(readJson("[".repeat(64) + "]".repeat(64)).text.length, 128);
});

Deno.test("decodeUtf8 refuses what is not UTF-8", () => {
  const BAD = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]];
  for (const bytes of BAD) {
    refused(() => decodeUtf8(new Uint8Array([0x22, ...bytes, 0x22])), /not valid UTF-8/);
  }
  assert.equal(decodeUtf8(new TextEncoder().encode("é😀")), "é😀");
});

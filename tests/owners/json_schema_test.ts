/** The schemas applications register: what they accept, what is refused in them, and that none can stall the process. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { compileSchema } from "../../lib/json_schema/compile.ts";
import { compilePattern } from "../../lib/json_schema/pattern.ts";

function errorsOf(schema: unknown, value: unknown) {
  const compiled = compileSchema(schema);
  assert.ok("validate" in compiled, JSON.stringify(compiled));
  return compiled.validate(value, "data");
}

const TABLE: [reason: string, schema: unknown, accepted: unknown[], refused: unknown[]][] = [
  ["true and false", true, [1, null], []],
  ["false", false, [], [1, null]],
  ["type", { type: "integer" }, [1, -0, 9007199254740993, 1e30], [1.5, "1", null, Infinity]],
  ["types", { type: ["string", "null"], minLength: 2 }, ["ab", null], ["a", 1]],
  ["an array is no object", { type: "object" }, [{}], [[], null]],
  ["const", { const: { a: [1, 2], b: null } }, [{ b: null, a: [1, 2] }], [{ a: [2, 1], b: null }]],
  ["enum", { enum: ["a", 1, null] }, ["a", 1, null], ["1", 0, false]],
  ["bounds", { minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, "x"], [0.9, 3]],
  ["bounds of the other kind", { exclusiveMinimum: 1, maximum: 3 }, [1.1, 3], [1, 3.1]],
  ["multipleOf of fractions", { multipleOf: 0.01 }, [0.07, 19.99, 0, -1.1], [0.005]],
  ["lengths count characters, not code units", { minLength: 2, maxLength: 2 }, ["😀😀", "ab", 1], [
    "😀",
    "abc",
  ]],
  ["pattern", { pattern: "^[a-z0-9]+(-[a-z0-9]+)*$" }, ["a-b", 1], ["a--b", "-", ""]],
  ["items", { items: { type: "number" }, minItems: 1, maxItems: 2 }, [[1], [1, 2], "x"], [[], ["a"], [
    1,
    2,
    3,
  ]]],
  ["prefixItems", { prefixItems: [{ type: "string" }], items: false }, [["a"], []], [[1], ["a", 1]]],
  ["uniqueItems", { uniqueItems: true }, [[1, "1", { a: 1 }]], [[1, 1], [{ a: 1, b: 2 }, { b: 2, a: 1 }]]],
  ["properties", { properties: { a: { type: "string" } } }, [{ a: "x", b: 1 }, {}, 1], [{ a: 1 }]],
  ["required", { required: ["a"] }, [{ a: null }, "x"], [{}, { b: 1 }]],
  ["required is not weakened by a default", { properties: { a: { default: 1 } }, required: ["a"] }, [{
    a: 2,
  }], [{}]],
  ["required does not look up the prototype", { required: ["toString"] }, [{ toString: 1 }], [{}]],
  ["closed", { properties: { a: true }, additionalProperties: false }, [{ a: 1 }], [
    { b: 1 },
    JSON.parse('{"__proto__":1}'),
  ]],
  ["additional", { additionalProperties: { type: "number" } }, [{ a: 1 }], [{ a: "1" }]],
  ["names", { propertyNames: { maxLength: 1 } }, [{ a: 1 }], [{ ab: 1 }]],
  ["counts of properties", { minProperties: 1, maxProperties: 2 }, [{ a: 1 }, 1], [{}, { a: 1, b: 1, c: 1 }]],
  ["dependentRequired", { dependentRequired: { a: ["b"] } }, [{}, { a: 1, b: 1 }, { b: 1 }], [{ a: 1 }]],
  ["allOf", { allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
  ["anyOf", { anyOf: [{ type: "string" }, { minimum: 2 }] }, ["a", 2], [1]],
  ["oneOf", { oneOf: [{ multipleOf: 2 }, { multipleOf: 3 }] }, [2, 3], [6, 1]],
  ["not", { not: { type: "string" } }, [1], ["a"]],
  ["if then else", { if: { type: "string" }, then: { minLength: 2 }, else: { minimum: 2 } }, ["ab", 2], [
    "a",
    1,
  ]],
  ["$ref", { $defs: { a: { type: "string" } }, items: { $ref: "#/$defs/a" } }, [["a"]], [[1]]],
  [
    "a schema of itself",
    { type: "object", properties: { next: { $ref: "#" } }, additionalProperties: false },
    [{ next: { next: {} } }],
    [{ next: { next: 1 } }],
  ],
  ["annotations assert nothing", { format: "email", title: "t", default: 1 }, ["no mail", 2], []],
];

for (const [reason, schema, accepted, refused] of TABLE) {
  Deno.test(`json schema: ${reason}`, () => {
    for (const value of accepted) assert.deepEqual(errorsOf(schema, value), [], JSON.stringify(value));
    for (const value of refused) assert.notEqual(errorsOf(schema, value).length, 0, JSON.stringify(value));
  });
}

Deno.test("json schema: errors name the path and the rule, never the value", () => {
  const schema = {
    properties: { items: { items: { required: ["sku"], properties: { qty: { type: "integer" } } } } },
    required: ["id"],
  };
  assert.deepEqual(errorsOf(schema, { items: [{ sku: "a" }, { qty: "canary" }] }), [
    { path: "data.id", message: "is required" },
    { path: "data.items.1.sku", message: "is required" },
    { path: "data.items.1.qty", message: "must be of type integer" },
  ]);
});

const REFUSED: [unknown, RegExp][] = [
  [{ unknownKeyword: 1 }, /unknownKeyword.*not supported/],
  [{ properties: { a: { pattern: "(?=a)" } } }, /properties.a.pattern.*look-around/],
  [{ pattern: "(a)\\1" }, /back-reference/],
  [{ pattern: "(" }, /regular expression/],
  [{ pattern: "(a{50}){50}" }, /too large/],
  [{ type: "text" }, /type/],
  [{ $ref: "https://example.com/schema" }, /must point into/],
  [{ $ref: "#/$defs/none" }, /must point into/],
  [{ minLength: -1 }, /whole number/],
  [{ items: [{}] }, /must be a schema/],
  [{ $id: "x" }, /not supported/],
  ["text", /must be a schema/],
];

Deno.test("json schema: what is not understood is refused, not ignored", () => {
  for (const [schema, message] of REFUSED) {
    const compiled = compileSchema(schema);
    assert.ok("errors" in compiled, JSON.stringify(schema));
    assert.match(compiled.errors.map((e) => `${e.path}: ${e.message}`).join(), message);
  }
});

Deno.test("json schema: no schema holds up the process", () => {
  const doubling: Record<string, unknown> = { z: { type: "string" } };
  for (let i = 0; i < 40; i++) {
    const next = { $ref: i === 39 ? "#/$defs/z" : `#/$defs/d${i + 1}` };
    doubling[`d${i}`] = { anyOf: [next, next] };
  }
  const hostile: [unknown, unknown][] = [
    [{ $defs: doubling, $ref: "#/$defs/d0" }, 1],
    [{ $ref: "#" }, 1],
    [{ not: { $ref: "#" } }, 1],
    [{ pattern: "(a*)*(a*)*(a*)*b" }, "a".repeat(500_000)],
    [{ items: { uniqueItems: true } }, Array(300).fill(Array.from({ length: 10_000 }, (_, i) => i))],
  ];
  for (const [schema, value] of hostile) {
    assert.deepEqual(errorsOf(schema, value), [{
      path: "data",
      message: "costs too much to check against its schema",
    }]);
  }
  assert.equal(errorsOf({ pattern: "^(a+)+$" }, "a".repeat(40) + "!").length, 1);
});

Deno.test("pattern: agrees with the platform's engine", () => {
  const leaf = fc.constantFrom(
    "a",
    "b",
    "😀",
    ".",
    "[ab]",
    "[^a]",
    "\\d",
    "\\u{61}",
    "\\x61",
    "^",
    "$",
    "[\\]b]",
    "\\p{L}",
    "\\/",
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.tuple(tie("pattern"), tie("pattern")).map(([x, y]) => x + y),
      fc.tuple(tie("pattern"), tie("pattern")).map(([x, y]) => `(?:${x}|${y})`),
      fc.tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{0,}", "*?"))
        .map(([x, q]) => `(${x})${q}`),
    ),
  }));
  const text = fc.array(fc.constantFrom("a", "b", "1", "😀", "\n", "]"), { maxLength: 8 }).map((c) =>
    c.join("")
  );
  fc.assert(
    fc.property(pattern, text, (source, value) => {
      let compiled;
      try {
        compiled = compilePattern(source);
      } catch (error) {
        fc.pre(!/too large|characters/.test((error as Error).message));
        throw error;
      }
      assert.equal(
        compiled.test(value),
        new RegExp(source, "u").test(value),
        `${source} on ${JSON.stringify(value)}`,
      );
    }),
    { numRuns: 500 },
  );
});

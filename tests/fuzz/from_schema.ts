/**
 * JSON values that fit a JSON Schema as `z.toJSONSchema` writes one, and JSON values that once did. Ids that the fixture knows
 * stand as `$prefix$n` and are put in when a request is sent, so that a failing case does not depend on one run's ids.
 */
import fc from "fast-check";

// deno-lint-ignore no-explicit-any
type Json = any;

/** What a field of this name is mostly given, whatever its schema says. */
export type Hints = Record<string, fc.Arbitrary<unknown>>;

const ID = /^\^([a-z]{3})_\[0-7\]/;

export function fromSchema(schema: Json, hints: Hints, depth = 0): fc.Arbitrary<unknown> {
  if (schema === undefined || schema === true || depth > 6) return fc.jsonValue({ maxDepth: 2 });
  if ("const" in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  const either = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(either)) return fc.oneof(...either.map((one: Json) => fromSchema(one, hints, depth + 1)));
  if (Array.isArray(schema.allOf)) return fromSchema(Object.assign({}, ...schema.allOf), hints, depth + 1);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "string":
      return text(schema);
    case "integer":
    case "number": {
      const low = Math.max(schema.minimum ?? -1e9, -1e15), high = Math.min(schema.maximum ?? 1e9, 1e15);
      const whole = fc.integer({ min: Math.ceil(low), max: Math.floor(high) });
      return schema.type === "integer"
        ? whole
        : fc.oneof(whole, fc.double({ min: low, max: high, noNaN: true }));
    }
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array": {
      const minLength = schema.minItems ?? 0, maxLength = Math.min(schema.maxItems ?? 3, minLength + 2);
      return fc.array(fromSchema(schema.items, hints, depth + 1), { minLength, maxLength });
    }
    case "object":
      return object(schema, hints, depth);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function object(schema: Json, hints: Hints, depth: number): fc.Arbitrary<unknown> {
  const properties = Object.entries<Json>(schema.properties ?? {});
  if (properties.length === 0) {
    return fc.dictionary(
      fc.string({ maxLength: 8 }),
      fromSchema(schema.additionalProperties || undefined, hints, depth + 1),
      {
        maxKeys: 3,
      },
    );
  }
  const model = Object.fromEntries(properties.map(([name, inner]) => {
    const plain = fromSchema(inner, hints, depth + 1);
    return [
      name,
      Object.hasOwn(hints, name) ? fc.oneof({ weight: 3, arbitrary: hints[name]! }, plain) : plain,
    ];
  }));
  // Often nothing that may be left out: every further field is one more that can be wrong.
  const required: string[] = schema.required ?? [];
  const slim = Object.fromEntries(Object.entries(model).filter(([name]) => required.includes(name)));
  return fc.oneof(fc.record(slim), fc.record(model, { requiredKeys: required }));
}

function text(schema: Json): fc.Arbitrary<string> {
  const known = ID.exec(schema.pattern ?? "")?.[1];
  const least = schema.minLength ?? 0, most = Math.min(schema.maxLength ?? 40, Math.max(least, 60));
  const plain = fc.string({ unit: "grapheme", minLength: least, maxLength: most });
  if (schema.format === "date-time") {
    const near = fc.integer({ min: -40 * 86_400_000, max: 40 * 86_400_000 });
    return near.map((ms) => new Date(Date.UTC(2026, 9, 9) + ms).toISOString());
  }
  if (schema.format === "email") return fc.emailAddress();
  if (schema.pattern === undefined) return plain;
  const fitting = matching(schema.pattern) ?? plain;
  return known === undefined ? fitting : fc.oneof({ weight: 6, arbitrary: reference(known) }, fitting);
}

/** An id of the fixture. */
export const reference = (prefix: string): fc.Arbitrary<string> => fc.nat(5).map((n) => `$${prefix}$${n}`);

function matching(pattern: string): fc.Arbitrary<string> | null {
  try {
    return fc.stringMatching(new RegExp(pattern, "u"), { maxLength: 60 });
  } catch {
    return null; // a construct fast-check cannot run backwards
  }
}

/** Puts the fixture's ids in. An id of a kind it has none of stays as it is: malformed. */
export const resolved = (text: string, known: ReadonlyMap<string, readonly string[]>): string =>
  text.replace(/\$([a-z]{3})\$(\d+)/g, (whole, prefix: string, n: string) => {
    const ids = known.get(prefix);
    return ids === undefined || ids.length === 0 ? whole : ids[Number(n) % ids.length]!;
  });

const ODD: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, "", " ", "0", "null", -0, 0, -1, 1e308, 2 ** 53, 0.1, [], {}, [[]], [null]),
  fc.constantFrom(
    "\0",
    "\u{1f600}",
    "ü".repeat(300),
    "x".repeat(70_000),
    "../..",
    "*",
    "constructor",
    "9999-12-31T23:59:59Z",
  ),
  fc.constantFrom({ toString: 1 }, { then: "x" }, { length: 9 }, { constructor: { prototype: {} } }),
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: "grapheme" }),
);

/** One place of a value changed: replaced, left out, wrapped, or given an unknown field. */
export function spoilt(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const names = fc.constantFrom(
    "x",
    "__proto__",
    "constructor",
    "toString",
    "id",
    "tenant_id",
    "enabled",
    "",
  );
  const change = fc.record({
    at: fc.nat(200),
    kind: fc.constantFrom("odd", "odd", "drop", "wrap", "add"),
    odd: ODD,
    name: names,
  });
  return fc.tuple(value, fc.array(change, { minLength: 1, maxLength: 2 })).map(([value, changes]) =>
    changes.reduce((now, one) => {
      const places = count(now);
      let left = one.at % places;
      return walk(now, () => left-- === 0, (found) => {
        if (one.kind === "drop") return undefined;
        if (one.kind === "wrap") return [found];
        if (one.kind !== "add" || typeof found !== "object" || found === null || Array.isArray(found)) {
          return one.odd;
        }
        return Object.defineProperty({ ...found }, one.name, {
          value: one.odd,
          enumerable: true,
          configurable: true,
        });
      });
    }, value)
  );
}

const count = (value: unknown): number =>
  1 +
  (typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, inner) => sum + count(inner), 0)
    : 0);

function walk(value: unknown, here: () => boolean, change: (value: unknown) => unknown): unknown {
  if (here()) return change(value);
  if (Array.isArray(value)) return value.map((inner) => walk(inner, here, change) ?? null);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner, here, change)]));
}

/** The keywords that hold no sub-schema: each makes a check of its argument, or says why it refuses the argument. */
import { compilePattern } from "./pattern.ts";
import { canonical, type Check, fail, isObject, isText, isTexts, type Run, spend } from "./run.ts";

/** A refusal is a text. Null: nothing to check. */
type Keyword = (argument: unknown) => Check | string | null;

const TYPES: Record<string, (value: unknown) => boolean> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  string: isText,
  number: (value) => typeof value === "number",
  // Beyond 2^53 a double is still a whole number, and its digits go out as written.
  integer: (value) => typeof value === "number" && Number.isInteger(value),
  array: Array.isArray,
  object: isObject,
};

export const SIMPLE: Record<string, Keyword> = {
  type,
  const: (argument) => oneOfValues([argument], "must be the value the schema names"),
  enum: (argument) =>
    Array.isArray(argument)
      ? oneOfValues(argument, "must be one of the values the schema lists")
      : "must be an array",
  minimum: bound("at least", (n, limit) => n >= limit),
  maximum: bound("at most", (n, limit) => n <= limit),
  exclusiveMinimum: bound("more than", (n, limit) => n > limit),
  exclusiveMaximum: bound("less than", (n, limit) => n < limit),
  multipleOf: (argument) =>
    isNumber(argument) && argument > 0
      ? bound("a multiple of", isMultiple)(argument)
      : "must be a number above 0",
  minLength: count("least", "characters", isText, codePoints),
  maxLength: count("most", "characters", isText, codePoints),
  minItems: count("least", "items", Array.isArray, (list) => list.length),
  maxItems: count("most", "items", Array.isArray, (list) => list.length),
  minProperties: count("least", "properties", isObject, (object) => Object.keys(object).length),
  maxProperties: count("most", "properties", isObject, (object) => Object.keys(object).length),
  pattern,
  uniqueItems,
  required,
  dependentRequired,
};

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

function type(argument: unknown): Check | string {
  const names = isText(argument) ? [argument] : argument;
  if (!isTexts(names) || names.length === 0 || !names.every((name) => Object.hasOwn(TYPES, name))) {
    return `must be of ${Object.keys(TYPES).join(", ")}`;
  }
  const tests = names.map((name) => TYPES[name]!);
  const message = `must be of type ${names.join(" or ")}`;
  return (value, at, run) => tests.some((test) => test(value)) || fail(run, at, message);
}

function oneOfValues(values: unknown[], message: string): Check {
  const wanted = new Set(values.map(canonical));
  return (value, at, run) => wanted.has(canonicalWithin(value, run)) || fail(run, at, message);
}

function canonicalWithin(value: unknown, run: Run): string {
  const text = canonical(value);
  spend(run, text.length / 16);
  return text;
}

function bound(words: string, holds: (n: number, limit: number) => boolean): Keyword {
  return (argument) => {
    if (!isNumber(argument)) return "must be a number";
    const message = `must be ${words} ${argument}`;
    return (value, at, run) => typeof value !== "number" || holds(value, argument) || fail(run, at, message);
  };
}

function isMultiple(n: number, of: number): boolean {
  const quotient = n / of;
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * Number.EPSILON * 4;
}

function count<T>(
  end: "least" | "most",
  unit: string,
  applies: (value: unknown) => value is T,
  measure: (value: T) => number,
): Keyword {
  return (argument) => {
    if (!Number.isSafeInteger(argument) || argument as number < 0) return "must be a whole number from 0";
    const limit = argument as number;
    const message = `must have at ${end} ${limit} ${unit}`;
    return (value, at, run) => {
      if (!applies(value)) return true;
      const size = measure(value);
      spend(run, size / 64);
      return (end === "least" ? size >= limit : size <= limit) || fail(run, at, message);
    };
  };
}

function codePoints(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function pattern(argument: unknown): Check | string {
  if (!isText(argument)) return "must be a string";
  try {
    const compiled = compilePattern(argument);
    return (value, at, run) => {
      if (!isText(value)) return true;
      spend(run, value.length * compiled.size / 8);
      return compiled.test(value) || fail(run, at, "does not match the schema's pattern");
    };
  } catch (error) {
    return (error as Error).message;
  }
}

function uniqueItems(argument: unknown): Check | string | null {
  if (typeof argument !== "boolean") return "must be a boolean";
  if (!argument) return null;
  return (value, at, run) => {
    if (!Array.isArray(value)) return true;
    const texts = new Set(value.map((item) => canonicalWithin(item, run)));
    return texts.size === value.length || fail(run, at, "must not hold the same item twice");
  };
}

function required(argument: unknown): Check | string {
  if (!isTexts(argument)) return "must be an array of names";
  return (value, at, run) => {
    if (!isObject(value)) return true;
    spend(run, argument.length);
    const missing = argument.filter((name) => !Object.hasOwn(value, name));
    for (const name of missing) fail(run, `${at}.${name}`, "is required");
    return missing.length === 0;
  };
}

function dependentRequired(argument: unknown): Check | string {
  if (!isObject(argument)) return "must be an object of arrays of names";
  const parts: { name: string; check: Check }[] = [];
  for (const [name, names] of Object.entries(argument)) {
    const check = required(names);
    if (isText(check)) return "must be an object of arrays of names";
    parts.push({ name, check });
  }
  return (value, at, run) =>
    !isObject(value) ||
    parts.every(({ name, check }) => !Object.hasOwn(value, name) || check(value, at, run));
}

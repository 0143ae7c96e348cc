/** What a schema's refusal says, in the words of the rest of the API. A schema's own words come before these. Pure. */
import type * as z from "zod";

const TYPES: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

/** The message of one refusal; undefined leaves it to the schema library. Given to `safeParse` as its `error`. */
export function say(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is required";
      return `must be ${TYPES[issue.expected] ?? `of type ${issue.expected}`}`;
    case "invalid_value":
      if (issue.input === undefined) return "is required";
      return oneOf(issue.values);
    case "invalid_union":
      if (!("options" in issue) || !Array.isArray(issue.options) || issue.discriminator === undefined) return;
      return (issue.input as Record<string, unknown> | undefined)?.[issue.discriminator] === undefined
        ? "is required"
        : oneOf(issue.options);
    case "too_small":
      return bound(issue.origin, "at least", Number(issue.minimum), issue.inclusive ?? true);
    case "too_big":
      return bound(issue.origin, "at most", Number(issue.maximum), issue.inclusive ?? true);
    default:
      return undefined;
  }
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => typeof value === "string" ? value : JSON.stringify(value));
  return texts.length === 1 ? `must be ${texts[0]}` : `must be one of: ${texts.join(", ")}`;
}

function bound(origin: string, word: "at least" | "at most", limit: number, inclusive: boolean): string {
  const n = inclusive ? limit : word === "at least" ? limit + 1 : limit - 1;
  if (origin === "string") {
    if (word === "at least" && n === 1) return "must not be empty";
    return `must have ${word} ${n} character${n === 1 ? "" : "s"}`;
  }
  if (origin === "array" || origin === "set") {
    if (word === "at least" && n === 1) return "must not be empty";
    return `must hold ${word} ${n}`;
  }
  return inclusive
    ? `must be ${word} ${limit}`
    : `must be ${word === "at least" ? "more than" : "less than"} ${limit}`;
}

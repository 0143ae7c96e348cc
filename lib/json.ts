/**
 * JSON at the door. A producer's `data` reaches the receiver as it was written: its source text is cut out of the
 * request and spliced into the envelope, never re-serialised. Re-serialising would reorder integer-like keys, drop
 * all but one of duplicate keys and rewrite numbers (`1.50`, `1e2`, `-0`, anything beyond 2^53).
 *
 * What a text could mean two things by is refused instead of passed on: duplicate keys (the schema would judge one,
 * the receiver might read the other) and lone surrogates (not Unicode; decoders disagree), as RFC 7493 asks.
 */
import { invalidRequest, InvariantError } from "./errors.ts";
import { MAX_JSON_DEPTH } from "./limits.ts";

/** A checked JSON text with its parsed twin: `text` goes out, `value` is what schemas judge. Made by `readJson` alone. */
export class JsonText {
  constructor(readonly text: string, readonly value: unknown) {}
  /** `JSON.stringify` cannot splice text; whoever reaches it here lost the producer's bytes. */
  toJSON(): never {
    throw new InvariantError("Invariant O3 does not hold: a JsonText was given to JSON.stringify");
  }
}

/** The plain JSON value behind event data, for schemas. */
export const plainOf = (data: unknown): unknown => data instanceof JsonText ? data.value : data;

const fatal = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** UTF-8 bytes to text. @throws ApiError 400 at path `body` when the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return fatal.decode(bytes);
  } catch {
    throw malformed("is not valid UTF-8");
  }
}

/**
 * Parses and checks a JSON text: grammar, depth (64), well-formed Unicode, no duplicate keys.
 * Numbers of `value` are plain doubles; `text` keeps their digits.
 * @throws ApiError 400 at `path`.
 */
export function readJson(text: string, path = "body"): JsonText {
  const value = parse(text, path);
  const problem = audit(text);
  if (problem !== null) throw malformed(problem, path);
  return new JsonText(text, value);
}

/**
 * A JSON value whose numbers stringify to the digits they came with: a number that would change is a `JSON.rawJSON`
 * object, every other one a plain number. For values that are rebuilt on the way; what only passes through uses
 * `readJson`.
 * @throws ApiError 400 at `path` as `readJson` does.
 */
export function parseJson(text: string, path = "body"): unknown {
  readJson(text, path);
  return JSON.parse(text, function (_key, value, context) {
    if (typeof value !== "number" || context?.source === undefined) return value;
    return JSON.stringify(value) === context.source ? value : rawJson.rawJSON(context.source);
  } as Reviver);
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;
// The standard library's types do not know `JSON.rawJSON` yet; V8 does.
const rawJson = JSON as unknown as { rawJSON(text: string): unknown; isRawJSON(value: unknown): boolean };

/** The JSON text of a value that may hold `JsonText` or `JSON.rawJSON` parts at any depth. */
export function stringify(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => stringify(item ?? null)).join(",")}]`;
  if (isObject(value) && !rawJson.isRawJSON(value) && typeof value.toJSON !== "function") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${stringify(member)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/**
 * The members of an object text, each as its own source text with its parsed value. Null when it is no object.
 * @param json what `readJson` accepted, so the grammar is taken for granted.
 */
export function membersOf(json: JsonText): Map<string, JsonText> | null {
  if (!isObject(json.value) || Array.isArray(json.value)) return null;
  const members = new Map<string, JsonText>();
  const { text } = json;
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (text[at] !== "}") {
    const keyEnd = stringEnd(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const from = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const to = valueEnd(text, from);
    members.set(key, new JsonText(text.slice(from, to), json.value[key]));
    at = skipSpace(text, to);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return members;
}

/** The elements of an array text, as `membersOf` does. Null when it is no array. */
export function elementsOf(json: JsonText): JsonText[] | null {
  if (!Array.isArray(json.value)) return null;
  const elements: JsonText[] = [];
  const { text } = json;
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (text[at] !== "]") {
    const to = valueEnd(text, at);
    elements.push(new JsonText(text.slice(at, to), json.value[elements.length]));
    at = skipSpace(text, to);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return elements;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const malformed = (message: string, path = "body") =>
  invalidRequest([{ path, message }], "Send well-formed JSON in UTF-8.");

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes the text, which may be content: the rule alone is said (P1).
    throw malformed("is not valid JSON", path);
  }
}

const QUOTE = 0x22, COMMA = 0x2c, BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/** One pass over a text of proven grammar: the first thing that is refused, or null. */
function audit(text: string): string | null {
  if (!text.isWellFormed()) return "holds a lone surrogate, which is not Unicode";
  const escapes = text.includes("\\");
  const open: (Set<string> | null)[] = [];
  let keyNext = false;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        keyNext = text.charCodeAt(at) === OPEN_OBJECT;
        open.push(keyNext ? new Set() : null);
        if (open.length > MAX_JSON_DEPTH) return `is nested deeper than ${MAX_JSON_DEPTH} levels`;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        open.pop();
        keyNext = false;
        break;
      case COMMA:
        keyNext = open.at(-1) !== null;
        break;
      case QUOTE: {
        const end = stringEnd(text, at);
        let inner = text.slice(at + 1, end - 1);
        if (escapes && inner.includes("\\")) {
          inner = JSON.parse(text.slice(at, end));
          if (!inner.isWellFormed()) return "holds a lone surrogate, which is not Unicode";
        }
        const seen = open.at(-1);
        if (keyNext && seen) {
          if (seen.has(inner)) return "has an object with the same key twice";
          seen.add(inner);
          keyNext = false;
        }
        at = end - 1;
      }
    }
  }
  return null;
}

/** Past the closing quote of the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1);; end = text.indexOf('"', end + 1)) {
    let back = end - 1;
    while (text.charCodeAt(back) === BACKSLASH) back--;
    if ((end - 1 - back) % 2 === 0) return end + 1;
  }
}

/** Past the value that starts at `at`. */
function valueEnd(text: string, at: number): number {
  let depth = 0;
  for (; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth++;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (depth === 0) return trimmedEnd(text, at);
        depth--;
        break;
      case COMMA:
        if (depth === 0) return trimmedEnd(text, at);
        break;
      case QUOTE:
        at = stringEnd(text, at) - 1;
    }
  }
  return trimmedEnd(text, at);
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

function skipSpace(text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

function trimmedEnd(text: string, end: number): number {
  while (isSpace(text.charCodeAt(end - 1))) end--;
  return end;
}

/**
 * JSON Schema (2020-12) for the types that applications register. A schema is a stranger's program: unknown keywords are
 * refused instead of ignored, nothing is fetched, patterns run in linear time (`pattern.ts`), and a check has a
 * budget, so no schema can hold up the process. `format` and the other annotations assert nothing, as the standard says.
 *
 * zod's `fromJSONSchema` is not used here: it ignores unknown keywords, takes `required` properties with a `default` as
 * optional, refuses integers beyond 2^53 and hands patterns to the backtracking engine.
 */
import type { FieldError } from "../errors.ts";
import {
  type Check,
  descend,
  fail,
  isObject,
  isText,
  MAX_ERRORS,
  type Run,
  type Schema,
  silently,
  spend,
  TooCostly,
} from "./run.ts";
import { SIMPLE } from "./simple.ts";

/** What is wrong with a value at the dotted `path`, at most ten of them; empty: it satisfies the schema. */
export type Validator = (value: unknown, path: string) => FieldError[];

const MAX_SUBSCHEMAS = 2_000;

/** Keywords that assert nothing by themselves, and those their neighbours read. */
const SILENT = new Set(
  ("$schema $comment title description default examples deprecated readOnly writeOnly format contentMediaType " +
    "contentEncoding $defs definitions then else additionalProperties items").split(" "),
);

/** Compiles a schema. `errors` lists what is refused in it, with paths under `schema`. */
export function compileSchema(schema: unknown): { validate: Validator } | { errors: FieldError[] } {
  const compiler = new Compiler(schema);
  const check = compiler.compile();
  if (compiler.errors.length > 0) return { errors: compiler.errors.slice(0, MAX_ERRORS) };
  return {
    validate(value, path) {
      const run: Run = { cost: 0, depth: 0, errors: [] };
      try {
        check(value, path, run);
      } catch (error) {
        if (!(error instanceof TooCostly)) throw error;
        return [{ path, message: "costs too much to check against its schema" }];
      }
      return run.errors!;
    },
  };
}

class Compiler {
  readonly errors: FieldError[] = [];
  #root: unknown;
  #nodes = 0;
  #compiled = new Map<unknown, Check>();
  #references: { target: unknown; path: string; use: (check: Check) => void }[] = [];

  constructor(root: unknown) {
    this.#root = root;
  }

  compile(): Check {
    const check = this.#node(this.#root, "schema");
    // What only references reach comes last, until none is left.
    for (let ref = this.#references.pop(); ref !== undefined; ref = this.#references.pop()) {
      ref.use(this.#compiled.get(ref.target) ?? this.#node(ref.target, ref.path));
    }
    return check;
  }

  #refuse(path: string, message: string): Check {
    this.errors.push({ path, message });
    return () => false;
  }

  #node(schema: unknown, path: string): Check {
    if (schema === true) return () => true;
    if (schema === false) return (_value, at, run) => fail(run, at, "is not allowed");
    if (!isObject(schema)) return this.#refuse(path, "must be a schema: an object or a boolean");
    if (++this.#nodes > MAX_SUBSCHEMAS) {
      return this.#refuse(path, `is one of over ${MAX_SUBSCHEMAS} sub-schemas`);
    }
    const checks: Check[] = [];
    const node: Check = (value, at, run) => descend(run, checks, value, at);
    this.#compiled.set(schema, node);
    for (const [keyword, argument] of Object.entries(schema)) {
      const check = this.#keyword(keyword, argument, schema, `${path}.${keyword}`);
      if (check !== null) checks.push(check);
    }
    for (const check of [this.#members(schema, path), this.#elements(schema, path)]) {
      if (check !== null) checks.push(check);
    }
    return node;
  }

  #keyword(keyword: string, argument: unknown, schema: Schema, path: string): Check | null {
    if (Object.hasOwn(SIMPLE, keyword)) {
      const check = SIMPLE[keyword]!(argument);
      return isText(check) ? this.#refuse(path, check) : check;
    }
    switch (keyword) {
      case "properties":
        return isObject(argument) ? null : this.#refuse(path, "must be an object of schemas");
      case "prefixItems":
        return Array.isArray(argument) ? null : this.#refuse(path, "must be an array of schemas");
      case "propertyNames":
        return this.#names(argument, path);
      case "allOf":
      case "anyOf":
      case "oneOf":
        return this.#several(keyword, argument, path);
      case "not":
        return this.#not(argument, path);
      case "if":
        return this.#conditional(schema, path);
      case "$ref":
        return this.#reference(argument, path);
      default:
        return SILENT.has(keyword) ? null : this.#refuse(path, "is a keyword that is not supported here");
    }
  }

  #names(argument: unknown, path: string): Check {
    const check = this.#node(argument, path);
    return (value, at, run) =>
      !isObject(value) || Object.keys(value).every((key) => silently(check, key, run)) ||
      fail(run, at, "has a property name that is not allowed");
  }

  #several(keyword: "allOf" | "anyOf" | "oneOf", argument: unknown, path: string): Check {
    if (!Array.isArray(argument) || argument.length === 0) {
      return this.#refuse(path, "must be an array of schemas");
    }
    const checks = argument.map((schema, i) => this.#node(schema, `${path}.${i}`));
    if (keyword === "allOf") return (value, at, run) => descend(run, checks, value, at);
    const one = keyword === "oneOf";
    return (value, at, run) => {
      let held = 0;
      for (const check of checks) {
        if (silently(check, value, run)) held++;
        if (held > (one ? 1 : 0)) break;
      }
      return held === 1 || fail(run, at, `must satisfy ${one ? "exactly " : ""}one of the schemas`);
    };
  }

  #not(argument: unknown, path: string): Check {
    const check = this.#node(argument, path);
    return (value, at, run) =>
      !silently(check, value, run) || fail(run, at, "must not satisfy the schema's `not`");
  }

  #conditional(schema: Schema, path: string): Check {
    const when = this.#node(schema.if, path);
    const then = this.#node(schema.then ?? true, `${path}.then`);
    const otherwise = this.#node(schema.else ?? true, `${path}.else`);
    return (value, at, run) => (silently(when, value, run) ? then : otherwise)(value, at, run);
  }

  #reference(argument: unknown, path: string): Check {
    const target = isText(argument) ? pointed(this.#root, argument) : undefined;
    if (target === undefined) return this.#refuse(path, 'must point into this schema, like "#/$defs/name"');
    let check: Check = () => false;
    this.#references.push({ target, path, use: (found) => check = found });
    return (value, at, run) => check(value, at, run);
  }

  #members(schema: Schema, path: string): Check | null {
    const named = isObject(schema.properties) ? schema.properties : {};
    const checks = new Map<string, Check>();
    for (const [name, sub] of Object.entries(named)) {
      checks.set(name, this.#node(sub, `${path}.properties.${name}`));
    }
    const closed = Object.hasOwn(schema, "additionalProperties");
    const rest = closed ? this.#node(schema.additionalProperties, `${path}.additionalProperties`) : null;
    if (checks.size === 0 && rest === null) return null;
    return (value, at, run) => {
      if (!isObject(value)) return true;
      let ok = true;
      for (const key of Object.keys(value)) {
        spend(run, 1);
        const check = checks.get(key) ?? rest;
        if (check !== null && !check(value[key], `${at}.${key}`, run)) ok = false;
      }
      return ok;
    };
  }

  #elements(schema: Schema, path: string): Check | null {
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
    const checks = first.map((sub, i) => this.#node(sub, `${path}.prefixItems.${i}`));
    const rest = Object.hasOwn(schema, "items") ? this.#node(schema.items, `${path}.items`) : null;
    if (checks.length === 0 && rest === null) return null;
    return (value, at, run) => {
      if (!Array.isArray(value)) return true;
      let ok = true;
      for (let i = 0; i < value.length; i++) {
        spend(run, 1);
        const check = checks[i] ?? rest;
        if (check !== null && !check(value[i], `${at}.${i}`, run)) ok = false;
      }
      return ok;
    };
  }
}

/** What a local reference (`#`, `#/a/b`) points to; undefined when nothing is there. */
function pointed(root: unknown, reference: string): unknown {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let here = root;
  for (const part of reference.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    here = (here as Schema)[name];
  }
  return here;
}

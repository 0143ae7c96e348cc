/** Event types that applications register (reference §5, "Custom types"): name, JSON schema, example. Pure. */
import { catalogue } from "./catalogue.ts";
import { type FieldError, invalidRequest } from "./errors.ts";
import { compileSchema, type Validator } from "./json_schema/compile.ts";

export const CUSTOM_NAME = /^[a-z0-9_]+(\.[a-z0-9_]+)+$/;
export const MAX_TYPE_NAME_CHARS = 128;
/** Characters of a schema's JSON text. */
export const MAX_SCHEMA_CHARS = 32_768;
/** Types a tenant may register. */
export const MAX_CUSTOM_TYPES = 1_000;
const MAX_EXAMPLE_CHARS = 16_384;

/** What is wrong with a custom type's name, or null. */
export function nameProblem(name: string): string | null {
  if (name.length > MAX_TYPE_NAME_CHARS) return `must be at most ${MAX_TYPE_NAME_CHARS} characters`;
  if (!CUSTOM_NAME.test(name)) {
    return "must be two or more words of lower-case letters, digits and underscores, joined by dots";
  }
  if (catalogue.has(name)) return "is the name of a built-in type";
  return null;
}

/**
 * Checks a definition: the name, the schema, and that the example satisfies the schema.
 * @throws ApiError 400 with every fault found.
 * @returns the schema compiled.
 */
export function defineType(definition: { name: string; schema: unknown; example: unknown }): Validator {
  const { name, schema, example } = definition;
  const problem = nameProblem(name);
  if (problem !== null) throw invalidRequest([{ path: "name", message: problem }], "Choose another name.");
  const tooLong: FieldError[] = [];
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) {
    tooLong.push({ path: "schema", message: `must be at most ${MAX_SCHEMA_CHARS} characters of JSON` });
  }
  if (JSON.stringify(example).length > MAX_EXAMPLE_CHARS) {
    tooLong.push({ path: "example", message: `must be at most ${MAX_EXAMPLE_CHARS} characters of JSON` });
  }
  if (tooLong.length > 0) throw invalidRequest(tooLong);
  const compiled = compileSchema(schema);
  if ("errors" in compiled) {
    throw invalidRequest(
      compiled.errors,
      "Use the keywords of JSON Schema 2020-12 that the errors do not name.",
    );
  }
  const errors = compiled.validate(example, "example");
  if (errors.length > 0) throw invalidRequest(errors, "Give an example that satisfies the schema.");
  return compiled.validate;
}

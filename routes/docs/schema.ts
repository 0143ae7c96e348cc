/** A JSON Schema as rows of a table: each field with its path, its type in words and its bounds. Pure. */

export type Schema = Record<string, unknown>;

export interface Field {
  /** `message.from.address`, `to[].name`. */
  path: string;
  /** `string`, `"a" or "b"`, `evt_… id`, `object[]`. */
  type: string;
  required: boolean;
  /** Bounds and the field's own description. */
  note: string;
}

const MAX_DEPTH = 6;
/** Values of an enumeration that are shown; the rest is counted. */
const MAX_VALUES = 40;
const ID_PATTERN = /^\^([a-z]{3})_\[0-7\]/;

/** Every field below a schema, in its order; none for what is no object. */
export function fieldsOf(schema: Schema, path = "", depth = 0): Field[] {
  const { core } = withoutNull(schema);
  if (depth > MAX_DEPTH) return [];
  if (core["type"] === "array") {
    return depth === 0 && path === ""
      ? fieldsOf(objectOf(core["items"]), "[]", depth + 1)
      : fieldsOf(objectOf(core["items"]), `${path}[]`, depth + 1);
  }
  const properties = core["properties"];
  if (typeof properties !== "object" || properties === null) return [];
  const required = new Set(Array.isArray(core["required"]) ? core["required"] : []);
  return Object.entries(properties).flatMap(([name, inner]) => {
    const own = path === "" ? name : `${path}.${name}`;
    const shape = objectOf(inner);
    return [
      { path: own, type: typeOf(shape), required: required.has(name), note: noteOf(shape) },
      ...fieldsOf(shape, own, depth + 1),
    ];
  });
}

/** The type in words. */
export function typeOf(schema: Schema): string {
  const { core, nullable } = withoutNull(schema);
  const text = coreType(core);
  return nullable && text !== "null" ? `${text} or null` : text;
}

function coreType(core: Schema): string {
  if ("const" in core) return JSON.stringify(core["const"]);
  if (Array.isArray(core["enum"])) {
    const values = core["enum"].map((value) => JSON.stringify(value));
    const more = values.length - MAX_VALUES;
    return values.slice(0, MAX_VALUES).join(" or ") + (more > 0 ? ` or ${more} more` : "");
  }
  const any = core["anyOf"] ?? core["oneOf"];
  if (Array.isArray(any)) return [...new Set(any.map((part) => typeOf(objectOf(part))))].join(" or ");
  const id = ID_PATTERN.exec(String(core["pattern"] ?? ""));
  if (id !== null) return `${id[1]}_… id`;
  if (core["type"] === "array") return `${typeOf(objectOf(core["items"]))}[]`;
  if (core["format"] === "date-time") return "time, RFC 3339";
  if (Array.isArray(core["type"])) return core["type"].join(" or ");
  return typeof core["type"] === "string" ? core["type"] : "any JSON";
}

function noteOf(schema: Schema): string {
  const { core } = withoutNull(schema);
  const notes: string[] = [];
  if (typeof schema["description"] === "string") notes.push(schema["description"]);
  else if (typeof core["description"] === "string") notes.push(core["description"]);
  if (!("const" in core) && !("enum" in core)) {
    notes.push(...bounds(core, "minLength", "maxLength", "characters"));
    notes.push(...bounds(core, "minItems", "maxItems", "items"));
    notes.push(...bounds(core, "minimum", "maximum", ""));
  }
  if ("default" in core) notes.push(`Default ${JSON.stringify(core["default"])}.`);
  return notes.join(" ");
}

function bounds(core: Schema, low: string, high: string, unit: string): string[] {
  const min = core[low], max = core[high];
  const tail = unit === "" ? "." : ` ${unit}.`;
  if (ID_PATTERN.test(String(core["pattern"] ?? ""))) return [];
  if (typeof max === "number" && Number.isSafeInteger(max) && max < Number.MAX_SAFE_INTEGER) {
    return [typeof min === "number" ? `${min} to ${max}${tail}` : `At most ${max}${tail}`];
  }
  return typeof min === "number" && min > Number.MIN_SAFE_INTEGER ? [`At least ${min}${tail}`] : [];
}

/** A schema that also allows null, without it. */
function withoutNull(schema: Schema): { core: Schema; nullable: boolean } {
  const any = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(any)) {
    const rest = any.map(objectOf).filter((part) => part["type"] !== "null");
    if (rest.length === any.length) return { core: schema, nullable: false };
    return { core: rest.length === 1 ? rest[0]! : { anyOf: rest }, nullable: true };
  }
  if (Array.isArray(schema["type"]) && schema["type"].includes("null")) {
    const rest = schema["type"].filter((type) => type !== "null");
    return { core: { ...schema, type: rest.length === 1 ? rest[0] : rest }, nullable: true };
  }
  return { core: schema, nullable: false };
}

const objectOf = (value: unknown): Schema =>
  typeof value === "object" && value !== null ? value as Schema : {};

/** Requests to a row of the route table: mostly almost right, sometimes anything at all. */
import fc from "fast-check";
import * as z from "zod";
import type { Route } from "../../routes/table.ts";
import { URL_OK } from "../routes/support.ts";
import { ADDRESS, ORDER_SCHEMA } from "./fixture.ts";
import { fromSchema, type Hints, spoilt } from "./from_schema.ts";
import { mutated } from "./runs.ts";

/** A request as data; `$prefix$n` stands for an id of the fixture in `path` and `body`. */
export interface Asked {
  /** Method and path of the row. */
  route: string;
  method: string;
  path: string;
  /** Index into the fixture's keys, null for none. */
  key: number | null;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | null;
}

const MAILS = await Promise.all(
  ["plain", "multipart_attachment"].map((name) =>
    Deno.readTextFile(new URL(`../../demo/mails/${name}.eml`, import.meta.url))
  ),
);
const TYPES = ["*", "order.paid", "message.received", "webhook.disabled", "identity.paused", "no.such"];
const HINTS: Hints = {
  url: fc.constantFrom(URL_OK, URL_OK, URL_OK, "https://127.0.0.1/", "http://x", "https://a.local/"),
  events: fc.oneof(
    fc.constant(["*"]),
    fc.array(fc.record({ type: fc.constant("order.paid"), data: fc.constant({ amount: 1 }) }), {
      maxLength: 3,
    }),
    fc.subarray(TYPES),
  ),
  tenant_id: fc.constant("$ten$0"),
  identity_id: fc.constant("$idn$0"),
  identity_ids: fc.constant(["$idn$0"]),
  scope: fc.constantFrom("thread", "message", "identity"),
  type: fc.constantFrom("order.paid", "order.paid", "order.paid", "identity.key_created", ...TYPES),
  data: fc.oneof(
    fc.constant({ amount: 1 }),
    fc.constant({ identity_id: "$idn$0", kid: "k1" }),
    fc.jsonValue(),
  ),
  schema: fc.oneof(
    fc.constant(ORDER_SCHEMA),
    fc.record({
      type: fc.constantFrom("object", "string", "odd", ["object", "null"]),
      pattern: fc.constantFrom("(a+)+$", "[", "^a$", "\\p{L}"),
      properties: fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
      $ref: fc.constantFrom("#", "#/definitions/x", "http://x"),
      items: fc.jsonValue({ maxDepth: 2 }),
      minimum: fc.oneof(fc.integer(), fc.string()),
      required: fc.array(fc.string({ maxLength: 5 })),
    }, { requiredKeys: [] }),
  ),
  example: fc.constant({ amount: 1 }),
  address: fc.constantFrom(ADDRESS, "marta@lindenhof.example", "NOOR@Werkbank.Example", "x@", "a@b.example"),
  name: fc.constantFrom("Noor", "werkbank.example", "desk.werkbank.example", "xn--bcher-kva.example"),
  level: fc.constantFrom("platform", "partner", "tenant", "identity"),
  headers: fc.dictionary(
    fc.constantFrom("X-Token", "Host", "webhook-id", "x y", "Authorization"),
    fc.string(),
    { maxKeys: 2 },
  ),
};
const PIECES = fc.constantFrom(
  ...'{}[]",:\\/ \n\t0-',
  '"x":1,',
  "1e999",
  "\\ud800",
  "\\u0000",
  "NaN",
  "\ufeff",
  "//",
  '"__proto__":{},',
  "\0",
);
const TYPES_OF_BODY = fc.constantFrom(
  "application/json; charset=utf-8",
  'application/json;charset="UTF-8"',
  "application/json; charset=latin1",
  "text/plain",
  "message/rfc822",
  "application/x-www-form-urlencoded",
  "application/JSON",
  ";",
  "*/*",
);

/** Mostly what the schemas want: a request that passes is what shows that the others are refused for a reason. */
const mostly = <T>(good: fc.Arbitrary<T>, bad: fc.Arbitrary<T>, weight = 8): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: good }, bad);

const escaped = fc.string({ unit: "binary", maxLength: 12 }).map((text) =>
  encodeURIComponent(text.toWellFormed())
);
const junk = fc.oneof(
  escaped,
  fc.constantFrom(
    "%",
    "%00",
    "%2F",
    "..",
    ".",
    "%2e%2e",
    "*",
    ":id",
    "{x}",
    "a%20b",
    "%F0%9F",
    "a;b",
    "x".repeat(3_000),
  ),
);

const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });

function pathOf(row: Route): fc.Arbitrary<string> {
  const parts = row.path.split("/").map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined) return fc.constant(part);
    const fitting = fromSchema(schemaOf(row.params[name]!), HINTS).map(String);
    const named = name === "name"
      ? fc.constantFrom("order.paid", "x.y")
      : name === "key"
      ? fc.constant("cart-7")
      : fitting;
    // A placeholder must not be escaped before its id is in its place; an id has nothing to escape.
    return mostly(
      fc.oneof(named, fitting).map((t) => t.startsWith("$") ? t : encodeURIComponent(t.toWellFormed())),
      junk,
      14,
    );
  });
  return fc.tuple(...parts).map((parts) => parts.join("/"));
}

function queryOf(row: Route): fc.Arbitrary<string> {
  const fields = Object.entries(row.query).map(([name, schema]) => {
    const value = mostly(
      fromSchema(schemaOf(schema), HINTS).map((v) => encodeURIComponent(String(v).toWellFormed())),
      junk,
      4,
    );
    return value.map((value) => `${name}=${value}`);
  });
  const odd = fc.tuple(escaped, junk).map(([name, value]) => `${name}=${value}`);
  const some = fields.length === 0
    ? fc.constant<string[]>([])
    : fc.array(fc.oneof(...fields), { maxLength: 2 });
  return mostly(some, fc.array(odd, { maxLength: 2 }), 8).map((all) =>
    all.length === 0 ? "" : "?" + all.join("&")
  );
}

function bodyOf(row: Route): fc.Arbitrary<Asked["body"]> {
  const fitting = row.body === null ? fc.constant({}) : fromSchema(schemaOf(row.body), HINTS);
  const text = (value: fc.Arbitrary<unknown>) => value.map((v) => JSON.stringify(v) ?? "");
  const deep = fc.integer({ min: 60, max: 20_000 }).map((n) => '{"x":'.repeat(n) + "1" + "}".repeat(n));
  const raw = fc.oneof(
    fc.constantFrom(...MAILS),
    mutated(fc.constantFrom(...MAILS), fc.string({ unit: "binary", maxLength: 4 })),
  );
  return fc.oneof(
    { weight: 24, arbitrary: text(fitting) },
    { weight: 6, arbitrary: text(spoilt(fitting)) },
    { weight: 2, arbitrary: mutated(text(fitting), PIECES) },
    { weight: 1, arbitrary: text(fc.jsonValue()) },
    {
      weight: 1,
      arbitrary: fc.oneof(
        deep,
        fc.constant(null),
        fc.constant("x".repeat(1_100_000)),
        fc.constant("[" + "1,".repeat(50_000) + "1]"),
      ),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => new Uint8Array(bytes)) },
    ...(row.raw.length > 0 ? [{ weight: 8, arbitrary: raw }] : []),
  );
}

export const nameOf = (row: Route): string => `${row.method} ${row.path}`;

/** A request to one of the rows. */
export function requests(rows: readonly Route[]): fc.Arbitrary<Asked> {
  const made = new Map(rows.map((row) => [row, requestTo(row)]));
  return fc.constantFrom(...rows).chain((row) => made.get(row)!);
}

function requestTo(row: Route): fc.Arbitrary<Asked> {
  const methods = mostly(
    fc.constant(row.method as string),
    fc.constantFrom("GET", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "PURGE"),
    30,
  );
  const idem = fc.oneof(
    fc.constantFrom("a", "b", "~ ~"),
    fc.constantFrom("é", "x".repeat(256), "x".repeat(255)),
  );
  const coded = mostly(
    fc.constant({}),
    fc.record({ "content-encoding": fc.constantFrom("gzip", "identity") }),
    30,
  );
  const headers = fc.record({
    "content-type": fc.oneof({ weight: 24, arbitrary: fc.constant("application/json") }, TYPES_OF_BODY),
    "idempotency-key": idem,
  }, { requiredKeys: ["content-type"] });
  const asIs = fc.tuple(headers, coded).map(([plain, more]) => ({ ...plain, ...more }));
  const key = fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.constant(2) },
    fc.option(fc.nat(6), { nil: null }),
  );
  const path = fc.tuple(pathOf(row), queryOf(row)).map((parts) => parts.join(""));
  return fc.tuple(methods, path, key, asIs, bodyOf(row)).map(([method, path, key, headers, body]) => {
    const isMail = row.raw.length > 0 && typeof body === "string" && !/^[{["]/.test(body);
    const typed = isMail ? { ...headers, "content-type": row.raw[0]! } : headers;
    return { route: nameOf(row), method, path, key, headers: typed as Record<string, string>, body };
  });
}

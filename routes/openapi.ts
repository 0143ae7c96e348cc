/**
 * The OpenAPI 3.1 document: paths from the route table, `webhooks` from the event catalogue. A 3.1 schema is a JSON Schema of
 * 2020-12, which zod writes itself; the generator we tried instead let regular expression flags into `pattern`.
 */
import * as z from "zod";
import { catalogue, type EventType } from "../lib/catalogue.ts";
import { API_VERSION } from "../lib/envelope.ts";
import type { Route } from "./table.ts";

type Json = Record<string, unknown>;

/** The whole document as a JSON value. @param version the release. */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const row of routes) {
    (paths[row.path] ??= {})[row.method.toLowerCase()] = operation(row);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Pylota webhooks",
      version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: "Events in the commit of the change that causes them, delivered as signed HTTPS requests.",
    },
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    security: [{ key: [] }],
    paths,
    webhooks: Object.fromEntries([...catalogue.values()].map((type) => [type.name, webhook(type)])),
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "An API key: `pmk_live_…` or `pmk_test_…`." },
      },
      schemas: { Error: schemaOf(errorBody, "output") },
      responses: {
        Error: {
          description: "A refusal: the code, what is in the way, and the way out.",
          headers: { "Request-Id": { schema: { type: "string" } } },
          content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
        },
      },
    },
  };
}

const errorBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    retryable: z.boolean(),
    fix: z.string(),
    request_id: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
});

function operation(row: Route): Json {
  const success: Json = {
    description: row.summary,
    headers: { "Request-Id": { schema: { type: "string" } } },
  };
  if (row.response !== null) {
    success["content"] = { "application/json": { schema: schemaOf(row.response, "output") } };
  }
  const open = row.permission === "public";
  return {
    operationId: operationId(row),
    tags: [row.tag],
    summary: row.summary,
    ...(open ? { security: [] } : { "x-permission": row.permission }),
    parameters: parametersOf(row),
    ...requestBody(row),
    responses: { [row.status]: success, default: { $ref: "#/components/responses/Error" } },
  };
}

/** `POST /v1/webhooks/{webhook_id}/test` → `post_webhooks_by_webhook_id_test` */
function operationId(row: Route): string {
  const words = row.path.replace(/^\/v1/, "").replace(/\{([a-z_]+)\}/g, "by_$1").replace(/[^a-z_]+/g, "_");
  return `${row.method.toLowerCase()}${words}`;
}

function parametersOf(row: Route): Json[] {
  const parameters: Json[] = [];
  for (const [name, schema] of Object.entries(row.params)) {
    parameters.push({ name, in: "path", required: true, schema: schemaOf(schema, "input") });
  }
  for (const [name, schema] of Object.entries(row.query)) {
    const required = !schema.safeParse(undefined).success;
    parameters.push({ name, in: "query", required, schema: schemaOf(schema, "input") });
  }
  if (row.idempotent) {
    const schema = { type: "string", minLength: 1, maxLength: 255 };
    parameters.push({ name: "Idempotency-Key", in: "header", required: false, schema });
  }
  return parameters;
}

function requestBody(row: Route): Json {
  if (row.body === null && row.raw.length === 0) return {};
  const content: Record<string, Json> = {};
  if (row.body !== null) content["application/json"] = { schema: schemaOf(row.body, "input") };
  for (const type of row.raw) content[type] = { schema: { type: "string", contentMediaType: type } };
  return { requestBody: { required: row.body !== null && !row.body.safeParse({}).success, content } };
}

/** What a receiver of this type is sent (the document, "Signing"). */
function webhook(type: EventType): Json {
  const mailbox = type.owner === "mailbox" || type.name === "identity.deleted";
  const id = (prefix: string) => ({ type: "string", pattern: `^${prefix}_[0-7][0-9A-HJKMNP-TV-Z]{25}$` });
  const header = (name: string, description: string) => ({
    name,
    in: "header",
    required: true,
    description,
    schema: { type: "string" },
  });
  return {
    post: {
      operationId: `on_${type.name.replace(/\W+/g, "_")}`,
      tags: [type.owner],
      summary: type.description,
      security: [],
      parameters: [
        header("webhook-id", "The event's id: the same on every attempt and replay."),
        header("webhook-timestamp", "Unix seconds of this attempt."),
        header("webhook-signature", "`v1,` and the base64 of HMAC-SHA256; two during a rotation's overlap."),
      ],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: {
              type: "object",
              required: [
                "id",
                "type",
                "api_version",
                "occurred_at",
                "tenant_id",
                "identity_id",
                "sequence",
                "data",
              ],
              properties: {
                id: id("evt"),
                type: { const: type.name },
                api_version: { const: API_VERSION },
                occurred_at: { type: "string", format: "date-time" },
                tenant_id: { ...id("ten"), type: ["string", "null"] },
                identity_id: mailbox ? id("idn") : { type: "null" },
                sequence: type.owner === "platform" ? { type: "null" } : { type: "integer", minimum: 1 },
                data: { ...schemaOf(type.data, "output"), examples: [type.example] },
              },
            },
          },
        },
      },
      responses: { "2XX": { description: "Received. The body is ignored." } },
    },
  };
}

/** The JSON Schema of a zod schema. What refers to itself becomes "any JSON": its references would not hold in here. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, $defs, ...made } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return ($defs === undefined ? made : withoutRefs(made)) as Json;
}

function withoutRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutRefs);
  if (typeof value !== "object" || value === null) return value;
  if ("$ref" in value) return {};
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutRefs(inner)]));
}

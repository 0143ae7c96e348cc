/**
 * The event types of a tenant: registered through a plain commit, read through an isolate cache with the schema compiled.
 * A change in this isolate shows at once, one in another isolate within 30 s (the document's endpoint cache); no read of
 * it is checked at commit, so appending stays one check an owner.
 */
import { ApiError, invalidRequest } from "../lib/errors.ts";
import { catalogue, unknownAmong } from "../lib/catalogue.ts";
import { defineType, MAX_CUSTOM_TYPES } from "../lib/custom_types.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { TenantId } from "../lib/ids.ts";
import { type EventTypeRow, keys } from "../lib/keys.ts";
import { compileSchema, type Validator } from "../lib/json_schema/compile.ts";
import { ENDPOINT_CACHE_MS } from "../lib/limits.ts";

export interface EventTypeDefinition {
  name: string;
  description: string;
  schema: Record<string, unknown> | boolean;
  example: unknown;
}

export interface EventTypes {
  /** Registers or replaces a type; `extra` rows (audit) ride with it. 400 names every fault, or that there are 1,000 types. */
  put(
    tenant: TenantId,
    definition: EventTypeDefinition,
    extra?: Write[],
  ): Promise<{ row: EventTypeRow; created: boolean }>;
  get(tenant: TenantId, name: string): Promise<EventTypeRow | null>;
  /** Names of a tenant's types, in order. */
  names(tenant: TenantId): Promise<string[]>;
  /**
   * Throws 400 unless `type` is registered and `data` satisfies its schema. The unknown type's error names the nearest.
   * @param path prefix of the error paths: "" or "events.3.".
   */
  check(tenant: TenantId, type: string, data: unknown, path?: string): Promise<void>;
}

interface Loaded {
  validate: Validator;
  versionstamp: string;
  until: number;
}

const MAX_LOADED = 2_000;

export function makeEventTypes(deps: { kv: Kv; committer: Committer; now(): number }): EventTypes {
  const { kv, committer, now } = deps;
  /** Schemas compiled, by tenant and name; an expired one whose row did not change is not compiled again. */
  const loaded = new Map<string, Loaded>();

  async function load(tenant: TenantId, name: string): Promise<Loaded> {
    const hit = loaded.get(nameOf(tenant, name));
    if (hit !== undefined && hit.until > now()) return hit;
    const entry = await kv.get<EventTypeRow>(keys.eventType(tenant, name));
    if (entry.value === null) throw await unknown(tenant, name);
    if (hit?.versionstamp === entry.versionstamp) return keep(tenant, name, hit.validate, entry.versionstamp);
    const result = compileSchema(entry.value.schema);
    if ("errors" in result) throw unusable(name);
    return keep(tenant, name, result.validate, entry.versionstamp);
  }

  function keep(tenant: TenantId, name: string, validate: Validator, versionstamp: string): Loaded {
    const here = loaded.get(nameOf(tenant, name));
    // A read that started before a change in this isolate must not bring the old schema back.
    if (here !== undefined && here.versionstamp > versionstamp) return here;
    if (loaded.size >= MAX_LOADED) loaded.clear();
    const entry = { validate, versionstamp, until: now() + ENDPOINT_CACHE_MS };
    loaded.set(nameOf(tenant, name), entry);
    return entry;
  }

  async function unknown(tenant: TenantId, name: string): Promise<UnknownType> {
    const known = await names(tenant);
    const builtin = catalogue.has(name)
      ? `"${name}" is a built-in type, which custom owners cannot append`
      : unknownAmong(name, known);
    return new UnknownType(builtin);
  }

  async function names(tenant: TenantId): Promise<string[]> {
    const found: string[] = [];
    const rows = kv.list({ prefix: keys.eventTypes(tenant) }, { limit: MAX_CUSTOM_TYPES, batchSize: 500 });
    for await (const entry of rows) found.push(String(entry.key.at(-1)));
    return found;
  }

  async function check(tenant: TenantId, type: string, data: unknown, path = ""): Promise<void> {
    let known: Loaded;
    try {
      known = await load(tenant, type);
    } catch (error) {
      if (!(error instanceof UnknownType)) throw error;
      throw invalidRequest(
        [{ path: `${path}type`, message: error.message }],
        "Register the type with PUT /v1/tenants/{tenant_id}/event-types/{name}, or correct its name.",
      );
    }
    const errors = known.validate(data, `${path}data`);
    if (errors.length > 0) throw invalidRequest(errors);
  }

  async function put(tenant: TenantId, definition: EventTypeDefinition, extra: Write[] = []) {
    const validate = defineType(definition);
    const { name, description, schema, example } = definition;
    const key = keys.eventType(tenant, name);
    for (;;) {
      const entry = await kv.get<EventTypeRow>(key);
      if (entry.value === null && (await names(tenant)).length >= MAX_CUSTOM_TYPES) {
        throw invalidRequest([{
          path: "name",
          message: `is one more than ${MAX_CUSTOM_TYPES} types a tenant`,
        }]);
      }
      const row: EventTypeRow = {
        name,
        description,
        schema: typeof schema === "boolean" ? (schema ? {} : { not: {} }) : schema,
        example,
        created_at: entry.value?.created_at ?? now(),
        updated_at: now(),
      };
      const settled = await committer.commit({
        checks: [{ key, versionstamp: entry.versionstamp }],
        writes: [{ op: "set", key, value: row }, ...extra],
      });
      if (!settled.ok) continue; // another change of the same type came first
      keep(tenant, name, validate, settled.versionstamp);
      return { row, created: entry.value === null };
    }
  }

  return {
    put,
    check,
    names,
    get: async (tenant, name) => (await kv.get<EventTypeRow>(keys.eventType(tenant, name))).value,
  };
}

const nameOf = (tenant: TenantId, name: string) => `${tenant} ${name}`;

class UnknownType extends Error {}

/** A row from a time when the schema language allowed more. */
const unusable = (name: string) =>
  new ApiError("internal_error", `Cannot use the schema of ${name}.`, "Register the type again.");

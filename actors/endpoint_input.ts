/** What an endpoint may be given: event types, identities and a URL, each refused with its path (reference §3, §6). */
import { type FieldError, invalidRequest } from "../lib/errors.ts";
import { catalogue, unknownType } from "../lib/catalogue.ts";
import { checkHeaders, type EndpointHeaders } from "../lib/endpoint_headers.ts";
import type { IdentityId, TenantId } from "../lib/ids.ts";
import { keys, type OwnerRef, type Scope } from "../lib/keys.ts";
import type { GuardedHttp } from "../lib/edge/http.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { getAll } from "./event_store.ts";
import { tenantOf } from "./tenancy.ts";

export interface EndpointInput {
  url?: string | undefined;
  events?: string[] | undefined;
  identity_ids?: IdentityId[] | null | undefined;
  headers?: EndpointHeaders | null | undefined;
}

/** Judges what is given, all of it at once. @throws ApiError 400 `invalid_request` */
export async function checkInput(
  d: { kv: Kv; guard: Pick<GuardedHttp, "check"> },
  scope: Scope,
  input: EndpointInput,
): Promise<void> {
  const found = await Promise.all([
    input.events === undefined ? [] : checkEvents(d.kv, scope, input.events),
    input.identity_ids ? checkIdentities(d.kv, scope, input.identity_ids) : [],
    input.url === undefined ? [] : checkUrl(d.guard, input.url),
    input.headers ? checkHeaders(input.headers) : [],
  ]);
  const errors = found.flat();
  if (errors.length > 0) throw invalidRequest(errors);
}

async function checkUrl(guard: Pick<GuardedHttp, "check">, url: string): Promise<FieldError[]> {
  const verdict = await guard.check(url);
  return verdict.ok ? [] : [{ path: "url", message: `${verdict.message} (${verdict.rule})` }];
}

/** `["*"]`, or types of the catalogue and, for a tenant's endpoint, the tenant's own. */
async function checkEvents(kv: Kv, scope: Scope, events: readonly string[]): Promise<FieldError[]> {
  if (events.length === 1 && events[0] === "*") return [];
  const errors: FieldError[] = [];
  const custom = await customTypes(kv, scope, events.filter((type) => !catalogue.has(type)));
  const seen = new Set<string>();
  for (const [i, type] of events.entries()) {
    const path = `events.${i}`;
    if (type === "*") errors.push({ path, message: '"*" stands alone' });
    else if (seen.has(type)) errors.push({ path, message: "is listed twice" });
    else if (!catalogue.has(type) && !custom.known.has(type)) {
      errors.push({ path, message: unknownType(type, await custom.all()) });
    }
    seen.add(type);
  }
  return errors;
}

async function customTypes(kv: Kv, scope: Scope, names: readonly string[]) {
  const tenant: TenantId | null = scope.level === "tenant" ? scope.tenant : null;
  if (tenant === null || names.length === 0) {
    return { known: new Set<string>(), all: () => Promise.resolve<string[]>([]) };
  }
  const rows = await getAll(kv, names.map((name) => keys.eventType(tenant, name)));
  const known = new Set(names.filter((_, i) => rows[i]!.value !== null));
  const all = async () => {
    const found: string[] = [];
    const entries = kv.list({ prefix: keys.eventTypes(tenant) }, { limit: 1_000 });
    for await (const entry of entries) found.push(String(entry.key.at(-1)));
    return found;
  };
  return { known, all };
}

/** Each must be an identity of the scope: what is out of it answers as what is not there. */
async function checkIdentities(kv: Kv, scope: Scope, ids: readonly IdentityId[]): Promise<FieldError[]> {
  const owners = await getAll<OwnerRef>(kv, ids.map(keys.ownerOf));
  const errors: FieldError[] = [];
  for (const [i, { value: owner }] of owners.entries()) {
    const path = `identity_ids.${i}`;
    if (ids.indexOf(ids[i]!) !== i) errors.push({ path, message: "is listed twice" });
    else if (!await inScope(kv, scope, owner?.tenant) || owner?.kind !== "mailbox") {
      errors.push({ path, message: "is not an identity this endpoint can see" });
    }
  }
  return errors;
}

async function inScope(kv: Kv, scope: Scope, tenant: TenantId | undefined): Promise<boolean> {
  if (scope.level === "platform") return true;
  if (scope.level === "tenant") return scope.tenant === tenant;
  return (await tenantOf(kv, tenant))?.partner_id === scope.partner;
}

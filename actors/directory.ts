/**
 * The endpoints that can see an event, cached in the isolate ("Endpoint resolution and filters", step 1). One read of the
 * revision key a job tells whether anything changed since, in any isolate, so that no cached endpoint is dialled after it
 * was disabled or deleted (D2); the 30 s only bound how long an unused entry lives.
 */
import type { EndpointId, PartnerId, TenantId } from "../lib/ids.ts";
import { type EndpointRow, keys, type PartnerRow, type Scope, type TenantRow } from "../lib/keys.ts";
import { ENDPOINT_CACHE_MS } from "../lib/limits.ts";
import type { MatchEvent } from "../lib/match.ts";
import type { Kv } from "../lib/edge/kv.ts";
import { Cache } from "./cache.ts";
import { getAll } from "./event_store.ts";

/** An endpoint as the pipeline sees it. */
export interface Target {
  row: EndpointRow;
  /** The partner whose suspension holds its deliveries: its own, or its tenant's. */
  partner: PartnerId | null;
  held: boolean;
  /** Which state of the directory it was read from. */
  generation: number;
}

/** Another isolate's change is seen this much later at the most; a change made in this isolate at once. */
const FRESH_MS = 50;
/** Asked again in the background this long before that, so that no attempt waits for that read. */
const RENEW_MS = 35;

export interface Directory {
  /** Reads the revision; drops what is stale. Called once a job, after its events were made and before their endpoints are looked up. */
  refresh(): Promise<void>;
  /** The same endpoint as it is now, just before it is dialled (D2). No read while the directory is fresh. */
  current(target: Target): Target | Promise<Target | null>;
  /** Called after a commit of this isolate changed an endpoint, a tenant or a partner. */
  invalidate(): void;
  /** Endpoints of every scope that could see the event, disabled ones included. */
  candidates(event: MatchEvent): Promise<Target[]>;
  /** One endpoint, null when it never was. Deleted ones come with `deleted_at`. */
  endpoint(id: EndpointId): Promise<Target | null>;
}

export function makeDirectory(deps: { kv: Kv; now(): number; clock(): number }): Directory {
  const { kv, now, clock } = deps;
  let revision: string | null | undefined;
  let generation = 0;
  let freshUntil = -Infinity;
  /** The read under way, and the one that begins after it. */
  let begun = Promise.resolve();
  let waiting: Promise<void> | null = null;
  let renewing = false;
  const lists = new Cache<string, Target[]>(now, ENDPOINT_CACHE_MS);
  const single = new Cache<EndpointId, Target | null>(now, ENDPOINT_CACHE_MS);

  /** Callers share a read that begins after all of them asked, so that each sees every change made before it asked. */
  function refresh(): Promise<void> {
    return waiting ??= begun.then(() => {
      waiting = null;
      const read = readRevision();
      begun = read.catch(() => {});
      return read;
    });
  }

  async function readRevision() {
    const asked = generation, asking = clock();
    const { versionstamp } = await kv.get(keys.endpointsRevision());
    if (asked === generation) freshUntil = asking + FRESH_MS;
    if (versionstamp === revision) return;
    revision = versionstamp;
    drop();
  }

  function drop() {
    generation++;
    lists.clear();
    single.clear();
  }

  function invalidate() {
    drop();
    freshUntil = -Infinity;
  }

  function current(target: Target): Target | Promise<Target | null> {
    const left = target.generation === generation ? freshUntil - clock() : 0;
    if (left < RENEW_MS && left > 0 && !renewing) renew();
    if (left > 0) return target;
    return refresh().then(() => target.generation === generation ? target : endpoint(target.row.id));
  }

  function renew(): void {
    renewing = true;
    // When it fails, the attempt that then finds the directory stale asks again and says so.
    refresh().catch(() => {}).then(() => renewing = false);
  }

  function candidates(event: MatchEvent): Promise<Target[]> {
    return lists.get(`${event.tenant} ${event.partner}`, async () => {
      const scopes: Scope[] = [{ level: "platform" }];
      if (event.partner !== null) scopes.push({ level: "partner", partner: event.partner });
      if (event.tenant !== null) scopes.push({ level: "tenant", tenant: event.tenant });
      const lists = await Promise.all(scopes.map((scope) => load(scope, event.partner)));
      return lists.flat();
    });
  }

  async function load(scope: Scope, partner: PartnerId | null): Promise<Target[]> {
    const loaded = generation;
    const ids: EndpointId[] = [];
    for await (const entry of kv.list({ prefix: keys.endpointsOfScope(scope) })) {
      ids.push(entry.key[2] as EndpointId);
    }
    const rows = await getAll<EndpointRow>(kv, ids.map(keys.endpoint));
    const holder = scope.level === "platform" ? null : partner;
    const held = await suspended(holder);
    return rows.flatMap(({ value }) =>
      value === null ? [] : [{ row: value, partner: holder, held, generation: loaded }]
    );
  }

  function endpoint(id: EndpointId): Promise<Target | null> {
    return single.get(id, async () => {
      const loaded = generation;
      const { value: row } = await kv.get<EndpointRow>(keys.endpoint(id));
      if (row === null) return null;
      const partner = row.partner_id ?? await partnerOf(row.tenant_id);
      return { row, partner, held: await suspended(partner), generation: loaded };
    });
  }

  async function partnerOf(tenant: TenantId | null): Promise<PartnerId | null> {
    if (tenant === null) return null;
    return (await kv.get<TenantRow>(keys.tenant(tenant))).value?.partner_id ?? null;
  }

  async function suspended(partner: PartnerId | null): Promise<boolean> {
    if (partner === null) return false;
    return (await kv.get<PartnerRow>(keys.partner(partner))).value?.status === "suspended";
  }

  return { refresh, current, invalidate, candidates, endpoint };
}

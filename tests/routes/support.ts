/**
 * A whole API over a real in-memory KV, with the real committer, owners, guard, sealer and pipeline objects; the pump does not run.
 * Faked: the clock, randomness (seeded), DNS answers and the dialled socket.
 */
import assert from "node:assert/strict";
import { makeEventTypes } from "../../actors/event_types.ts";
import { createKey, type KeySpec } from "../../actors/key_admin.ts";
import { makeSystem } from "../../actors/system.ts";
import { makeGuardedHttp } from "../../lib/edge/http.ts";
import type { Addresses, DialRequest, Random, Timers } from "../../lib/edge/ports.ts";
import { realClock, realTimers } from "../../lib/edge/ports.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { makeSealer } from "../../lib/edge/seal.ts";
import { makeTelemetry } from "../../lib/edge/telemetry.ts";
import { type Id, type IdentityId, makeIds, type TenantId } from "../../lib/ids.ts";
import { type KeyRow, keys, type Permission } from "../../lib/keys.ts";
import { allRoutes } from "../../routes/all.ts";
import { createApp } from "../../routes/app.ts";
import { makeKeyCache } from "../../routes/auth.ts";
import type { Services } from "../../routes/services.ts";
import type { Route } from "../../routes/table.ts";

export const ALL: Permission[] = [
  "webhooks:read",
  "webhooks:manage",
  "events:read",
  "events:write",
  "tenants:manage",
  "partners:manage",
  "keys:manage",
  "erasure:manage",
  "audit:read",
  "platform:ops",
];

export const START = Date.parse("2026-10-09T12:00:00.000Z");
export const URL_OK = "https://hooks.acme.dev/in";

// deno-lint-ignore no-explicit-any
export type Json = any;

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: Json;
}

export interface Call {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
  address?: string;
}

export interface Api {
  services: Services;
  kv: Deno.Kv;
  now: number;
  /** Lines logged so far. */
  lines: string[];
  /** DNS answers by host; a name that is absent answers 203 public. */
  dns: Map<string, Addresses>;
  dialled: DialRequest[];
  rows: readonly Route[];
  fetch(request: Request, address?: string): Promise<Response>;
  call(method: string, path: string, call?: Call): Promise<Answer>;
  key(spec?: Partial<KeySpec>): Promise<{ secret: string; row: KeyRow }>;
  tenant(key: string, slug: string): Promise<TenantId>;
  /** An identity's owner row, as creating one leaves it. */
  identity(tenant: TenantId): Promise<IdentityId>;
}

export interface ApiOptions {
  extra?: readonly Route[];
  timers?: Timers;
  metricsOpen?: boolean;
  ready?: Services["ready"];
  /** What the API is given instead of the store: the same with an ear on it. `api.kv` is the store itself. */
  wrap?: (kv: Deno.Kv) => Kv;
}

/** Runs a test body over a fresh API and closes it. */
export function withApi(body: (api: Api) => Promise<void>, options: ApiOptions = {}): () => Promise<void> {
  return async () => {
    const kv = await Deno.openKv(":memory:");
    const api = makeApi(kv, options);
    try {
      await body(api);
      await api.services.committer.idle();
    } finally {
      kv.close();
    }
  };
}

function makeApi(store: Deno.Kv, options: ApiOptions): Api {
  const kv = options.wrap?.(store) ?? store;
  const random = seeded(7);
  const lines: string[] = [], dialled: DialRequest[] = [], dns = new Map<string, Addresses>();
  const api = { now: START, kv: store, lines, dialled, dns } as unknown as Api;
  const now = () => api.now, ids = makeIds(now, random.unit), timers = options.timers ?? realTimers;
  const { log, metrics } = makeTelemetry({ level: "debug", now, write: (line) => void lines.push(line) });
  const http = makeGuardedHttp({
    rules: {
      apiHost: "api.pylota.dev",
      consoleHost: null,
      platformDomain: "pylota.dev",
      allowedTargets: new Set(),
    },
    resolver: { resolve: (host) => Promise.resolve(dns.get(host) ?? { a: ["1.1.1.1"], aaaa: [] }) },
    dialer: {
      dial: (request) => {
        dialled.push(request);
        return Promise.resolve({ kind: "response", status: 204, retryAfter: null, body: new Uint8Array() });
      },
      close: () => Promise.resolve(),
    },
    timers: realTimers,
    now,
  });
  const hashKey = random.bytes(32), keyPepper = random.bytes(32);
  const sealer = makeSealer(random.bytes(32), null, random);
  const system = makeSystem({
    kv,
    ports: { now, clock: realClock, timers: realTimers, random, ids },
    http,
    openSecret: sealer.open,
    hashKey,
    userAgent: "test",
    commitsInFlight: 1,
    jobShards: 4,
    maxInFlight: 8,
    maxPerEndpoint: 8,
    nextDelayMs: () => null,
    doorbell: false,
    hotHandOff: false,
    observer: { fanned() {}, recorded() {}, disabled() {}, failed() {} },
  });
  const services: Services = {
    kv,
    committer: system.committer,
    owners: system.owners,
    now,
    timers,
    ids,
    random,
    config: {
      hashKey,
      keyPepper,
      keyMode: "test",
      metricsOpen: options.metricsOpen ?? false,
      bodyDeadlineMs: 30_000,
      version: "0.0.0",
      transport: "socket",
    },
    log,
    metrics,
    sealer,
    guard: http,
    deliveries: system.deliveries,
    eventTypes: makeEventTypes({ kv, committer: system.committer, now }),
    jobs: system.jobs,
    poke: () => {},
    keyCache: makeKeyCache({ kv, now }),
    ready: options.ready ?? (() => Promise.resolve([{ name: "store", ok: true }])),
  };
  const rows = [...allRoutes(services.config), ...options.extra ?? []];
  const app = createApp(rows, services);

  return Object.assign(api, {
    services,
    rows,
    async fetch(request: Request, address = "192.0.2.1") {
      return await app.fetch(request, { remoteAddr: { hostname: address } });
    },
    async call(
      method: string,
      path: string,
      { key, body, headers = {}, address }: Call = {},
    ): Promise<Answer> {
      const sent = new Headers(headers);
      if (key !== undefined) sent.set("authorization", `Bearer ${key}`);
      if (body !== undefined && !sent.has("content-type")) sent.set("content-type", "application/json");
      const init: RequestInit = { method, headers: sent };
      if (body !== undefined) init.body = typeof body === "string" ? body : JSON.stringify(body);
      const response = await api.fetch(new Request(`http://api.pylota.dev${path}`, init), address);
      const text = await response.text();
      const json = response.headers.get("content-type")?.startsWith("application/json") && text !== "";
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: json ? JSON.parse(text) : undefined,
      };
    },
    async key(spec: Partial<KeySpec> = {}) {
      const deps = { ...services, pepper: keyPepper, mode: "test" as const };
      return await createKey(
        deps,
        { name: "test", level: "platform", permissions: ALL, expires_at: null, ...spec },
        null,
      );
    },
    async tenant(key: string, slug: string): Promise<TenantId> {
      const answer = await api.call("POST", "/v1/tenants", { key, body: { slug, name: slug } });
      assert.equal(answer.status, 201, answer.text);
      return answer.body.id;
    },
    async identity(tenant: TenantId): Promise<IdentityId> {
      const id = ids.next("identity");
      await store.set(keys.ownerOf(id), { kind: "mailbox", tenant, id });
      return id;
    },
  });
}

/** Two partners with a tenant each, a tenant of nobody, and a key of every level. */
export async function world(api: Api) {
  const platform = (await api.key()).secret;
  const partner = async (name: string) => {
    const { body } = await api.call("POST", "/v1/partners", { key: platform, body: { name } });
    const id = body.id as Id<"partner">;
    const key = (await api.key({ level: "partner", partner_id: id })).secret;
    const tenant = await api.tenant(key, `${name}-one`);
    const tenantKey = (await api.key({ level: "tenant", tenant_id: tenant })).secret;
    return { id, key, tenant, tenantKey };
  };
  const p = await partner("pp"), q = await partner("qq");
  const lone = await api.tenant(platform, "lone");
  const loneKey = (await api.key({ level: "tenant", tenant_id: lone })).secret;
  const identity = await api.identity(p.tenant);
  const identityKey = (await api.key({ level: "identity", identity_id: identity })).secret;
  return { platform, p, q, lone, loneKey, identity, identityKey };
}

/** Asserts an error answer: its status, its code and, when given, the paths it refuses. */
export function refused(answer: Answer, status: number, code: string, paths?: string[]): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.body.error.code, code, answer.text);
  assert.deepEqual(Object.keys(answer.body.error), [
    "code",
    "message",
    "retryable",
    "fix",
    "request_id",
    "details",
  ]);
  assert.equal(answer.body.error.request_id, answer.headers.get("request-id"));
  if (paths !== undefined) {
    assert.deepEqual(answer.body.error.details.errors.map((error: Json) => error.path), paths, answer.text);
  }
}

/** The body without what differs from request to request. */
export const sameBytes = (answer: Answer): string => answer.text.replace(/req_[0-9A-Z]{26}/, "req_");

function seeded(seed: number): Random {
  let state = seed;
  const unit = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return { unit, bytes: (length) => Uint8Array.from({ length }, () => Math.floor(unit() * 256)) };
}

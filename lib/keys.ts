/**
 * Every key of the store and the schema of its value, by family. No other file builds a key.
 *
 * Time-ordered families on the hot path end in a ULID, so that inserts land on the same pages and the key is the time
 * index itself (ARCHITECTURE.md, "Keys"). Rows hold pointers and codes; content lives in `event`, `message` and
 * `chunk` rows alone (P1).
 */
import * as z from "zod";
import type {
  DeliveryId,
  EndpointId,
  EventId,
  EventKey,
  Id,
  IdentityId,
  JobId,
  PartnerId,
  TenantId,
} from "./ids.ts";

const ms = z.int().nonnegative();
const id = <T extends string>() => z.string() as unknown as z.ZodType<T>;

// --- Owners ------------------------------------------------------------------------------------------

export const ownerKind = z.enum(["mailbox", "domain", "job", "custom"]);
export type OwnerKind = z.infer<typeof ownerKind>;

/** An owner of state: `id` is the identity, domain or job id, or a custom owner's own key. */
export interface OwnerRef {
  kind: OwnerKind;
  tenant: TenantId;
  id: string;
}

/** The owner's `meta` row: the last sequence given out (O2). Written by every commit of the owner, so it is its check. */
export const ownerMeta = z.int().nonnegative();

// --- Events ------------------------------------------------------------------------------------------

/**
 * One event, outbox row and index row at once. `body` is the envelope bytes (O3); a number counts chunk rows; null is an
 * erased payload. `id` is only there when the producer gave a deterministic id, else it is `evt_` + the key. This is what
 * `eventRowOf` makes of the stored value, which is bytes (lib/event_row.ts), or this object itself in older stores.
 */
export const eventRow = z.object({
  id: id<EventId>().optional(),
  type: z.string(),
  tenant: id<TenantId>().nullable(),
  identity: id<IdentityId>().nullable(),
  partner: id<PartnerId>().nullable(),
  kind: z.enum(["mailbox", "domain", "job", "custom", "platform"]),
  owner: z.string(),
  seq: z.int().positive().nullable(),
  at: ms,
  body: z.union([z.instanceof(Uint8Array), z.int().positive(), z.null()]),
});
export type EventRow = z.infer<typeof eventRow>;

/** A deterministic id seen before (`ON CONFLICT`): where its event is. */
export const eventAlias = z.object({ key: id<EventKey>() });
export type EventAlias = z.infer<typeof eventAlias>;

/** Index row of one event: of a platform event without a tenant, or written by a release before blocks. */
export const eventIndexRow = z.object({
  type: z.string(),
  identity: id<IdentityId>().nullable(),
  owner: z.string(),
});
export type EventIndexRow = z.infer<typeof eventIndexRow>;

/**
 * What an index row says of the events one commit wrote for a tenant and its partner within 32 ms, in the order of their keys. What all
 * of them say stands once in its column. Stored as JSON text, which costs a third of an object with as many texts.
 */
export const eventBlock = z.object({
  /** The last 17 characters of each key; the first nine are those of the row's own. */
  keys: z.string().min(1),
  types: z.array(z.string()).min(1),
  identities: z.array(id<IdentityId>().nullable()).min(1),
  owners: z.array(z.string()).min(1),
});
export type EventBlock = z.infer<typeof eventBlock>;

/** Index row by tenant or partner. */
export const eventIndex = z.union([
  eventIndexRow,
  z.string().transform((text): unknown => JSON.parse(text)).pipe(eventBlock),
]);
export type EventIndex = EventIndexRow | string;

// --- Jobs (pointers only, P1) ------------------------------------------------------------------------

export const fanoutJob = z.object({
  v: z.literal(1),
  kind: z.literal("fanout"),
  /** Keys of the events one commit wrote. */
  events: z.array(id<EventKey>()),
  /** Nobody has claimed it yet, so the first attempts of its events are under way nowhere. */
  untouched: z.literal(true).optional(),
  /** The instance that holds the claim, while there is one. */
  by: z.string().optional(),
  /** How often processing threw. */
  throws: z.int().optional(),
});

export const deliverItem = z.object({
  event: id<EventKey>(),
  id: id<EventId>(),
  type: z.string(),
  attempt: z.int().positive(),
  first: z.int().positive(),
  replay: z.boolean(),
});
export type DeliverItem = z.infer<typeof deliverItem>;

export const deliverJob = z.object({
  v: z.literal(1),
  kind: z.literal("deliver"),
  endpoint: id<EndpointId>(),
  items: z.array(deliverItem),
  by: z.string().optional(),
  throws: z.int().optional(),
});

export const job = z.discriminatedUnion("kind", [fanoutJob, deliverJob]);
export type FanoutJob = z.infer<typeof fanoutJob>;
export type DeliverJob = z.infer<typeof deliverJob>;
export type Job = z.infer<typeof job>;

export const deadLetter = z.object({
  id: id<Id<"deadLetter">>(),
  job,
  /** Code of the last throw, never its text. */
  error: z.string(),
  created_at: ms,
});
export type DeadLetter = z.infer<typeof deadLetter>;

/**
 * An instance's sign of life. `latest` is there once its clock went back: the latest time it ever showed, because claims of then
 * lie as far ahead.
 */
export const heartbeat = z.object({ at: ms, started_at: ms, latest: ms.optional() });
export type Heartbeat = z.infer<typeof heartbeat>;

// --- Endpoints and deliveries ------------------------------------------------------------------------

export const disabledReason = z.enum(["manual", "gone", "failing"]);
/** Both ids null: a platform endpoint. */
export const endpointRow = z.object({
  id: id<EndpointId>(),
  tenant_id: id<TenantId>().nullable(),
  partner_id: id<PartnerId>().nullable(),
  url: z.string(),
  events: z.array(z.string()),
  identity_ids: z.array(id<IdentityId>()).nullable(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  disabled_reason: disabledReason.nullable(),
  secret_enc: z.string(),
  prev_secret_enc: z.string().nullable(),
  prev_secret_expires_at: ms.nullable(),
  created_at: ms,
  updated_at: ms,
  /** Set when deleted: its log stays readable, nothing is delivered. */
  deleted_at: ms.nullable(),
  /** Static headers: JSON of name → value, sealed. `header_names` are what may be shown. Absent: none. */
  headers_enc: z.string().optional(),
  header_names: z.array(z.string()).optional(),
  /** Ed25519 key (`v1a`), seed and public half sealed together; absent: signed with `v1` alone. */
  v1a_enc: z.string().optional(),
  v1a_public: z.string().optional(),
  /** The key before a rotation, good as long as the secret before it. */
  prev_v1a_enc: z.string().optional(),
});
export type EndpointRow = z.infer<typeof endpointRow>;

/** Streak and last signs of an endpoint. Absent: never attempted. `failing_since` is the first failure of the streak. */
export const healthRow = z.object({
  consecutive_failures: z.int().nonnegative(),
  failing_since: ms.nullable(),
  last_success_at: ms.nullable(),
  last_failure_at: ms.nullable(),
});
export type HealthRow = z.infer<typeof healthRow>;

export const attemptStatus = z.enum(["succeeded", "failed", "dead"]);
export type AttemptStatus = z.infer<typeof attemptStatus>;
export const attemptError = z.enum([
  "timeout",
  "dns",
  "tls",
  "connect",
  "redirect",
  "status_4xx",
  "status_410",
  "status_5xx",
  "ssrf_blocked",
  "invalid_url",
  "secret_unavailable",
  "event_unavailable",
  "endpoint_disabled",
]);
export type AttemptError = z.infer<typeof attemptError>;

/** One attempt, the document's `webhook_deliveries` row. */
export const attemptRow = z.object({
  id: id<DeliveryId>(),
  event: id<EventKey>(),
  event_id: id<EventId>(),
  event_type: z.string(),
  tenant_id: id<TenantId>().nullable(),
  attempt: z.int().positive(),
  first_attempt: z.int().positive(),
  status: attemptStatus,
  http_status: z.int().nullable(),
  error: attemptError.nullable(),
  duration_ms: z.int().nonnegative(),
  next_attempt_at: ms.nullable(),
  created_at: ms,
});
export type AttemptRow = z.infer<typeof attemptRow>;

/**
 * First attempts that succeeded, in one row (`actors/attempt_store.ts`): a block, as text. Each column has one entry for all or one for
 * each.
 */
export const attemptBlock = z.object({
  /** The ends of the events' keys, which tell the attempts' ids; the whole keys where those have ends of their own. */
  events: z.string().min(1),
  /** The ends of the attempts' ids that do not follow from the events. */
  ends: z.string().min(1).optional(),
  /** Null: the event's id is that of its key. */
  ids: z.array(id<EventId>().nullable()).min(1),
  types: z.array(z.string()).min(1),
  tenants: z.array(id<TenantId>().nullable()).min(1),
  http: z.array(z.int().nullable()).min(1),
  /** `duration_ms`. */
  took: z.array(z.int().nonnegative()).min(1),
  /** From the event to `created_at`, ms. */
  lags: z.array(z.int().nonnegative()).min(1),
});
export type AttemptBlock = z.infer<typeof attemptBlock>;

/** Where first attempts are whose ids do not follow from their events, in the bucket of those: as text, too. */
export const attemptPointers = z.object({
  /** The ends of the events' keys. */
  of: z.string().min(1),
  /** The attempts' ids, without their prefix. */
  at: z.string().min(1),
});
export type AttemptPointers = z.infer<typeof attemptPointers>;

/** What is under an endpoint's attempts: an attempt, a block of them or of pointers, or `true`, the mark of a bucket that has some. */
export const storedAttempt = z.union([
  attemptRow,
  z.literal(true),
  z.string().transform((text): unknown => JSON.parse(text)).pipe(z.union([attemptBlock, attemptPointers])),
]);
export type StoredAttempt = AttemptRow | true | string;

/**
 * State of (endpoint, event): the "already done?" check of a delivery (D1). `ids[i]` is attempt `i + 1`. A first attempt that succeeds
 * at once writes none (`actors/pair_state.ts`).
 */
export const pairRow = z.object({
  /** Of the last attempt; null before the first. */
  status: attemptStatus.nullable(),
  /** The last attempt recorded; 0 before the first. */
  attempt: z.int().nonnegative(),
  /** First attempt of the newest run. Items of an older run are superseded. */
  first: z.int().positive(),
  /** Some attempt, of any run, succeeded. */
  succeeded: z.boolean(),
  /** Some attempt, of any run, is dead. */
  dead: z.boolean(),
  ids: z.array(id<DeliveryId>()),
});
export type PairRow = z.infer<typeof pairRow>;

// --- Tenancy -----------------------------------------------------------------------------------------

export const policy = z.object({
  webhook_text_bytes: z.int(),
  retention: z.object({ events_days: z.int() }),
});
export type Policy = z.infer<typeof policy>;

export const partnerRow = z.object({
  id: id<PartnerId>(),
  name: z.string(),
  status: z.enum(["active", "suspended"]),
  created_at: ms,
  updated_at: ms,
});
export type PartnerRow = z.infer<typeof partnerRow>;

export const tenantRow = z.object({
  id: id<TenantId>(),
  partner_id: id<PartnerId>().nullable(),
  slug: z.string(),
  name: z.string(),
  policy,
  /** Counts the changes of the policy; absent before the first. */
  policy_version: z.int().positive().optional(),
  created_at: ms,
  updated_at: ms,
});
export type TenantRow = z.infer<typeof tenantRow>;

/** A custom event type an application registered. */
export const eventTypeRow = z.object({
  name: z.string(),
  description: z.string(),
  schema: z.record(z.string(), z.unknown()),
  example: z.unknown(),
  created_at: ms,
  updated_at: ms,
});
export type EventTypeRow = z.infer<typeof eventTypeRow>;

// --- Control plane -----------------------------------------------------------------------------------

export const keyLevel = z.enum(["platform", "partner", "tenant", "identity"]);
export type KeyLevel = z.infer<typeof keyLevel>;
export const permission = z.enum([
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
]);
export type Permission = z.infer<typeof permission>;

/** An API key under its public look-up part. `hash` is HMAC-SHA256 of the whole key under `PM_KEY_PEPPER`, hex. */
export const keyRow = z.object({
  id: id<Id<"key">>(),
  hash: z.string(),
  name: z.string(),
  level: keyLevel,
  partner_id: id<PartnerId>().nullable(),
  tenant_id: id<TenantId>().nullable(),
  identity_id: id<IdentityId>().nullable(),
  permissions: z.array(permission),
  expires_at: ms.nullable(),
  revoked_at: ms.nullable(),
  created_at: ms,
});
export type KeyRow = z.infer<typeof keyRow>;

/** A `POST` seen under an `Idempotency-Key`. `response` null: the first one is still running. */
export const idempotencyRow = z.object({
  fingerprint: z.string(),
  /** A body over a value's size is in `chunks` rows of its own. */
  response: z.object({ status: z.int(), body: z.string(), chunks: z.int().optional() }).nullable(),
  expires_at: ms,
  started_at: ms,
});
export type IdempotencyRow = z.infer<typeof idempotencyRow>;

export const auditRow = z.object({
  id: id<Id<"audit">>(),
  at: ms,
  action: z.string(),
  key_id: z.string().nullable(),
  tenant_id: id<TenantId>().nullable(),
  partner_id: id<PartnerId>().nullable(),
  /** The id of what was changed. */
  subject: z.string(),
});
export type AuditRow = z.infer<typeof auditRow>;

// --- Notifications -----------------------------------------------------------------------------------

/** What a user of a tenant wants to be told. `needs_reply`: mail that a triage says needs a reply, alone. */
export const notificationPref = z.object({
  kind: z.literal("new_mail"),
  mode: z.enum(["off", "on"]),
  filter: z.enum(["all", "needs_reply"]),
  updated_at: ms,
});
export type NotificationPref = z.infer<typeof notificationPref>;

const mailRef = { identity: id<IdentityId>(), message: id<Id<"message">>() };
/** What is gathered for a user until it is sent: mail that counts, and mail held for its triage. */
export const notifyRow = z.object({
  counted: z.array(z.object(mailRef)),
  held: z.array(z.object({ ...mailRef, until: ms })),
  /** Times of the first and the last mail that counts; null while none does. */
  first_at: ms.nullable(),
  last_at: ms.nullable(),
  /** When to look at it next: its row under `notifyDue`. */
  due: ms.nullable(),
});
export type NotifyRow = z.infer<typeof notifyRow>;

/** A notification as it would be sent: counts and ids, never content (P1). */
export const notificationRow = z.object({
  id: id<Id<"notification">>(),
  user: id<Id<"user">>(),
  kind: z.literal("new_mail"),
  count: z.int().positive(),
  needs_reply_count: z.int().nonnegative(),
  messages: z.array(z.object(mailRef)),
  created_at: ms,
});
export type NotificationRow = z.infer<typeof notificationRow>;

// --- Console -----------------------------------------------------------------------------------------

/**
 * A browser that signed in, under a keyed hash of its cookie. It lives by the API key whose look-up part it holds: revoked or
 * expired, that key takes its sessions along. `portal` narrows it to what a portal link granted.
 */
export const sessionRow = z.object({
  lookup: z.string(),
  portal: z.object({
    link: id<Id<"portalLink">>(),
    tenant_id: id<TenantId>(),
    permissions: z.array(permission),
  }).nullable(),
  created_at: ms,
  expires_at: ms,
});
export type SessionRow = z.infer<typeof sessionRow>;

/** A portal link that was not used yet, under a keyed hash of its token. `lookup`: the key that made it. */
export const portalLinkRow = z.object({
  id: id<Id<"portalLink">>(),
  lookup: z.string(),
  tenant_id: id<TenantId>(),
  permissions: z.array(permission),
  created_at: ms,
  expires_at: ms,
});
export type PortalLinkRow = z.infer<typeof portalLinkRow>;

/** What one instance recorded for an endpoint, a partner or all in one hour; histograms by the buckets of `lib/histogram.ts`. */
export const hourRow = z.object({
  succeeded: z.int().nonnegative(),
  failed: z.int().nonnegative(),
  dead: z.int().nonnegative(),
  /** Milliseconds an attempt took. */
  took: z.array(z.int().nonnegative()),
  /** Milliseconds from `occurred_at` to the receiver's 2xx; replays are left out. */
  latency: z.array(z.int().nonnegative()),
});
export type HourRow = z.infer<typeof hourRow>;

/** A replay that was asked for on a page: where it stands is what its pairs came to since `first`. */
export const replayRunRow = z.object({
  endpoint: id<EndpointId>(),
  events: z.array(z.object({ key: id<EventKey>(), first: z.int().positive() })),
  created_at: ms,
});
export type ReplayRunRow = z.infer<typeof replayRunRow>;

// --- Store -------------------------------------------------------------------------------------------

export const schemaRow = z.object({ version: z.int().nonnegative(), cursor: z.unknown().optional() });
export const leaseRow = z.object({ by: z.string(), until: ms });

/** How far the pass of retention under way has come: `after` is the last tenant or endpoint it is done with. */
export const retentionRow = z.object({
  phase: z.enum(["tenants", "platform", "endpoints"]),
  after: z.string().nullable(),
  /** When to go on, Unix ms. */
  due: ms,
});
export type RetentionRow = z.infer<typeof retentionRow>;

/** A rotation of the master key under way: up to which endpoint everything is sealed under `kid`. */
export const masterRotationRow = z.object({ kid: z.string(), after: id<EndpointId>() });
export type MasterRotationRow = z.infer<typeof masterRotationRow>;

/** Owner of a set of endpoints, audit rows or keys. */
export type Scope =
  | { level: "platform" }
  | { level: "partner"; partner: PartnerId }
  | { level: "tenant"; tenant: TenantId };

/** The first key behind `key`: the exclusive start, or inclusive end, of a range. */
export const after = (key: Deno.KvKey): Deno.KvKey => [...key, 0];
/** A bound of a range inside a family: `part` is the next part of its keys. */
export const within = (family: Deno.KvKey, part: string | number): Deno.KvKey => [...family, part];

export const scopeName = (scope: Scope): string =>
  scope.level === "platform" ? "platform" : scope.level === "partner" ? scope.partner : scope.tenant;

export const keys = {
  // owners
  ownerMeta: (o: OwnerRef) => ["seq", o.kind, o.tenant, o.id],
  /** Rows of one owner's state: `part` names the family (`identity`, `message`, …). */
  ownerState: (
    o: OwnerRef,
    part: string,
    ...rest: string[]
  ) => ["own", o.kind, o.tenant, o.id, part, ...rest],

  // events
  event: (key: EventKey) => ["ev", key],
  events: () => ["ev"],
  eventChunk: (key: EventKey, index: number) => ["ev_chunk", key, index],
  eventAlias: (event: EventId, o: OwnerRef) => ["ev_alias", event, o.kind, o.tenant, o.id],
  eventAliases: (event: EventId) => ["ev_alias", event],
  /** A block's key is the first of the events it names. */
  eventOfTenant: (tenant: TenantId, key: EventKey) => ["ev_tenant", tenant, key],
  eventsOfTenant: (tenant: TenantId) => ["ev_tenant", tenant],
  eventOfPartner: (partner: PartnerId, key: EventKey) => ["ev_partner", partner, key],
  eventsOfPartner: (partner: PartnerId) => ["ev_partner", partner],
  /** Platform events not yet fanned out: the sweep's safety net. */
  platformPending: (key: EventKey) => ["ev_pending", key],
  platformPendings: () => ["ev_pending"],
  /** Platform events (no tenant to prune them by). */
  platformEvent: (key: EventKey) => ["ev_platform", key],
  platformEvents: () => ["ev_platform"],
  /** Events that carry a message, for erasure. */
  eventOfMessage: (message: string, key: EventKey) => ["ev_message", message, key],
  eventsOfMessage: (message: string) => ["ev_message", message],

  // jobs
  job: (shard: number, due: number, jobId: JobId) => ["job", shard, due, jobId],
  jobsOfShard: (shard: number) => ["job", shard],
  jobs: () => ["job"],
  parked: (partner: PartnerId, jobId: JobId) => ["parked", partner, jobId],
  parkedOf: (partner: PartnerId) => ["parked", partner],
  parkedAll: () => ["parked"],
  deadLetter: (dlq: Id<"deadLetter">) => ["dlq", dlq],
  deadLetters: () => ["dlq"],
  heartbeat: (instance: string) => ["instance", instance],
  heartbeats: () => ["instance"],

  // endpoints
  endpoint: (endpoint: EndpointId) => ["endpoint", endpoint],
  endpoints: () => ["endpoint"],
  endpointOfScope: (scope: Scope, endpoint: EndpointId) => ["endpoint_of", scopeName(scope), endpoint],
  endpointsOfScope: (scope: Scope) => ["endpoint_of", scopeName(scope)],
  /** Written by every change of an endpoint, a tenant's partner or a partner's status: one read tells a cache is fresh. */
  endpointsRevision: () => ["endpoints_revision"],
  /** How many endpoints a scope owner has: the check that makes the limit of 20 race-free. */
  endpointCount: (scope: Scope) => ["endpoint_count", scopeName(scope)],
  health: (endpoint: EndpointId) => ["health", endpoint],
  attempt: (endpoint: EndpointId, delivery: DeliveryId) => ["attempt", endpoint, delivery],
  attemptsOf: (endpoint: EndpointId) => ["attempt", endpoint],
  /** A row that several attempts share. @param position among their ids. */
  attemptsAt: (endpoint: EndpointId, position: string) => ["attempt", endpoint, position],
  pair: (endpoint: EndpointId, event: EventKey) => ["pair", endpoint, event],
  pairsOf: (endpoint: EndpointId) => ["pair", endpoint],
  /** Written by every replay at an endpoint: one check of it stands for a check of each pair that was read after it. */
  replays: (endpoint: EndpointId) => ["replays", endpoint],

  // tenancy
  partner: (partner: PartnerId) => ["partner", partner],
  partners: () => ["partner"],
  tenant: (tenant: TenantId) => ["tenant", tenant],
  tenants: () => ["tenant"],
  /** A slug is free or taken among its partner's tenants (or those of none): to ask for one tells nothing of another partner's. */
  tenantSlug: (scope: Scope, slug: string) => ["tenant_slug", scopeName(scope), slug],
  tenantOfPartner: (partner: PartnerId, tenant: TenantId) => ["tenant_of", partner, tenant],
  tenantsOfPartner: (partner: PartnerId) => ["tenant_of", partner],
  /** Where an owner with an id of its own lives: identities, domains, jobs. */
  ownerOf: (ownerId: string) => ["owner_of", ownerId],
  ownersOfTenant: (tenant: TenantId, kind: OwnerKind) => ["owners", tenant, kind],
  ownerOfTenant: (o: OwnerRef) => ["owners", o.tenant, o.kind, o.id],
  /** Which address of which identity takes a tenant's mail for an address (lower case). */
  mailAddress: (tenant: TenantId, address: string) => ["mail_address", tenant, address],
  /** A former primary address to retire at a time (Unix ms): the sweep's index. Value: the mailbox's `OwnerRef`. */
  retireDue: (at: number, address: string, o: OwnerRef) => ["retire_due", at, address, o.tenant, o.id],
  retireDues: () => ["retire_due"],
  eventType: (tenant: TenantId, name: string) => ["event_type", tenant, name],
  eventTypes: (tenant: TenantId) => ["event_type", tenant],
  /** All rows of an owner's state. */
  ownerStates: (o: OwnerRef) => ["own", o.kind, o.tenant, o.id],
  /** Who has a domain's name in a tenant. */
  domainName: (tenant: TenantId, name: string) => ["domain_name", tenant, name],
  /** When time alone acts on a domain next (Unix ms); the value is its `OwnerRef`. */
  domainDue: (due: number, domain: string) => ["domain_due", due, domain],
  domainsDue: () => ["domain_due"],
  /** Erasures and exports that are not finished, by when to go on (Unix ms); the value is the job's `OwnerRef`. */
  jobDue: (due: number, job: string) => ["job_due", due, job],
  jobsDue: () => ["job_due"],

  // control plane
  apiKey: (lookup: string) => ["key", lookup],
  apiKeyById: (key: Id<"key">) => ["key_id", key],
  apiKeyOfScope: (scope: string, key: Id<"key">) => ["key_of", scope, key],
  apiKeysOfScope: (scope: string) => ["key_of", scope],
  idempotency: (key: string, scope: string, idempotencyKey: string) => ["idem", key, scope, idempotencyKey],
  idempotencyChunk: (key: string, scope: string, idempotencyKey: string, index: number) => [
    "idem_chunk",
    key,
    scope,
    idempotencyKey,
    index,
  ],
  audit: (scope: Scope, audit: Id<"audit">) => ["audit", scopeName(scope), audit],
  auditOf: (scope: Scope) => ["audit", scopeName(scope)],

  // notifications
  notificationPref: (tenant: TenantId, user: Id<"user">) => ["notify_pref", tenant, user],
  notificationPrefs: (tenant: TenantId) => ["notify_pref", tenant],
  /** What is gathered for a user. */
  notify: (tenant: TenantId, user: Id<"user">) => ["notify", tenant, user],
  /** When what is gathered for a user is looked at next (Unix ms): the sweep's index. */
  notifyDue: (due: number, tenant: TenantId, user: Id<"user">) => ["notify_due", due, tenant, user],
  notifyDues: () => ["notify_due"],
  notification: (
    tenant: TenantId,
    notification: Id<"notification">,
  ) => ["notification", tenant, notification],
  notificationsOf: (tenant: TenantId) => ["notification", tenant],

  // console
  session: (hash: string) => ["session", hash],
  portalLink: (hash: string) => ["portal_link", hash],
  /**
   * `subject`: an endpoint, a partner (its own and its tenants' endpoints) or `all`; `hour`: Unix ms of its start. An instance
   * writes its own rows, so that nobody waits for another.
   */
  hour: (subject: string, hour: number, instance: string) => ["hour", subject, hour, instance],
  hoursOf: (subject: string) => ["hour", subject],
  replayRun: (endpoint: EndpointId, run: string) => ["replay_run", endpoint, run],

  // store
  schema: () => ["schema"],
  retention: () => ["retention"],
  masterRotation: () => ["master_rotation"],
  lease: (name: string) => ["lease", name],
} satisfies Record<string, (...args: never[]) => Deno.KvKey>;

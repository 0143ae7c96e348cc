/** What the model knows, from the commits it saw: the only state that its rules share. */
import type { AttemptRow, EndpointRow, PairRow } from "../lib/keys.ts";
import { keys } from "../lib/keys.ts";
import type { EndpointHistory, EventRecord, PartnerHistory } from "./history.ts";
import { JobIndex } from "./job_index.ts";
import type { Landed } from "./store.ts";
import type { Tally } from "./tally.ts";

export interface Violation {
  rule: string;
  what: string;
  mono: number;
}

export interface ModelDeps {
  /** Monotonic ms. */
  mono(): number;
  /** Unix ms. */
  now(): number;
  /** By how much two readings of wall clocks may disagree about what came first, ms: skew, and jumps back. */
  discord(): number;
  tally: Tally;
  trace(what: string): void;
}

/** The directory may be this stale by design, beside the time its own reads take. */
const FRESH_MS = 50;
/** Planted in every payload: it must never be seen outside events and owners' state (P1). */
export const CANARY = "CANARY";

export type Changes = Landed["changes"];

/** The first part of each family's keys. */
export const FAMILY = {
  event: keys.events()[0],
  tenantIndex: keys.eventsOfTenant("" as never)[0],
  partnerIndex: keys.eventsOfPartner("" as never)[0],
  chunk: keys.eventChunk("" as never, 0)[0],
  state: keys.ownerState({ kind: "custom", tenant: "" as never, id: "" }, "")[0],
  meta: keys.ownerMeta({ kind: "custom", tenant: "" as never, id: "" })[0],
  endpoint: keys.endpoints()[0],
  partner: keys.partners()[0],
  attempt: keys.attemptsOf("" as never)[0],
  job: keys.jobs()[0],
  pair: keys.pairsOf("" as never)[0],
};

export class Facts {
  readonly violations: Violation[] = [];
  readonly events = new Map<string, EventRecord>();
  readonly eventsById = new Map<string, EventRecord>();
  readonly endpoints = new Map<string, EndpointHistory>();
  readonly partners = new Map<string, PartnerHistory>();
  readonly pairs = new Map<string, PairRow>();
  /** By endpoint, event and number. */
  readonly attempts = new Map<string, AttemptRow>();
  readonly jobs = new JobIndex();
  /** The last sequence each owner gave out. */
  readonly sequences = new Map<string, number>();
  /** Failures in a row of each endpoint, and when they began, Unix ms. */
  readonly streaks = new Map<string, { count: number; since: number; success: number }>();
  /** Endpoints by the hosts they have had. */
  readonly hosts = new Map<string, string>();
  /** The longest any read has taken so far, ms. */
  slowestRead = 0;

  constructor(readonly d: ModelDeps) {}

  violated(rule: string, what: string): void {
    this.violations.push({ rule, what, mono: this.d.mono() });
    this.d.trace(`VIOLATION ${rule}: ${what}`);
  }

  /** What an isolate may still believe began to end here, monotonic ms. */
  get staleSince(): number {
    return this.d.mono() - FRESH_MS - this.slowestRead;
  }

  endpointAt(host: string): EndpointHistory | undefined {
    return this.endpoints.get(this.hosts.get(host) ?? "");
  }

  deleted(endpoint: string): boolean {
    const row: EndpointRow | undefined = this.endpoints.get(endpoint)?.now;
    return row === undefined || row.deleted_at !== null;
  }
}

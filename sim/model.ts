/**
 * The reference model: it sees every commit as it lands, every request as it leaves and arrives and every answer, and holds
 * them to the invariants at once (ARCHITECTURE.md, "Invariants"). It shares no code with the pipeline but the keys.
 */
import type {
  AttemptError,
  AttemptRow,
  EndpointRow,
  EventRow,
  Job,
  PairRow,
  PartnerRow,
} from "../lib/keys.ts";
import { keys } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import {
  type EndpointHistory,
  type EventRecord,
  History,
  matchedThroughout,
  type PartnerHistory,
  sameBytes,
} from "./history.ts";
import { JobIndex, pairName } from "./job_index.ts";
import { mayEverSee, passes, receives } from "./match.ts";
import { readsSecret, signedBy } from "./signatures.ts";
import type { Receipt } from "./net.ts";
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
  tally: Tally;
  trace(what: string): void;
}

/** The directory may be this stale by design, beside the time its own reads take. */
const FRESH_MS = 50;
/** Planted in every payload: it must never be seen outside events and owners' state (P1). */
export const CANARY = "CANARY";

const FAMILY = {
  event: keys.events()[0],
  chunk: keys.eventChunk("" as never, 0)[0],
  state: keys.ownerState({ kind: "custom", tenant: "" as never, id: "" }, "")[0],
  meta: keys.ownerMeta({ kind: "custom", tenant: "" as never, id: "" })[0],
  endpoint: keys.endpoints()[0],
  partner: keys.partners()[0],
  attempt: keys.attemptsOf("" as never)[0],
  job: keys.jobs()[0],
  pair: keys.pairsOf("" as never)[0],
};
const CONTENT = new Set<unknown>([FAMILY.event, FAMILY.chunk, FAMILY.state]);

export class Model {
  readonly violations: Violation[] = [];
  readonly events = new Map<string, EventRecord>();
  readonly eventsById = new Map<string, EventRecord>();
  readonly endpoints = new Map<string, EndpointHistory>();
  readonly partners = new Map<string, PartnerHistory>();
  readonly pairs = new Map<string, PairRow>();
  readonly attempts = new Map<string, AttemptRow>();
  readonly jobs = new JobIndex();
  /** Pairs that somebody must answer for until they are terminal (J1). */
  readonly owed = new Set<string>();
  readonly delivered = new Map<string, number>();
  readonly sequences = new Map<string, number>();
  slowestRead = 0;
  #hosts = new Map<string, string>();
  #answers = new Map<string, number>();
  #succeeded = new Map<string, number>();

  constructor(readonly d: ModelDeps) {}

  violated(rule: string, what: string): void {
    this.violations.push({ rule, what, mono: this.d.mono() });
    this.d.trace(`VIOLATION ${rule}: ${what}`);
  }

  // --- commits ---------------------------------------------------------------------------------------

  landed({ changes, messages }: Landed): void {
    const touched = new Set<string>();
    const fannedOut = new Set<string>();
    const created: EventRecord[] = [];
    for (const { key, before, after } of changes) {
      this.#leaks(key, after);
      if (JobIndex.holds(key)) {
        if (before === null && after === null) this.violated("J2", `${key.join(" ")} was taken away twice`);
        const { gone, come } = this.jobs.change(key, before, after);
        for (const event of gone.events) fannedOut.add(event);
        for (const { pair } of [...gone.items, ...come.items]) touched.add(pair);
      }
    }
    for (const { key, before, after } of changes) {
      if (key[0] === FAMILY.endpoint && after !== null) this.#endpoint(after as EndpointRow, changes);
      else if (key[0] === FAMILY.partner && after !== null) this.#partner(after as PartnerRow);
      else if (key[0] === FAMILY.event) {
        this.#event(key[1] as string, after as EventRow | null, changes, created);
      } else if (key[0] === FAMILY.meta) {
        if ((after as number) < ((before as number | null) ?? 0)) {
          this.violated("O2", `the counter of ${String(key[3])} went back`);
        }
      }
    }
    for (const { key, before, after } of changes) {
      if (key[0] !== FAMILY.pair || after === null) continue;
      const name = pairName(key[1] as string, key[2] as string);
      this.#pair(name, before as PairRow | null, after as PairRow, changes);
      touched.add(name);
    }
    this.#witness(changes);
    for (const event of created) this.#mustFanOut(event);
    for (const event of fannedOut) this.#fannedOut(event, touched);
    for (const pair of touched) this.#mustBeAnswered(pair);
    for (const { value } of messages) {
      if (JSON.stringify(value).includes(CANARY)) this.violated("P1", "content in a queue message");
    }
  }

  /** Branches that only the shape of a commit shows. */
  #witness(changes: Landed["changes"]): void {
    const jobs = changes.filter(({ key }) => key[0] === FAMILY.job);
    const came = (kind: string, claimed: boolean) =>
      jobs.some(({ after }) =>
        after !== null && (after as Job).kind === kind && ((after as Job).by !== undefined) === claimed
      );
    const went = (kind: string, claimed: boolean) =>
      jobs.some(({ before, after }) =>
        after === null && (before as Job | null)?.kind === kind &&
        ((before as Job).by !== undefined) === claimed
      );
    if (went("fanout", true) && came("deliver", true)) this.d.tally.count("handed_over");
    for (const kind of ["fanout", "deliver"]) {
      if (jobs.length === 2 && changes.length === 2 && went(kind, true) && came(kind, false)) {
        this.d.tally.count("recovered");
      }
    }
  }

  #leaks(key: KvKey, value: unknown): void {
    if (value === null || typeof value !== "object" || CONTENT.has(key[0])) return;
    if (JSON.stringify(value).includes(CANARY)) this.violated("P1", `content in ${String(key[0])}`);
  }

  #endpoint(row: EndpointRow, changes: Landed["changes"]): void {
    const history: EndpointHistory = this.endpoints.get(row.id) ?? new History();
    const before = history.versions.at(-1)?.row;
    history.add(this.d.mono(), row);
    this.endpoints.set(row.id, history);
    this.#hosts.set(new URL(row.url).hostname, row.id);
    this.d.trace(`endpoint ${row.id} ${row.deleted_at !== null ? "deleted" : row.enabled ? "on" : "off"}`);
    if (before?.enabled && !row.enabled && row.disabled_reason !== "manual") {
      this.d.tally.count(`disabled_${row.disabled_reason}`);
      const told = changes.some(({ key, after }) =>
        key[0] === FAMILY.event && (after as EventRow | null)?.type === "webhook.disabled"
      );
      if (!told) this.violated("O1", `${row.id} was disabled and no event tells of it`);
    }
    if (row.deleted_at !== null) this.d.tally.count("endpoint_deleted");
  }

  #partner(row: PartnerRow): void {
    const history: PartnerHistory = this.partners.get(row.id) ?? new History();
    history.add(this.d.mono(), row);
    this.partners.set(row.id, history);
  }

  #event(key: string, row: EventRow | null, changes: Landed["changes"], created: EventRecord[]): void {
    const known = this.events.get(key);
    if (known !== undefined) {
      if (row === null || row.body === null) known.erased = true;
      return;
    }
    if (row === null || row.body === null) return;
    const body = typeof row.body === "number" ? joined(key, row.body, changes) : row.body;
    const id = row.id ?? `evt_${key}`;
    const about = row.type === "webhook.disabled"
      ? JSON.parse(new TextDecoder().decode(body)).data.webhook_id as string
      : null;
    const { type, tenant, partner, identity, kind, owner, seq, at } = row;
    const event: EventRecord = {
      ...{ key, id, type, tenant, partner, identity, kind, owner, seq, at, body, about },
      committed: this.d.mono(),
      erased: false,
    };
    this.events.set(key, event);
    this.eventsById.set(id, event);
    this.d.trace(`event ${id} ${type} of ${owner} #${seq}`);
    if (type !== "webhook.test") created.push(event);
    if (kind === "platform") return;
    const name = `${kind} ${tenant} ${owner}`, last = this.sequences.get(name) ?? 0;
    if (seq === null || seq <= last) this.violated("O2", `${name} gave out ${seq} after ${last}`);
    else this.sequences.set(name, seq);
    const meta = changes.find((change) =>
      change.key[0] === FAMILY.meta && change.key[2] === tenant && change.key[3] === owner
    );
    if (meta === undefined || (meta.after as number) < (seq ?? 0)) {
      this.violated("O1", `event ${id} landed without its owner's counter`);
    }
  }

  /** J1 begins: the commit of an event holds the Fanout row for it. */
  #mustFanOut(event: EventRecord): void {
    if ((this.jobs.fanouts.get(event.key) ?? 0) > 0) return;
    this.violated("J1", `event ${event.id} was committed without a Fanout job`);
  }

  /** The last Fanout row of an event went: whatever surely matched is owed a delivery. */
  #fannedOut(key: string, touched: Set<string>): void {
    if ((this.jobs.fanouts.get(key) ?? 0) > 0) return;
    const event = this.events.get(key);
    if (event === undefined) return;
    for (const [id, endpoint] of this.endpoints) {
      if (!matchedThroughout(event, endpoint, this.d.mono())) continue;
      const name = pairName(id, key);
      this.owed.add(name);
      touched.add(name);
    }
  }

  #mustBeAnswered(pair: string): void {
    this.owed.add(pair);
    if (!this.answered(pair)) this.violated("J1", `no row answers for ${pair}`);
  }

  /** Delivered, dead, gone with its endpoint, or some row will go on with it. */
  answered(pair: string): boolean {
    if (this.settled(pair)) return true;
    const [, event] = pair.split(" ") as [string, string];
    const row = this.pairs.get(pair);
    const attempt = row?.attempt ?? 0, first = row?.first ?? 1;
    if (attempt === 0 && (this.jobs.fanouts.get(event) ?? 0) > 0) return true;
    for (const { item } of this.jobs.items.get(pair)?.values() ?? []) {
      if (item.attempt > attempt && item.first >= first) return true;
    }
    return false;
  }

  settled(pair: string): boolean {
    const [endpoint, event] = pair.split(" ") as [string, string];
    const row = this.pairs.get(pair);
    if (row !== undefined && isTerminal(row)) return true;
    if (row !== undefined && this.events.get(event)?.type === "webhook.test") return true; // one attempt, whatever it comes to
    return this.endpoints.get(endpoint)?.now.deleted_at !== null;
  }

  #pair(name: string, before: PairRow | null, after: PairRow, changes: Landed["changes"]): void {
    this.pairs.set(name, after);
    if (before !== null && after.attempt < before.attempt) {
      this.violated("D1", `${name} went back to attempt ${after.attempt}`);
    }
    if (before !== null && after.first < before.first) {
      this.violated("D1", `${name} went back to an older run`);
    }
    const [endpoint, event] = name.split(" ") as [string, string];
    if (before === null && after.attempt > 0) this.#chosen(endpoint, event);
    for (const { key, after: row } of changes) {
      if (key[0] !== FAMILY.attempt || key[1] !== endpoint || row === null) continue;
      if ((row as AttemptRow).event === event) this.#attempt(name, before, after, row as AttemptRow);
    }
    if (after.ids.length !== after.attempt) {
      this.violated("D1", `${name} lists ${after.ids.length} attempts of ${after.attempt}`);
    }
    if (
      after.attempt === (before?.attempt ?? 0) && after.attempt > 0 && before !== null &&
      after.first > before.first
    ) {
      this.d.tally.count("replay_after_attempts");
    }
  }

  /** A pair that no replay opened was chosen by fan-out: its endpoint received the event at some moment since its commit. */
  #chosen(endpoint: string, key: string): void {
    const event = this.events.get(key), history = this.endpoints.get(endpoint);
    if (event === undefined || history === undefined || event.type === "webhook.test") return;
    if (history.now.created_at > event.at) this.violated("S1", `${endpoint} is younger than ${event.id}`);
    if (
      !history.during(event.committed - FRESH_MS - this.slowestRead, this.d.mono()).some((row) =>
        receives(event, row)
      )
    ) {
      this.violated("S1", `${endpoint} was chosen for ${event.id} and never matched it`);
    }
  }

  #attempt(name: string, before: PairRow | null, pair: PairRow, row: AttemptRow): void {
    const numbered = `${name} ${row.attempt}`;
    if (this.attempts.has(numbered)) {
      this.violated("D1", `attempt ${row.attempt} of ${name} is on record twice`);
    }
    if (pair.attempt !== row.attempt || pair.ids.at(-1) !== row.id) {
      this.violated("D1", `the state of ${name} does not end with attempt ${row.attempt}`);
    }
    const previous = this.attempts.get(`${name} ${row.attempt - 1}`);
    if (row.attempt > 1 && previous === undefined) {
      this.violated("D1", `${numbered} has no attempt before it`);
    }
    if (previous !== undefined && previous.first_attempt === row.first_attempt) {
      if (before !== null && isTerminal(before)) {
        this.violated("J4", `${numbered} came after the end of its run`);
      }
      if (row.created_at < (previous.next_attempt_at ?? 0)) this.violated("J4", `${numbered} came too early`);
    }
    this.attempts.set(numbered, row);
    this.d.trace(`attempt ${numbered} ${row.status} ${row.error ?? ""}`);
    this.d.tally.count(`attempt_${row.status}`);
    if (row.error !== null) this.d.tally.count(`error_${row.error}`);
    this.#charged(name, row);
  }

  /** D4: nothing is on record that the far side did not answer. */
  #charged(name: string, row: AttemptRow): void {
    const [endpoint, key] = name.split(" ") as [string, string];
    if (row.status === "succeeded") {
      const pair = `${endpoint} ${row.event_id}`;
      const count = (this.#succeeded.get(pair) ?? 0) + 1;
      this.#succeeded.set(pair, count);
      if (count > (this.delivered.get(pair) ?? 0)) {
        this.violated("D4", `${name} succeeded and no 2xx was answered`);
      }
      return;
    }
    const event = this.events.get(key);
    const history = this.endpoints.get(endpoint);
    if (row.error === "endpoint_disabled") {
      const off = history?.during(event?.committed ?? 0, this.d.mono()).some((version) => !version.enabled);
      if (!off) this.violated("D4", `${name} is dead as disabled and its endpoint never was`);
    } else if (row.error === "event_unavailable") {
      const DAYS_30 = 30 * 86_400_000;
      const past = event !== undefined && this.d.now() > event.at + DAYS_30;
      if (!event?.erased && !past) {
        this.violated("D4", `${name} is dead as unavailable and its event is there`);
      }
    } else {
      const charge = `${endpoint} ${row.error}`;
      const left = (this.#answers.get(charge) ?? 0) - 1;
      this.#answers.set(charge, left);
      if (left < 0) this.violated("D4", `${name} failed as ${row.error} and nothing answered so`);
    }
  }

  // --- requests --------------------------------------------------------------------------------------

  /** An attempt starts (D2, J13): judged by what was durable a moment ago. */
  sending(host: string, body: Uint8Array, webhookId: string): void {
    const id = this.#hosts.get(host);
    const endpoint = id === undefined ? undefined : this.endpoints.get(id);
    if (endpoint === undefined) return this.violated("D2", `a request to ${host}, which is no endpoint's`);
    const test = isTest(body);
    const mono = this.d.mono(), from = mono - FRESH_MS - this.slowestRead;
    const lately = endpoint.during(from, mono);
    this.d.trace(`send ${webhookId} to ${id}`);
    if (!lately.some((row) => row.deleted_at === null)) {
      this.violated("D2", `${id} is deleted and was dialled`);
    }
    if (test) return;
    if (!lately.some((row) => row.enabled && row.deleted_at === null)) {
      this.violated("D2", `${id} is disabled and was dialled`);
    }
    const event = this.eventsById.get(webhookId);
    if (event === undefined) return this.violated("O1", `${webhookId} was sent before it was committed`);
    const { tenant_id, partner_id } = endpoint.now;
    const partner = partner_id ?? (tenant_id === null ? null : event.partner);
    const held = partner !== null &&
      this.partners.get(partner)?.during(from, mono).every((row) => row.status === "suspended");
    if (held) this.violated("J13", `${id} was dialled while its partner was suspended`);
  }

  /** A request arrived (S1, O3, and the signature). */
  received(receipt: Receipt): void {
    const id = this.#hosts.get(receipt.host)!;
    const endpoint = this.endpoints.get(id);
    if (endpoint === undefined) return;
    this.d.tally.count("received");
    const mono = this.d.mono();
    const rows = endpoint.during(mono - FRESH_MS - this.slowestRead - 1_000, mono);
    const verdict = signedBy(receipt, rows, this.d.now());
    if (verdict !== null) this.violated("signing", `${receipt.webhookId} to ${id}: ${verdict}`);
    if (isTest(receipt.body)) return;
    const event = this.eventsById.get(receipt.webhookId);
    if (event === undefined) {
      return this.violated("O1", `${receipt.webhookId} arrived and was never committed`);
    }
    if (!sameBytes(event.body, receipt.body)) {
      this.violated("O3", `${receipt.webhookId} arrived with other bytes`);
    }
    if (!mayEverSee(event, endpoint.now)) {
      this.violated("S1", `${receipt.webhookId} reached ${id} out of its scope`);
    }
    if (!endpoint.during(event.committed - 1_000, mono).some((row) => passes(event, row))) {
      this.violated("S1", `${receipt.webhookId} reached ${id}, whose filters never let it pass`);
    }
  }

  answeredWith(host: string, error: AttemptError | "succeeded", webhookId: string): void {
    const id = this.#hosts.get(host);
    if (id === undefined) return;
    const counts = error === "succeeded" ? this.delivered : this.#answers;
    const name = `${id} ${error === "succeeded" ? webhookId : error}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  /** A secret did not open, on purpose. */
  secretFailed(sealed: string): void {
    const id = readsSecret(sealed)?.endpoint;
    if (id !== undefined) {
      this.#answers.set(`${id} secret_unavailable`, (this.#answers.get(`${id} secret_unavailable`) ?? 0) + 1);
    }
  }
}

export const isTerminal = (row: PairRow): boolean =>
  row.attempt >= row.first && (row.status === "succeeded" || row.status === "dead");

const TEST = new TextEncoder().encode('"type":"webhook.test"');

/** The type stands at the same place in every envelope: `{"id":"evt_…26","type":…`. */
function isTest(body: Uint8Array): boolean {
  const at = '{"id":"evt_01234567890123456789012345",'.length;
  return TEST.every((byte, i) => body[at + i] === byte);
}

function joined(key: string, count: number, changes: Landed["changes"]): Uint8Array {
  const parts = Array.from(
    { length: count },
    (_, i) =>
      changes.find((change) => change.key[0] === FAMILY.chunk && change.key[1] === key && change.key[2] === i)
        ?.after as Uint8Array,
  );
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

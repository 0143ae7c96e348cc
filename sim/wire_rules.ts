/**
 * Rules of the wire: who may be sent to (D2, J13), what arrives where (S1, O3, signatures), and that nothing is on record that the
 * far side did not answer (D4).
 */
import type { AttemptError, AttemptRow } from "../lib/keys.ts";
import type { Facts } from "./facts.ts";
import { sameBytes } from "./history.ts";
import { mayEverSee, passes } from "./match.ts";
import type { Receipt } from "./net.ts";
import { readsSecret, signedBy } from "./signatures.ts";

/** An attempt takes so long from its signing to its receipt at most, ms: look-up and connection. */
const UNDER_WAY_MS = 1_000;
const WINDOW_MS = 30 * 86_400_000;

export class WireRules {
  /** 2xx answers by endpoint and event id; failing ones by endpoint and code; and those on record. */
  #delivered = new Map<string, number>();
  #answers = new Map<string, number>();
  #succeeded = new Map<string, number>();
  /** The shortest pause asked for, s, by endpoint and event id. */
  #asked = new Map<string, number>();

  constructor(readonly facts: Facts) {}

  /** D4: nothing is on record that the far side did not answer. */
  charged(name: string, row: AttemptRow): void {
    const [endpoint, key] = name.split(" ") as [string, string];
    if (row.status === "succeeded") {
      const pair = `${endpoint} ${row.event_id}`;
      const count = (this.#succeeded.get(pair) ?? 0) + 1;
      this.#succeeded.set(pair, count);
      if (count > (this.#delivered.get(pair) ?? 0)) {
        this.facts.violated("D4", `${name} succeeded and no 2xx was answered`);
      }
      return;
    }
    const pause = this.#asked.get(`${endpoint} ${row.event_id}`);
    const throttled = row.http_status === 429 || row.http_status === 503;
    if (throttled && pause !== undefined && row.next_attempt_at !== null) {
      const early = row.created_at + pause * 1_000 - row.next_attempt_at;
      if (early > this.facts.d.discord()) {
        this.facts.violated("J4", `${name} is to come before its Retry-After`);
      }
    }
    const event = this.facts.events.get(key);
    const history = this.facts.endpoints.get(endpoint);
    if (row.error === "endpoint_disabled") {
      const off = history?.during(event?.committed ?? 0, this.facts.d.mono()).some((version) =>
        !version.enabled
      );
      if (!off) this.facts.violated("D4", `${name} is dead as disabled and its endpoint never was`);
    } else if (row.error === "event_unavailable") {
      const past = event !== undefined && this.facts.d.now() > event.at + WINDOW_MS;
      if (!event?.erased && !past) {
        this.facts.violated("D4", `${name} is dead as unavailable and its event is there`);
      }
    } else {
      const charge = `${endpoint} ${row.error}`;
      const left = (this.#answers.get(charge) ?? 0) - 1;
      this.#answers.set(charge, left);
      if (left < 0) this.facts.violated("D4", `${name} failed as ${row.error} and nothing answered so`);
    }
  }

  /** An attempt starts (D2, J13): judged by what was durable a moment ago. */
  sending(host: string, body: Uint8Array, webhookId: string): void {
    const id = this.facts.hosts.get(host);
    const endpoint = id === undefined ? undefined : this.facts.endpoints.get(id);
    if (endpoint === undefined) {
      return this.facts.violated("D2", `a request to ${host}, which is no endpoint's`);
    }
    const test = isTest(body);
    const mono = this.facts.d.mono(), from = this.facts.staleSince;
    const lately = endpoint.during(from, mono);
    this.facts.d.trace(`send ${webhookId} to ${id}`);
    if (!lately.some((row) => row.deleted_at === null)) {
      this.facts.violated("D2", `${id} is deleted and was dialled`);
    }
    if (test) return;
    if (!lately.some((row) => row.enabled && row.deleted_at === null)) {
      this.facts.violated("D2", `${id} is disabled and was dialled`);
    }
    const event = this.facts.eventsById.get(webhookId);
    if (event === undefined) {
      return this.facts.violated("O1", `${webhookId} was sent before it was committed`);
    }
    const { tenant_id, partner_id } = endpoint.now;
    const partner = partner_id ?? (tenant_id === null ? null : event.partner);
    const held = partner !== null &&
      this.facts.partners.get(partner)?.during(from, mono).every((row) => row.status === "suspended");
    if (held) this.facts.violated("J13", `${id} was dialled while its partner was suspended`);
  }

  /** A request arrived (S1, O3, and the signature). */
  received(receipt: Receipt): void {
    const id = this.facts.hosts.get(receipt.host)!;
    const endpoint = this.facts.endpoints.get(id);
    if (endpoint === undefined) return;
    this.facts.d.tally.count("received");
    const mono = this.facts.d.mono();
    const rows = endpoint.during(this.facts.staleSince - UNDER_WAY_MS, mono);
    const verdict = signedBy(receipt, rows, this.facts.d.now() + this.facts.d.discord() + UNDER_WAY_MS);
    if (verdict !== null) this.facts.violated("signing", `${receipt.webhookId} to ${id}: ${verdict}`);
    if (isTest(receipt.body)) return;
    const event = this.facts.eventsById.get(receipt.webhookId);
    if (event === undefined) {
      return this.facts.violated("O1", `${receipt.webhookId} arrived and was never committed`);
    }
    if (!sameBytes(event.body, receipt.body)) {
      this.facts.violated("O3", `${receipt.webhookId} arrived with other bytes`);
    }
    if (!mayEverSee(event, endpoint.now)) {
      this.facts.violated("S1", `${receipt.webhookId} reached ${id} out of its scope`);
    }
    if (!endpoint.during(event.committed - UNDER_WAY_MS, mono).some((row) => passes(event, row))) {
      this.facts.violated("S1", `${receipt.webhookId} reached ${id}, whose filters never let it pass`);
    }
  }

  answeredWith(host: string, error: AttemptError | "succeeded", webhookId: string): void {
    const id = this.facts.hosts.get(host);
    if (id === undefined) return;
    const counts = error === "succeeded" ? this.#delivered : this.#answers;
    const name = `${id} ${error === "succeeded" ? webhookId : error}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  /** A 429 or 503 asked for a pause. */
  asked(host: string, webhookId: string, seconds: number): void {
    const name = `${this.facts.hosts.get(host)} ${webhookId}`;
    this.#asked.set(name, Math.min(seconds, this.#asked.get(name) ?? Infinity));
  }

  /** A secret did not open, on purpose. */
  secretFailed(sealed: string): void {
    const id = readsSecret(sealed)?.endpoint;
    if (id !== undefined) {
      this.#answers.set(`${id} secret_unavailable`, (this.#answers.get(`${id} secret_unavailable`) ?? 0) + 1);
    }
  }
}

const TEST = new TextEncoder().encode('"type":"webhook.test"');

/** The type stands at the same place in every envelope: `{"id":"evt_…26","type":…`. */
function isTest(body: Uint8Array): boolean {
  const at = '{"id":"evt_01234567890123456789012345",'.length;
  return TEST.every((byte, i) => body[at + i] === byte);
}

/**
 * Rules of what commits write: an event exists with its owner's counter and its Fanout job (O1, J1), counters only grow (O2), a
 * disabling tells of itself, and no content leaks into other rows (P1).
 */
import { eventRowOf } from "../lib/event_row.ts";
import type { EventKey } from "../lib/ids.ts";
import type { AttemptRow, EndpointRow, Job, PartnerRow } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { CANARY, type Changes, type Facts, FAMILY } from "./facts.ts";
import { type EndpointHistory, type EventRecord, History, type PartnerHistory } from "./history.ts";

const CONTENT = new Set<unknown>([FAMILY.event, FAMILY.chunk, FAMILY.state]);

export class RowRules {
  constructor(readonly facts: Facts) {}

  /** Learns what a commit wrote. @returns the events it made that are to be fanned out. */
  landed(changes: Changes, underWay: number): EventRecord[] {
    const created: EventRecord[] = [];
    for (const { key, after } of changes) {
      if (key[0] === FAMILY.attempt && after !== null) this.#streak(after as AttemptRow, key[1] as string);
    }
    for (const { key, before, after } of changes) {
      this.#leaks(key, after);
      if (key[0] === FAMILY.endpoint && after !== null) this.#endpoint(after as EndpointRow, changes);
      else if (key[0] === FAMILY.partner && after !== null) this.#partner(after as PartnerRow);
      else if (key[0] === FAMILY.event) {
        this.#event(key[1] as EventKey, after, changes, created, underWay);
      } else if (key[0] === FAMILY.meta && (after as number) < ((before as number | null) ?? 0)) {
        this.facts.violated("O2", `the counter of ${String(key[3])} went back`);
      }
    }
    this.#witness(changes);
    return created;
  }

  /** Doorbells are pointers. */
  rung(value: unknown): void {
    if (JSON.stringify(value).includes(CANARY)) this.facts.violated("P1", "content in a queue message");
  }

  /** Branches that only the shape of a commit shows. */
  #witness(changes: Changes): void {
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
    if (went("fanout", true) && came("deliver", true)) this.facts.d.tally.count("handed_over");
    for (const kind of ["fanout", "deliver"]) {
      if (jobs.length === 2 && changes.length === 2 && went(kind, true) && came(kind, false)) {
        this.facts.d.tally.count("recovered");
      }
    }
  }

  #leaks(key: KvKey, value: unknown): void {
    if (value === null || CONTENT.has(key[0])) return;
    if (JSON.stringify(value).includes(CANARY)) this.facts.violated("P1", `content in ${String(key[0])}`);
  }

  #endpoint(row: EndpointRow, changes: Changes): void {
    const history: EndpointHistory = this.facts.endpoints.get(row.id) ?? new History();
    const before = history.versions.at(-1)?.row;
    history.add(this.facts.d.mono(), row);
    this.facts.endpoints.set(row.id, history);
    this.facts.hosts.set(new URL(row.url).hostname, row.id);
    this.facts.d.trace(
      `endpoint ${row.id} ${row.deleted_at !== null ? "deleted" : row.enabled ? "on" : "off"}`,
    );
    if (before?.enabled && !row.enabled && row.disabled_reason !== "manual") {
      this.facts.d.tally.count(`disabled_${row.disabled_reason}`);
      const told = changes.some(({ key, after }) =>
        key[0] === FAMILY.event && eventRowOf(key[1] as EventKey, after)?.type === "webhook.disabled"
      );
      this.#mayDisable(row, changes);
      if (!told) this.facts.violated("O1", `${row.id} was disabled and no event tells of it`);
    }
    if (row.enabled && before?.enabled === false) this.facts.streaks.delete(row.id);
    if (row.deleted_at !== null) this.facts.d.tally.count("endpoint_deleted");
  }

  /** 410 disables at once; else it takes 100 failures in a row over 24 hours. */
  #mayDisable(row: EndpointRow, changes: Changes): void {
    const attempts = changes.filter(({ key, after }) =>
      key[0] === FAMILY.attempt && key[1] === row.id && after !== null
    ).map(({ after }) => after as AttemptRow);
    if (row.disabled_reason === "gone") {
      if (attempts.some(({ error }) => error === "status_410")) return;
      this.facts.violated("disable", `${row.id} is gone without a 410`);
    } else {
      const streak = this.facts.streaks.get(row.id);
      const spans = streak !== undefined &&
        this.facts.d.now() - streak.since + this.facts.d.discord() >= 86_400_000;
      if (!spans || streak.count < 100) {
        this.facts.violated("disable", `${row.id} is failing after ${streak?.count ?? 0} failures`);
      }
    }
  }

  /**
   * Failures in a row, as the log has them; an endpoint that is enabled starts anew. Signs of health are written once a second at
   * most, so a success that soon after another may not have been seen by the isolate that counts.
   */
  #streak(row: AttemptRow, endpoint: string): void {
    if (row.event_type === "webhook.test") return; // a test changes no health
    if (row.error === "endpoint_disabled" || row.error === "event_unavailable") return;
    const streak = this.facts.streaks.get(endpoint) ??
      { count: 0, since: row.created_at, success: -Infinity };
    if (row.status !== "succeeded") streak.count++;
    else if (row.created_at - streak.success >= 1_000) {
      Object.assign(streak, { count: 0, success: row.created_at });
    }
    if (streak.count === 1) streak.since = row.created_at;
    this.facts.streaks.set(endpoint, streak);
  }

  #partner(row: PartnerRow): void {
    const history: PartnerHistory = this.facts.partners.get(row.id) ?? new History();
    history.add(this.facts.d.mono(), row);
    this.facts.partners.set(row.id, history);
  }

  #event(key: EventKey, value: unknown, changes: Changes, created: EventRecord[], underWay: number): void {
    const row = eventRowOf(key, value);
    const known = this.facts.events.get(key);
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
      committed: this.facts.d.mono(),
      asked: this.facts.d.mono() - underWay,
      erased: false,
    };
    this.facts.events.set(key, event);
    this.facts.eventsById.set(id, event);
    this.facts.d.trace(`event ${id} ${type} of ${owner} #${seq}`);
    if (type !== "webhook.test") created.push(event);
    if (kind === "platform") return;
    const name = `${kind} ${tenant} ${owner}`, last = this.facts.sequences.get(name) ?? 0;
    if (seq === null || seq <= last) this.facts.violated("O2", `${name} gave out ${seq} after ${last}`);
    else this.facts.sequences.set(name, seq);
    const meta = changes.find((change) =>
      change.key[0] === FAMILY.meta && change.key[2] === tenant && change.key[3] === owner
    );
    if (meta === undefined || (meta.after as number) < (seq ?? 0)) {
      this.facts.violated("O1", `event ${id} landed without its owner's counter`);
    }
  }
}

function joined(key: string, count: number, changes: Changes): Uint8Array {
  const parts = Array.from(
    { length: count },
    (_, i) =>
      changes.find((change) => change.key[0] === FAMILY.chunk && change.key[1] === key && change.key[2] === i)
        ?.after as Uint8Array,
  );
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/**
 * Rules of deliveries: from an event's commit until each endpoint that matched has an end, some row answers for it (J1); one row an
 * attempt, in order, on time and within its run (D1, J4).
 */
import { type EndpointId, type EventKey, firstDelivery } from "../lib/ids.ts";
import type { AttemptRow, PairRow } from "../lib/keys.ts";
import { type Changes, type Facts, FAMILY } from "./facts.ts";
import { type EventRecord, matchedThroughout } from "./history.ts";
import { JobIndex, pairName } from "./job_index.ts";
import { receives } from "./match.ts";

export class DeliveryRules {
  /** Pairs that somebody must answer for until they are terminal (J1). */
  readonly owed = new Set<string>();

  /** @param charged told of each new attempt row: is there an answer behind it? */
  constructor(readonly facts: Facts, readonly charged: (pair: string, row: AttemptRow) => void) {}

  landed(
    changes: Changes,
    created: readonly EventRecord[],
    gone: Iterable<string>,
    touched: Set<string>,
  ): void {
    const paired = new Set<string>();
    for (const { key, after } of changes) {
      if (key[0] !== FAMILY.pair || after === null) continue;
      const name = pairName(key[1] as string, key[2] as string);
      this.#pair(name, after as PairRow, changes);
      for (const id of (after as PairRow).ids) paired.add(`${name} ${id}`);
      touched.add(name);
    }
    for (const { key, after } of changes) {
      if (key[0] !== FAMILY.attempt || after === null) continue;
      const name = pairName(key[1] as string, (after as AttemptRow).event);
      if (key[2] !== (after as AttemptRow).id) {
        this.facts.violated("D1", `${name} has an attempt under ${key[2] as string}`);
      }
      if (paired.has(`${name} ${(after as AttemptRow).id}`)) continue; // else a replay that opened the pair shared the commit, maybe
      this.#alone(name, after as AttemptRow);
      touched.add(name);
    }
    for (const event of created) this.#mustFanOut(event);
    for (const event of gone) this.#fannedOut(event, touched);
    for (const pair of touched) this.#mustBeAnswered(pair);
  }

  /** Applies the changes of job rows. @returns the events that left a Fanout row, and the pairs it touched. */
  moved(changes: Changes): { gone: Set<string>; touched: Set<string> } {
    const gone = new Set<string>(), touched = new Set<string>();
    for (const { key, before, after } of changes) {
      if (!JobIndex.holds(key)) continue;
      if (before === null && after === null) {
        this.facts.violated("J2", `${key.join(" ")} was taken away twice`);
      }
      const change = this.facts.jobs.change(key, before, after);
      for (const event of change.gone.events) gone.add(event);
      for (const { pair } of [...change.gone.items, ...change.come.items]) touched.add(pair);
    }
    return { gone, touched };
  }

  /** J1 begins: the commit of an event holds the Fanout row for it. */
  #mustFanOut(event: EventRecord): void {
    if ((this.facts.jobs.fanouts.get(event.key) ?? 0) > 0) return;
    this.facts.violated("J1", `event ${event.id} was committed without a Fanout job`);
  }

  /** The last Fanout row of an event went: whatever surely matched is owed a delivery. */
  #fannedOut(key: string, touched: Set<string>): void {
    if ((this.facts.jobs.fanouts.get(key) ?? 0) > 0) return;
    const event = this.facts.events.get(key);
    if (event === undefined) return;
    for (const [id, endpoint] of this.facts.endpoints) {
      if (!matchedThroughout(event, endpoint, this.facts.d.mono())) continue;
      const name = pairName(id, key);
      this.owed.add(name);
      touched.add(name);
    }
  }

  #mustBeAnswered(pair: string): void {
    this.owed.add(pair);
    if (!this.answered(pair)) this.facts.violated("J1", `no row answers for ${pair}`);
  }

  /** Delivered, dead, gone with its endpoint, or some row will go on with it. */
  answered(pair: string): boolean {
    if (this.settled(pair)) return true;
    const [, event] = pair.split(" ") as [string, string];
    const row = this.facts.pairs.get(pair);
    const attempt = row?.attempt ?? 0, first = row?.first ?? 1;
    if (attempt === 0 && (this.facts.jobs.fanouts.get(event) ?? 0) > 0) return true;
    for (const { item } of this.facts.jobs.items.get(pair)?.values() ?? []) {
      if (item.attempt > attempt && item.first >= first) return true;
    }
    return false;
  }

  settled(pair: string): boolean {
    const [endpoint, event] = pair.split(" ") as [string, string];
    const row = this.facts.pairs.get(pair);
    if (row !== undefined && isTerminal(row)) return true;
    if (row !== undefined && this.facts.events.get(event)?.type === "webhook.test") return true; // one attempt, whatever it comes to
    return this.facts.deleted(endpoint);
  }

  /** A first attempt that succeeded is its pair's state by itself, under the id that both sides name; nothing else is on record alone. */
  #alone(name: string, row: AttemptRow): void {
    const [endpoint, event] = name.split(" ") as [EndpointId, EventKey];
    const before = this.facts.pairs.get(name) ?? null;
    const { id, attempt, first_attempt: first, status } = row;
    if (attempt !== 1 || first !== 1 || status !== "succeeded" || id !== firstDelivery(endpoint, event)) {
      this.facts.violated("D1", `attempt ${attempt} of ${name} ${status} and its pair was not told`);
    }
    if (before !== null && before.attempt > 0) {
      this.facts.violated("D1", `the first attempt of ${name} came after attempt ${before.attempt}`);
    }
    if (before === null) this.#chosen(endpoint, event);
    const after: PairRow = { status, attempt, first, succeeded: true, dead: false, ids: [id] };
    this.facts.pairs.set(name, after);
    this.#attempt(name, before, after, row);
    this.facts.d.tally.count(before === null ? "recorded_alone" : "recorded_under_a_replay");
  }

  #pair(name: string, after: PairRow, changes: Changes): void {
    const before = this.facts.pairs.get(name) ?? null;
    this.facts.pairs.set(name, after);
    if (before !== null && after.attempt < before.attempt) {
      this.facts.violated("D1", `${name} went back to attempt ${after.attempt}`);
    }
    if (before !== null && after.first < before.first) {
      this.facts.violated("D1", `${name} went back to an older run`);
    }
    const [endpoint, event] = name.split(" ") as [string, string];
    if (before === null && after.attempt > 0) this.#chosen(endpoint, event);
    for (const { key, after: row } of changes) {
      if (key[0] !== FAMILY.attempt || key[1] !== endpoint || row === null) continue;
      if (after.ids.includes((row as AttemptRow).id)) this.#attempt(name, before, after, row as AttemptRow);
    }
    if (before !== null && (before.succeeded && !after.succeeded || before.dead && !after.dead)) {
      this.facts.violated("D1", `${name} forgot what an attempt came to`);
    }
    if (before !== null && before.ids.some((id, i) => after.ids[i] !== id)) {
      this.facts.violated("D1", `${name} lists other attempts than it did`);
    }
    if (after.ids.length !== after.attempt) {
      this.facts.violated("D1", `${name} lists ${after.ids.length} attempts of ${after.attempt}`);
    }
    if (
      after.attempt === (before?.attempt ?? 0) && after.attempt > 0 && before !== null &&
      after.first > before.first
    ) {
      this.facts.d.tally.count("replay_after_attempts");
    }
  }

  /** A pair that no replay opened was chosen by fan-out: its endpoint received the event at some moment since its commit. */
  #chosen(endpoint: string, key: string): void {
    const event = this.facts.events.get(key), history = this.facts.endpoints.get(endpoint);
    if (event === undefined || history === undefined || event.type === "webhook.test") return;
    if (history.now.created_at > event.at) {
      this.facts.violated("S1", `${endpoint} is younger than ${event.id}`);
    }
    if (
      !history.during(event.committed - (this.facts.d.mono() - this.facts.staleSince), this.facts.d.mono())
        .some((row) => receives(event, row))
    ) {
      this.facts.violated("S1", `${endpoint} was chosen for ${event.id} and never matched it`);
    }
  }

  #attempt(name: string, before: PairRow | null, pair: PairRow, row: AttemptRow): void {
    const numbered = `${name} ${row.attempt}`;
    if (this.facts.attempts.has(numbered)) {
      this.facts.violated("D1", `attempt ${row.attempt} of ${name} is on record twice`);
    }
    if (pair.attempt !== row.attempt || pair.ids.at(-1) !== row.id) {
      this.facts.violated("D1", `the state of ${name} does not end with attempt ${row.attempt}`);
    }
    const previous = this.facts.attempts.get(`${name} ${row.attempt - 1}`);
    if (row.attempt > 1 && previous === undefined) {
      this.facts.violated("D1", `${numbered} has no attempt before it`);
    }
    if (previous !== undefined && previous.first_attempt === row.first_attempt) {
      if (before !== null && isTerminal(before)) {
        this.facts.violated("J4", `${numbered} came after the end of its run`);
      }
      if (row.created_at + this.facts.d.discord() < (previous.next_attempt_at ?? 0)) {
        this.facts.violated("J4", `${numbered} came too early`);
      }
    }
    this.facts.attempts.set(numbered, row);
    this.facts.d.trace(`attempt ${numbered} ${row.status} ${row.error ?? ""}`);
    this.facts.d.tally.count(`attempt_${row.status}`);
    if (row.error !== null) this.facts.d.tally.count(`error_${row.error}`);
    this.charged(name, row);
  }
}

export const isTerminal = (row: PairRow): boolean =>
  row.attempt >= row.first && (row.status === "succeeded" || row.status === "dead");

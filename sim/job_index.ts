/** The job rows of the store, by what they answer for: Fanout rows by event, items by (endpoint, event). */
import { type DeadLetter, type DeliverItem, type Job, keys } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";

const JOB = keys.jobs()[0], PARKED = keys.parkedAll()[0], DEAD = keys.deadLetters()[0];
const FAMILIES = new Set<unknown>([JOB, PARKED, DEAD]);

export const pairName = (endpoint: string, event: string): string => `${endpoint} ${event}`;

export class JobIndex {
  /** Rows naming an event for fan-out. */
  readonly fanouts = new Map<string, number>();
  /** Items of a pair; a row may hold two of one pair, of different attempts. */
  readonly items = new Map<string, Map<string, { row: string; item: DeliverItem }>>();
  /** Due times of the job rows there are; parked rows and dead letters are apart. */
  readonly due = new Map<string, { due: number; claimed: boolean }>();
  readonly parked = new Set<string>();
  readonly dead = new Map<string, DeadLetter>();

  /** Whether the family holds job rows. */
  static holds(key: KvKey): boolean {
    return FAMILIES.has(key[0]);
  }

  /** Applies one change. Tells what it removed and added. */
  change(
    key: KvKey,
    before: unknown,
    after: unknown,
  ): { gone: Named; come: Named } {
    const name = key.join(" ");
    const gone = this.#names(key, before), come = this.#names(key, after);
    for (const event of gone.events) this.fanouts.set(event, this.fanouts.get(event)! - 1);
    for (const { pair, item } of gone.items) {
      this.items.get(pair)?.delete(`${name} ${item.first} ${item.attempt}`);
    }
    for (const event of come.events) this.fanouts.set(event, (this.fanouts.get(event) ?? 0) + 1);
    for (const { pair, item } of come.items) {
      const rows = this.items.get(pair) ?? new Map<string, { row: string; item: DeliverItem }>();
      this.items.set(pair, rows.set(`${name} ${item.first} ${item.attempt}`, { row: name, item }));
    }
    if (key[0] === JOB) {
      if (after === null) this.due.delete(name);
      else this.due.set(name, { due: key[2] as number, claimed: (after as Job).by !== undefined });
    } else if (key[0] === PARKED) {
      if (after === null) this.parked.delete(name);
      else this.parked.add(name);
    } else if (after === null) this.dead.delete(name);
    else this.dead.set(name, after as DeadLetter);
    return { gone, come };
  }

  #names(key: KvKey, value: unknown): Named {
    const named: Named = { events: [], items: [] };
    if (value === null) return named;
    const job = key[0] === DEAD ? (value as DeadLetter).job : value as Job;
    if (job.kind === "fanout") named.events.push(...job.events);
    else for (const item of job.items) named.items.push({ pair: pairName(job.endpoint, item.event), item });
    return named;
  }

  get nextDue(): number {
    let next = Infinity;
    for (const { due } of this.due.values()) if (due < next) next = due;
    return next;
  }
}

export interface Named {
  events: string[];
  items: { pair: string; item: DeliverItem }[];
}

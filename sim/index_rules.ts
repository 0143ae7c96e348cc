/**
 * Rules of the index by tenant and partner: a commit names each event it makes in one block of its tenant and in one of its partner,
 * as the event's own row has it, and no other event (O1, S1). Blocks are read here by the letter of their format, not by the code
 * under test.
 */
import { eventRowOf } from "../lib/event_row.ts";
import type { EventKey } from "../lib/ids.ts";
import type { EventBlock, EventRow } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { type Changes, type Facts, FAMILY } from "./facts.ts";

const MAX_BYTES = 60_000;
const BUCKET = 9, TAIL = 17;

export class IndexRules {
  constructor(readonly facts: Facts) {}

  landed(changes: Changes): void {
    const made = new Map<string, EventRow>(), named = new Set<string>();
    for (const { key, before, after } of changes) {
      if (key[0] === FAMILY.event && before === null && after !== null) {
        made.set(key[1] as string, eventRowOf(key[1] as EventKey, after)!);
      }
    }
    for (const { key, before, after } of changes) {
      if (!isIndex(key) || after === null) continue;
      if (before !== null) this.#wrong(key, "was written twice");
      this.#block(key, after as string, made, named);
    }
    for (const [key, { tenant, partner }] of made) {
      for (const [family, owner] of [[FAMILY.tenantIndex, tenant], [FAMILY.partnerIndex, partner]]) {
        if (owner !== null && !named.has(`${String(family)} ${key}`)) {
          this.facts.violated("O1", `event ${key} is in no block of ${owner}`);
        }
      }
    }
  }

  #block(key: KvKey, text: string, made: Map<string, EventRow>, named: Set<string>): void {
    const block: EventBlock = JSON.parse(text), keys = keysOf(key, block);
    if (keys[0] !== key[2]) this.#wrong(key, "does not begin with its own event");
    if (new TextEncoder().encode(text).length > MAX_BYTES) this.#wrong(key, "is too large");
    for (const column of [block.types, block.identities, block.owners]) {
      if (column.length !== 1 && column.length !== keys.length) {
        this.#wrong(key, "has a column of odd length");
      }
    }
    const at = <T>(column: T[], i: number) => column[column.length === 1 ? 0 : i];
    for (const [i, event] of keys.entries()) {
      const row = made.get(event), name = `${String(key[0])} ${event}`;
      if (i > 0 && event <= keys[i - 1]!) this.#wrong(key, "is out of order");
      if (named.has(name)) this.#wrong(key, `names ${event}, and so does another`);
      named.add(name);
      if (row === undefined) this.#wrong(key, `names ${event}, which its commit did not make`);
      else if (key[1] !== (key[0] === FAMILY.tenantIndex ? row.tenant : row.partner)) {
        this.facts.violated("S1", `${key.join(" ")} names ${event} of another`);
      } else if (
        at(block.types, i) !== row.type || at(block.identities, i) !== row.identity ||
        at(block.owners, i) !== row.owner
      ) this.#wrong(key, `tells of ${event} what is not so`);
    }
  }

  #wrong(key: KvKey, what: string): void {
    this.facts.violated("O1", `the index row ${key.join(" ")} ${what}`);
  }
}

/** Every event there is must be named once by each index that is to name it, and nothing else be named. */
export function checkIndex(facts: Facts, rows: Iterable<{ key: KvKey; value: unknown }>): void {
  const counts = new Map<string, number>();
  for (const { key, value } of rows) {
    for (const event of keysOf(key, JSON.parse(value as string))) {
      const name = `${String(key[0])} ${String(key[1])} ${event}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  for (const { key, tenant, partner } of facts.events.values()) {
    for (const [family, owner] of [[FAMILY.tenantIndex, tenant], [FAMILY.partnerIndex, partner]]) {
      if (owner === null) continue;
      const name = `${String(family)} ${owner} ${key}`, count = counts.get(name) ?? 0;
      counts.delete(name);
      if (count !== 1) facts.violated("O1", `${name} is named ${count} times`);
    }
  }
  for (const name of counts.keys()) facts.violated("O1", `${name} is named and was never made`);
}

const isIndex = (key: KvKey): boolean => key[0] === FAMILY.tenantIndex || key[0] === FAMILY.partnerIndex;

function keysOf(key: KvKey, { keys }: EventBlock): string[] {
  const bucket = (key[2] as string).slice(0, BUCKET);
  return Array.from({ length: keys.length / TAIL }, (_, i) => bucket + keys.slice(i * TAIL, (i + 1) * TAIL));
}

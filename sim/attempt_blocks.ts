/**
 * Attempts that share a row: a block holds first attempts that succeeded, of one endpoint and one bucket of time; pointers name those
 * whose ids do not follow from their events, in the bucket of the events. Where something leads to attempts, its commit writes the
 * bucket's mark (D1). All is read here by the letter of its format, not by the code under test.
 */
import { type DeliveryId, type EndpointId, type EventKey, firstDelivery, ulidTime } from "../lib/ids.ts";
import type { AttemptBlock, AttemptPointers, AttemptRow } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { type Changes, type Facts, FAMILY } from "./facts.ts";

const MAX_BYTES = 60_000;
const PREFIX = "dlv_", BUCKET = 9, TAIL = 17, ULID = 26;

const parts = (text: string, chars: number): string[] =>
  Array.from({ length: text.length / chars }, (_, i) => text.slice(i * chars, (i + 1) * chars));

export class AttemptBlocks {
  constructor(readonly facts: Facts) {}

  /** The same changes with each attempt as a row of its own, the pair of each that pointers name as another, and no marks. */
  told(changes: Changes): Changes {
    return changes.flatMap((change) => {
      const { key, before, after } = change;
      if (key[0] !== FAMILY.attempt || after === null || typeof after === "object") return [change];
      if (after === true) return [];
      if (before !== null) this.#wrong(key, "was written twice");
      const text = after as string, position = key[2] as string;
      if (new TextEncoder().encode(text).length > MAX_BYTES) this.#wrong(key, "is too large");
      if (position.endsWith("-")) {
        this.#mustBeMarked(key, position.slice(0, PREFIX.length + BUCKET), changes);
        return this.#pointers(key, JSON.parse(text), changes);
      }
      const block: AttemptBlock = JSON.parse(text), rows = this.#rows(key, block);
      if (block.ends === undefined) {
        this.#mustBeMarked(key, rows[0]!.id.slice(0, PREFIX.length + BUCKET), changes);
      }
      this.facts.d.tally.count(block.ends === undefined ? "recorded_in_a_block" : "recorded_in_a_late_block");
      return rows.map((row) => ({ key: [key[0]!, key[1]!, row.id], before: null, after: row }));
    });
  }

  #mustBeMarked(key: KvKey, mark: string, changes: Changes): void {
    const marks = (one: KvKey) => one[0] === FAMILY.attempt && one[1] === key[1] && one[2] === mark;
    if (changes.some((one) => marks(one.key) && one.after === true)) return;
    this.#wrong(key, "came without its bucket's mark");
  }

  #pointers(key: KvKey, { of, at }: AttemptPointers, changes: Changes): Changes {
    const bucket = (key[2] as string).slice(PREFIX.length, PREFIX.length + BUCKET), ids = parts(at, ULID);
    this.facts.d.tally.count("recorded_by_pointers");
    return parts(of, TAIL).map((tail, i) => {
      const event = bucket + tail, id = PREFIX + ids[i]!;
      if (i === 0 && key[2] !== `${PREFIX}${event}-`) this.#wrong(key, "does not begin with its own event");
      if (
        changes.some((one) => one.key[0] === FAMILY.pair && one.key[1] === key[1] && one.key[2] === event)
      ) {
        this.#wrong(key, `names ${event}, and so does its pair`);
      }
      const pair = { status: "succeeded", attempt: 1, first: 1, succeeded: true, dead: false, ids: [id] };
      return { key: [FAMILY.pair!, key[1]!, event], before: null, after: pair };
    });
  }

  #rows(key: KvKey, block: AttemptBlock): AttemptRow[] {
    const { ends, ids, types, tenants, http, took, lags } = block;
    const events = parts(block.events, ends === undefined ? TAIL : ULID), count = events.length;
    for (const column of [ids, types, tenants, http, took, lags]) {
      if (column.length !== 1 && column.length !== count) this.#wrong(key, "has a column of odd length");
    }
    const at = <T>(column: T[], i: number) => column[column.length === 1 ? 0 : i]!;
    const bucket = (key[2] as string).slice(PREFIX.length, PREFIX.length + BUCKET);
    const rows = events.map((name, i): AttemptRow => {
      const event = (ends === undefined ? bucket + name : name) as EventKey;
      const id = ends === undefined
        ? firstDelivery(key[1] as EndpointId, event)
        : PREFIX + bucket + parts(ends, TAIL)[i]! as DeliveryId;
      const known = this.facts.events.get(event),
        event_id = at(ids, i) ?? `evt_${event}` as AttemptRow["event_id"];
      if (known?.id !== event_id || known.type !== at(types, i) || known.tenant !== at(tenants, i)) {
        this.#wrong(key, `tells of ${event} what is not so`);
      }
      return {
        ...{ id, event, event_id, event_type: at(types, i) },
        ...{ tenant_id: at(tenants, i), attempt: 1, first_attempt: 1, status: "succeeded", error: null },
        ...{ http_status: at(http, i), duration_ms: at(took, i), next_attempt_at: null },
        created_at: ulidTime(ends === undefined ? event : id) + at(lags, i),
      };
    });
    if (key[2] !== rows[0]!.id + "+") this.#wrong(key, "does not begin with its own attempt");
    if (rows.some((row, i) => i > 0 && row.id <= rows[i - 1]!.id)) this.#wrong(key, "is out of order");
    return rows;
  }

  #wrong(key: KvKey, what: string): void {
    this.facts.violated("D1", `the block of attempts ${key.join(" ")} ${what}`);
  }
}

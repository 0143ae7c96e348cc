/**
 * Attempts that share a row: a block holds first attempts that succeeded, of one endpoint and one bucket of time, and comes with its
 * bucket's mark (D1). Blocks are read here by the letter of their format, not by the code under test.
 */
import { type EndpointId, type EventKey, firstDelivery, ulidTime } from "../lib/ids.ts";
import type { AttemptBlock, AttemptRow } from "../lib/keys.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { type Changes, type Facts, FAMILY } from "./facts.ts";

const MAX_BYTES = 60_000;
const PREFIX = "dlv_", BUCKET = 9, TAIL = 17;

export class AttemptBlocks {
  constructor(readonly facts: Facts) {}

  /** The same changes with each attempt as a row of its own, and no marks. */
  told(changes: Changes): Changes {
    if (!changes.some(({ key, after }) => key[0] === FAMILY.attempt && typeof after === "string")) {
      return changes;
    }
    return changes.flatMap((change) => {
      const { key, before, after } = change;
      if (key[0] !== FAMILY.attempt || after === null || typeof after === "object") return [change];
      if (after === true) return [];
      if (before !== null) this.#wrong(key, "was written twice");
      const rows = this.#rows(key, after as string);
      const mark = PREFIX + rows[0]!.event.slice(0, BUCKET);
      if (!changes.some((one) => one.key[1] === key[1] && one.key[2] === mark && one.after === true)) {
        this.#wrong(key, "came without its bucket's mark");
      }
      this.facts.d.tally.count("recorded_in_a_block");
      return rows.map((row) => ({ key: [key[0]!, key[1]!, row.id], before: null, after: row }));
    });
  }

  #rows(key: KvKey, text: string): AttemptRow[] {
    const block: AttemptBlock = JSON.parse(text), count = block.events.length / TAIL;
    if (new TextEncoder().encode(text).length > MAX_BYTES) this.#wrong(key, "is too large");
    const { ids, types, tenants, http, took, lags } = block;
    for (const column of [ids, types, tenants, http, took, lags]) {
      if (column.length !== 1 && column.length !== count) this.#wrong(key, "has a column of odd length");
    }
    const at = <T>(column: T[], i: number) => column[column.length === 1 ? 0 : i]!;
    const bucket = (key[2] as string).slice(PREFIX.length, PREFIX.length + BUCKET);
    const rows = Array.from({ length: count }, (_, i): AttemptRow => {
      const event = bucket + block.events.slice(i * TAIL, (i + 1) * TAIL) as EventKey;
      const known = this.facts.events.get(event),
        event_id = at(ids, i) ?? `evt_${event}` as AttemptRow["event_id"];
      if (known?.id !== event_id || known.type !== at(types, i) || known.tenant !== at(tenants, i)) {
        this.#wrong(key, `tells of ${event} what is not so`);
      }
      return {
        ...{ id: firstDelivery(key[1] as EndpointId, event), event, event_id, event_type: at(types, i) },
        ...{ tenant_id: at(tenants, i), attempt: 1, first_attempt: 1, status: "succeeded", error: null },
        ...{ http_status: at(http, i), duration_ms: at(took, i), next_attempt_at: null },
        created_at: ulidTime(event) + at(lags, i),
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

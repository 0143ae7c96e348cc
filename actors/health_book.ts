/** Health rows of the endpoints this isolate delivers to, with the version each was read or written at. */
import type { EndpointId } from "../lib/ids.ts";
import { type HealthRow, keys } from "../lib/keys.ts";
import type { Check, Kv, Write } from "../lib/edge/kv.ts";
import { getAll } from "./event_store.ts";
import { healthy, worthWriting } from "./health.ts";

const MAX_ROWS = 50_000;

interface Page {
  row: HealthRow;
  versionstamp: string | null;
}

export class HealthBook {
  #pages = new Map<EndpointId, Page>();
  #written = new Map<EndpointId, HealthRow>();

  constructor(readonly kv: Kv) {}

  /** Reads what is not known yet. */
  async load(endpoints: Iterable<EndpointId>): Promise<void> {
    if (this.#pages.size > MAX_ROWS) this.#pages.clear();
    const missing = [...endpoints].filter((endpoint) => !this.#pages.has(endpoint));
    if (missing.length === 0) return;
    const rows = await getAll<HealthRow>(this.kv, missing.map(keys.health));
    missing.forEach((endpoint, i) => {
      const { value, versionstamp } = rows[i]!;
      this.#pages.set(endpoint, { row: value ?? healthy, versionstamp });
    });
  }

  of(endpoint: EndpointId): HealthRow {
    return this.#pages.get(endpoint)?.row ?? healthy;
  }

  /**
   * The rows to write for the new states. A streak is counted under a check; a success ends it whatever it was, so it needs none
   * (a commit has a hundred checks and may record more endpoints than that). `keep` or `forget` ends the try.
   */
  write(states: ReadonlyMap<EndpointId, HealthRow>): { checks: Check[]; writes: Write[] } {
    const checks: Check[] = [], writes: Write[] = [];
    this.#written.clear();
    for (const [endpoint, row] of states) {
      const page = this.#pages.get(endpoint);
      if (page === undefined || !worthWriting(page.row, row)) continue;
      if (row.consecutive_failures > 0) {
        checks.push({ key: keys.health(endpoint), versionstamp: page.versionstamp });
      }
      writes.push({ op: "set", key: keys.health(endpoint), value: row });
      this.#written.set(endpoint, row);
    }
    return { checks, writes };
  }

  keep(versionstamp: string): void {
    for (const [endpoint, row] of this.#written) this.#pages.set(endpoint, { row, versionstamp });
    this.#written.clear();
  }

  forget(endpoints: Iterable<EndpointId>): void {
    for (const endpoint of endpoints) this.#pages.delete(endpoint);
    this.#written.clear();
  }
}

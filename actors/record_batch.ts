/** One flush of the recorder: which held jobs and settlements it takes, and the unit it becomes. */
import { invariant, unreachable } from "../lib/errors.ts";
import { type EndpointId, firstDelivery, idAt } from "../lib/ids.ts";
import { type AttemptRow, type EndpointRow, type HealthRow, keys } from "../lib/keys.ts";
import { HANDOVER_AFTER_MS, MAX_ATTEMPTS, MAX_CHECKS_PER_COMMIT, SECOND_MS } from "../lib/limits.ts";
import type { Unit } from "../lib/edge/committer.ts";
import type { Check, Kv, Write } from "../lib/edge/kv.ts";
import { attemptRow, isHotFirst, type Recorded } from "./attempt_row.ts";
import { attemptWrite, type FirstAttempts, firstWrites, pairWrite } from "./attempt_store.ts";
import { getAll, type StoredEvent } from "./event_store.ts";
import type { HealthBook } from "./health_book.ts";
import { disable, judge, observe } from "./health.ts";
import type { Lanes } from "./lanes.ts";
import { ABSENT, isUntouched, readPairs, recordChecks } from "./pair_state.ts";
import { RecordJobs, type RecordJobsDeps } from "./record_jobs.ts";
import type { Held, Settlement, Work } from "./work.ts";

export interface RecordDeps extends RecordJobsDeps {
  kv: Kv;
  hashKey: Uint8Array;
  /** When the attempt after the k-th failure of a run comes, ms from now; null after the last. */
  nextDelayMs(k: number, retryAfterMs?: number): number | null;
}

/** Far below the commit's limits, so that a flush shares its commit with appends. */
const MAX_SETTLEMENTS = 250;
const MAX_CHECKED = 70;
/** Left for the rows of endpoints' health and disabling. */
const CHECKS_TO_SPARE = 20;
/** So long after its event and its commit the first attempt of the hot path needs no check of the pair: `replay` keeps off it. */
const UNCHECKED_MS = HANDOVER_AFTER_MS + SECOND_MS;

/** A unit under construction. */
interface Draft {
  checks: Check[];
  writes: Write[];
  carry: StoredEvent[];
  /** First attempts that tell their pairs' states themselves, by endpoint. */
  firsts: Map<EndpointId, FirstAttempts>;
  health: Map<EndpointId, HealthRow>;
  book: HealthBook;
}

export class RecordBatch {
  /** The job rows of the last build. */
  jobs: RecordJobs;
  closed: Held[] = [];
  /** Endpoints the batch disables. */
  disabled: { endpoint: EndpointId; reason: "gone" | "failing" }[] = [];
  #taken: { held: Held; settlements: Settlement[]; handover: Work[]; close: boolean }[] = [];
  #results: { settlement: Settlement; dead: boolean }[] = [];
  #count = 0;
  #checked = 0;
  #failing = new Set<EndpointId>();
  #guards = new Set<string>();

  constructor(readonly d: RecordDeps) {
    this.jobs = new RecordJobs(d);
  }

  get full(): boolean {
    return this.#count >= MAX_SETTLEMENTS || this.#checked >= MAX_CHECKED;
  }

  /** More checks than one commit takes, now that each pair needs its own. */
  get overfull(): boolean {
    return this.#checked > MAX_CHECKS_PER_COMMIT - CHECKS_TO_SPARE;
  }

  get empty(): boolean {
    return this.#taken.length === 0;
  }

  /**
   * Takes what is settled of a job, as much as there is room for. With `lanes`, what is still open of it goes on in Deliver rows:
   * claimed ones for attempts under way, later ones for what waits.
   * @returns whether something is left for the next flush.
   */
  take(held: Held, lanes: Lanes<Work> | null): boolean {
    let count = 0;
    while (count < held.settled.length && !this.full) this.#weigh(held.settled[count++]!);
    const settlements = held.settled.splice(0, count);
    const handover: Work[] = [];
    if (lanes !== null && held.settled.length === 0) {
      for (const work of held.open) {
        if (this.full) break;
        this.#count++;
        const endpoint = work.target.row.id;
        if (work.started || !lanes.remove(work, endpoint)) handover.push(work);
        else if (held.open.delete(work)) {
          settlements.push({ kind: "later", work, due: lanes.later(endpoint, 1) });
        }
      }
    }
    const close = !held.opening && held.settled.length === 0 && held.open.size === handover.length;
    if (settlements.length > 0 || handover.length > 0 || close) {
      this.#checked++;
      if (close) this.#count += held.again.length;
      this.#taken.push({ held, settlements, handover, close });
    }
    return held.settled.length > 0 || (lanes !== null && held.open.size > handover.length);
  }

  /** Counts what a settlement adds to the commit: its pair is a check, an endpoint's streak one, and a disabling one. */
  #weigh(settlement: Settlement): void {
    const { work } = settlement;
    this.#count++;
    // Past the handover an attempt is no longer the only one there can be (D1): a replay or another fan-out may have been first. A
    // replay goes by the event's time, so that counts where the clock went on before the commit.
    const { takenAt } = work.held, since = Math.min(takenAt, work.event?.at ?? takenAt);
    if (this.d.now() - since > UNCHECKED_MS) work.pair ??= ABSENT;
    if (recorded(settlement)) this.#checked += newChecks(work, this.#guards).length;
    if (settlement.kind !== "failed") return;
    if (settlement.error === "status_410") this.#checked++;
    if (this.#failing.has(work.target.row.id)) return;
    this.#failing.add(work.target.row.id);
    this.#checked++;
  }

  /** Gives everything back to its job, as if it had not been taken; answers the jobs. */
  restore(): Held[] {
    for (const { held, settlements } of this.#taken) held.settled.unshift(...settlements);
    return this.helds();
  }

  helds(): Held[] {
    return this.#taken.map(({ held }) => held);
  }

  results(): { settlement: Settlement; dead: boolean }[] {
    return this.#results;
  }

  /** Endpoints whose health the batch touches. */
  endpoints(): Set<EndpointId> {
    const endpoints = new Set<EndpointId>();
    for (const { settlements } of this.#taken) {
      for (const { kind, work } of settlements) {
        if (kind === "succeeded" || kind === "failed") endpoints.add(work.target.row.id);
      }
    }
    return endpoints;
  }

  /** The unit for what was taken. May be called again after a check failed. */
  async build(book: HealthBook): Promise<Unit> {
    this.jobs = new RecordJobs(this.d);
    this.closed = [], this.disabled = [], this.#results = [];
    const b: Draft = { checks: [], writes: [], carry: [], firsts: new Map(), health: new Map(), book };
    const pairs = new Set<string>(), guards = new Set<string>();
    for (const { held, settlements, handover, close } of this.#taken) {
      b.checks.push({ key: held.key, versionstamp: held.versionstamp });
      for (const settlement of settlements) {
        const { work } = settlement;
        if (recorded(settlement)) {
          const name = `${work.target.row.id} ${work.item.event}`;
          if (pairs.has(name)) continue; // D1: two jobs for one pair ended together; the first one's result stands
          pairs.add(name);
          b.checks.push(...newChecks(work, guards));
        }
        switch (settlement.kind) {
          case "succeeded":
          case "failed":
          case "dead":
            await this.#attempted(settlement, b);
            break;
          case "parked":
            this.jobs.park(work);
            break;
          case "later":
            this.jobs.postpone(work.target.row.id, work.item, settlement.due);
            break;
          case "threw":
            this.jobs.threw(work);
            break;
          case "nothing":
            break;
          default:
            unreachable(settlement);
        }
      }
      this.jobs.handOver(held, handover);
      if (close) this.#close(held, b.writes);
    }
    this.jobs.end();
    for (const [endpoint, firsts] of b.firsts) b.writes.push(...firstWrites(endpoint, firsts));
    const rows = book.write(b.health);
    return {
      checks: [...b.checks, ...rows.checks],
      writes: [...b.writes, ...this.jobs.writes, ...rows.writes],
      carry: b.carry,
    };
  }

  /**
   * After a failed check: reads again, each pair now under a check of its own; drops what another run recorded; returns the jobs
   * whose claim is lost.
   */
  async lost(kv: Kv): Promise<Held[]> {
    const rows = await getAll(kv, this.#taken.map(({ held }) => held.key));
    const lost = this.#taken.filter(({ held }, i) => rows[i]!.versionstamp !== held.versionstamp).map((
      { held },
    ) => held);
    this.#taken = this.#taken.filter(({ held }) => !lost.includes(held));
    const works = this.#taken.flatMap(({ settlements }) => settlements.map(({ work }) => work));
    const tried = works.filter((work) => work.pair !== null);
    const guarded = tried.filter((work) => work.pair!.replays !== undefined);
    await readPairs(kv, tried);
    for (const work of guarded) this.#checked += recordChecks(work).length;
    for (const taken of this.#taken) {
      taken.settlements = taken.settlements.map((settlement) => {
        const { item, pair } = settlement.work;
        const superseded = pair?.row && (item.attempt <= pair.row.attempt || item.first < pair.row.first);
        return superseded && recorded(settlement) ? { kind: "nothing", work: settlement.work } : settlement;
      });
    }
    return lost;
  }

  async #attempted(settlement: Recorded, b: Draft): Promise<void> {
    const { work } = settlement;
    const { item, target } = work;
    const endpoint = target.row.id;
    const retryAfter = settlement.kind === "failed" ? settlement.retryAfterMs : undefined;
    const k = item.attempt - item.first + 1;
    invariant(k >= 1 && k <= MAX_ATTEMPTS, "D1");
    const delay = settlement.kind === "failed" ? this.d.nextDelayMs(k, retryAfter) : null;
    const next = delay === null ? null : this.d.now() + delay;
    const hot = isHotFirst(settlement);
    const id = hot ? firstDelivery(endpoint, item.event) : idAt(this.d.ids, "delivery", settlement.at);
    const row = attemptRow(settlement, id, next);
    // A first success that no pair row can be in the way of needs none itself (pair_state.ts).
    if (row.status === "succeeded" && (hot || isUntouched(work))) {
      const firsts = b.firsts.get(endpoint) ?? { named: [], late: [] };
      b.firsts.set(endpoint, firsts);
      firsts[hot ? "named" : "late"].push(row);
    } else {
      const before = work.pair?.row ?? null;
      b.writes.push(attemptWrite(endpoint, row), pairWrite(endpoint, item.event, before, row));
    }
    this.#results.push({ settlement, dead: row.status === "dead" && settlement.kind === "failed" });
    if (next !== null) this.jobs.postpone(endpoint, { ...item, attempt: item.attempt + 1 }, next);
    if (settlement.kind === "dead") return;
    const health = observe(b.health.get(endpoint) ?? b.book.of(endpoint), settlement);
    b.health.set(endpoint, health);
    const reason = judge(health, settlement, this.d.now());
    if (reason !== null) await this.#disable(work, reason, row, b);
  }

  /** Disables the endpoint in this commit, unless it is already, here or in the store. */
  async #disable(work: Work, reason: "gone" | "failing", trigger: AttemptRow, b: Draft): Promise<void> {
    const key = keys.endpoint(work.target.row.id);
    if (b.writes.some((write) => write.op === "set" && write.key[0] === key[0] && write.key[1] === key[1])) {
      return;
    }
    const { value, versionstamp } = await this.d.kv.get<EndpointRow>(key);
    if (value === null || !value.enabled || value.deleted_at !== null) return;
    if (b.checks.length > MAX_CHECKS_PER_COMMIT - CHECKS_TO_SPARE) return; // too many at once: the next failure disables it
    b.checks.push({ key, versionstamp });
    const cause = { createdAt: trigger.created_at, event: trigger.event_id, attempt: trigger.attempt };
    const { writes, event } = disable({ ...work.target, row: value }, reason, cause, this.d);
    b.writes.push(...writes);
    b.carry.push(event);
    this.disabled.push({ endpoint: value.id, reason });
  }

  #close(held: Held, writes: Write[]): void {
    writes.push({ op: "delete", key: held.key });
    for (const event of held.platform) writes.push({ op: "delete", key: keys.platformPending(event) });
    for (const job of held.again) this.jobs.again(job);
    this.closed.push(held);
  }
}

/** The checks of a work, but the one it shares with others of its endpoint if `said` has it; adds that. */
function newChecks(work: Work, said: Set<string>): Check[] {
  const replays = work.pair?.replays;
  const shared = replays !== undefined && said.size === said.add(`${work.target.row.id} ${replays}`).size;
  return shared ? [] : recordChecks(work);
}

/** Whether the settlement writes an attempt row. */
const recorded = ({ kind }: Settlement): boolean =>
  kind === "succeeded" || kind === "failed" || kind === "dead";

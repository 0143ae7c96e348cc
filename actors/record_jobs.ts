/**
 * The job rows of one record commit: what goes on later, what is handed over while under way, what is parked, what threw. Each
 * row is written in the commit that lets the old one go (J1, J2).
 */
import type { EndpointId, Ids, JobId } from "../lib/ids.ts";
import { type DeliverItem, type DeliverJob, type Job, keys } from "../lib/keys.ts";
import {
  FANOUT_BACKOFF_MAX_MS,
  FANOUT_BACKOFF_MIN_MS,
  JOB_RETRY_MS,
  MAX_ITEMS_PER_JOB,
  MAX_JOB_THROWS,
} from "../lib/limits.ts";
import { dueOf, type Jobs } from "../lib/edge/jobs.ts";
import type { Write } from "../lib/edge/kv.ts";
import { type Held, hold, type Work } from "./work.ts";

export interface RecordJobsDeps {
  jobs: Jobs;
  now(): number;
  ids: Ids;
}

/** Items whose due times lie this close become one job. */
const SAME_DUE_MS = 100;

export class RecordJobs {
  readonly writes: Write[] = [];
  readonly dues: number[] = [];
  /** Works that go on under a job of their own, once the commit is made. */
  readonly moved: { from: Held; to: Held }[] = [];
  #later = new Map<string, { endpoint: EndpointId; due: number; items: DeliverItem[] }>();
  #undo: (() => void)[] = [];

  constructor(readonly d: RecordJobsDeps) {}

  /** Items of one endpoint that are due together share a job; `end` writes them. */
  postpone(endpoint: EndpointId, item: DeliverItem, due: number): void {
    const name = `${endpoint} ${Math.floor(due / SAME_DUE_MS)}`;
    let group = this.#later.get(name);
    if (group === undefined || group.items.length === MAX_ITEMS_PER_JOB) {
      if (group !== undefined) this.#write(deliverJob(endpoint, group.items), group.due);
      this.#later.set(name, group = { endpoint, due, items: [] });
    }
    group.items.push(item);
    group.due = Math.max(group.due, due);
  }

  end(): void {
    for (const { endpoint, items, due } of this.#later.values()) {
      this.#write(deliverJob(endpoint, items), due);
    }
    this.#later.clear();
  }

  park(work: Work): void {
    const key = keys.parked(work.target.partner!, this.d.ids.ulid() as JobId);
    this.writes.push({ op: "set", key, value: deliverJob(work.target.row.id, [work.item]) });
  }

  /** Open attempts get claimed Deliver rows of their own, so that a slow endpoint holds up no Fanout job. */
  handOver(held: Held, works: readonly Work[]): void {
    const byEndpoint = Map.groupBy(works, (work) => work.target.row.id);
    for (const [endpoint, all] of byEndpoint) {
      for (let i = 0; i < all.length; i += MAX_ITEMS_PER_JOB) {
        const some = all.slice(i, i + MAX_ITEMS_PER_JOB);
        const { row, writes, undo } = this.d.jobs.writeClaimed(
          deliverJob(endpoint, some.map((work) => work.item)),
        );
        this.writes.push(...writes);
        this.#undo.push(undo);
        const claim = { key: row.key, versionstamp: "", until: row.due, job: row.job as DeliverJob };
        this.moved.push({
          from: held,
          to: { ...hold(claim, held.takenAt), opening: false, open: new Set(some) },
        });
      }
    }
  }

  /** A work whose processing threw goes on alone. */
  threw(work: Work): void {
    const throws = (work.held.job.throws ?? 0) + 1;
    this.again({ ...deliverJob(work.target.row.id, [work.item]), throws });
  }

  /** A job whose processing threw: back-off of 30 s, for a Fanout job doubling to 5 min; dead-lettered after 13 throws. */
  again(job: Job): void {
    const throws = job.throws ?? 1;
    if (throws < MAX_JOB_THROWS) return this.#write(job, this.d.now() + backoffMs(job.kind, throws));
    const id = this.d.ids.next("deadLetter");
    const error = job.kind === "fanout" ? "fan_out_failed" : "deliver_failed";
    this.writes.push({
      op: "set",
      key: keys.deadLetter(id),
      value: { id, job, error, created_at: this.d.now() },
    });
  }

  /** Takes back the doorbells of a build that was not committed. */
  undo(): void {
    for (const undo of this.#undo) undo();
  }

  #write(job: Job, due: number): void {
    const written = this.d.jobs.write(job, due);
    this.writes.push(...written.writes);
    this.#undo.push(written.undo);
    this.dues.push(dueOf(written.row.key));
  }
}

const deliverJob = (endpoint: EndpointId, items: DeliverItem[]): DeliverJob => ({
  v: 1,
  kind: "deliver",
  endpoint,
  items,
});

export function backoffMs(kind: Job["kind"], throws: number): number {
  return kind === "deliver"
    ? JOB_RETRY_MS
    : Math.min(FANOUT_BACKOFF_MIN_MS * 2 ** (throws - 1), FANOUT_BACKOFF_MAX_MS);
}

/** A pump over a real KV, committer and job rows, with the clock and the room in the test's hands. */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { makeCommitter } from "../../lib/edge/committer.ts";
import { type Claim, dueOf, makeJobs } from "../../lib/edge/jobs.ts";
import { type Admission, Pump } from "../../lib/edge/pump.ts";
import type { EventKey, JobId } from "../../lib/ids.ts";
import { type FanoutJob, type Job, keys } from "../../lib/keys.ts";
import { ManualTime } from "../support/manual_time.ts";
import { watch } from "../support/watched_kv.ts";

export const job = (name: string): FanoutJob => ({ v: 1, kind: "fanout", events: [name as EventKey] });
const nameOf = (one: Job): string => one.kind === "fanout" ? String(one.events[0]) : one.endpoint;

export type Bench = Awaited<ReturnType<typeof bench>>;

async function bench(store: Deno.Kv, options: { shards?: number; doorbell?: boolean } = {}) {
  const time = new ManualTime(), { timers, pending } = time.group(), kv = watch(store);
  let n = 0;
  const ulid = () => `${String(n++).padStart(6, "0")}`;
  const jobs = makeJobs({
    now: () => time.now,
    ulid,
    instance: "me",
    shards: 1,
    doorbell: false,
    ...options,
  });
  const committer = makeCommitter(kv, { maxInFlight: 1 });
  const asked: string[] = [], taken: Claim[] = [], refused: string[] = [], failed: string[] = [];
  const at = { admit: (_: string): Admission => "start", taken: (_: string): void => {} };
  const pump = new Pump({
    kv,
    committer,
    jobs,
    now: () => time.now,
    timers,
    admit: (one) => (asked.push(nameOf(one)), at.admit(nameOf(one))),
    take: (claim) => (taken.push(claim), at.taken(nameOf(claim.job))),
    refuse: (one) => void refused.push(nameOf(one)),
    failed: (what) => void failed.push(what),
  });
  return {
    time,
    kv,
    jobs,
    pump,
    pending,
    asked,
    taken,
    refused,
    failed,
    at,
    names: () => taken.map((claim) => nameOf(claim.job)),
    put: (name: string, due: number, shard = 0) =>
      store.set(keys.job(shard, due, `J-${name}` as JobId), job(name)),
    putJob: (one: Job, due: number, id: string) => store.set(keys.job(0, due, id as JobId), one),
    stored: async () => {
      const rows: { due: number; job: Job }[] = [];
      for await (const { key, value } of store.list<Job>({ prefix: keys.jobs() })) {
        rows.push({ due: dueOf(key), job: value });
      }
      return rows;
    },
    rows: async () => {
      const rows: [name: string, due: number, by: string | undefined][] = [];
      for await (const { key, value } of store.list<Job>({ prefix: keys.jobs() })) {
        rows.push([nameOf(value), dueOf(key), value.by]);
      }
      return rows;
    },
    async settle() {
      for (let quiet = 0; quiet < 5;) {
        await new Promise((resolve) => setImmediate(resolve));
        quiet = kv.busy > 0 ? 0 : quiet + 1;
      }
    },
    async pass(ms: number) {
      const end = time.now + ms;
      await this.settle();
      while (time.step(end)) await this.settle();
      time.now = end;
      await this.settle();
    },
  };
}

/** Runs a body over a bench of its own; the pump is stopped at the end and leaves no timer. */
export const withPump = (body: (b: Bench) => Promise<void>, options = {}) => async () => {
  const store = await Deno.openKv(":memory:");
  try {
    const b = await bench(store, options);
    await body(b);
    await b.pump.stop();
    assert.equal(b.pending(), 0, "a stopped pump leaves no timer");
  } finally {
    store.close();
  }
};

/**
 * The sweep, every minute: whatever the faster drivers missed. Due rows, claims of dead instances, platform events never fanned
 * out ("Platform events", the safety net), parked deliveries that may go on or have left their window.
 */
import { type EventKey, ulidTime } from "../lib/ids.ts";
import { type FanoutJob, keys } from "../lib/keys.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../lib/limits.ts";
import type { Committer } from "../lib/edge/committer.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Kv } from "../lib/edge/kv.ts";
import type { Directory } from "./directory.ts";
import { loadEvent, type StoredEvent } from "./event_store.ts";
import { unpark } from "./replay.ts";

export interface SweepDeps {
  kv: Kv;
  committer: Committer;
  jobs: Jobs;
  now(): number;
  directory: Directory;
  windowOf(event: StoredEvent): Promise<number>;
  /** Frees the claims of instances that died. */
  recover(): Promise<void>;
  poke(): void;
}

const MAX_PENDING = 100;

export async function sweep(d: SweepDeps): Promise<void> {
  await d.recover();
  await refanPlatformEvents(d);
  await d.directory.refresh();
  await unpark(keys.parkedAll(), d, async (job) => {
    const target = await d.directory.endpoint(job.endpoint);
    if (target === null || !target.held || target.row.deleted_at !== null) return true;
    const key = job.items[0]!.event;
    if (d.now() - ulidTime(key) < DAY_MS) return false; // no retention is shorter: nothing to read
    const event = await loadEvent(d.kv, key);
    return event === null || event.body === null || d.now() > event.at + await d.windowOf(event);
  });
  d.poke();
}

/** Platform events of the last hour that nobody fanned out get a Fanout job; a repeat is absorbed by the pair state. */
async function refanPlatformEvents(d: SweepDeps): Promise<void> {
  const stuck: EventKey[] = [];
  for await (const row of d.kv.list({ prefix: keys.platformPendings() }, { limit: MAX_PENDING })) {
    const key = row.key[1] as EventKey;
    const age = d.now() - ulidTime(key);
    if (age > MINUTE_MS && age < HOUR_MS) stuck.push(key);
    if (age >= HOUR_MS) {
      const checks = [{ key: row.key, versionstamp: row.versionstamp }];
      await d.committer.commit({ checks, writes: [{ op: "delete", key: row.key }] });
    }
  }
  if (stuck.length === 0) return;
  const job: FanoutJob = { v: 1, kind: "fanout", events: stuck };
  await d.committer.commit({ checks: [], writes: d.jobs.write(job, d.now()).writes });
}

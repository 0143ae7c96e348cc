/**
 * The running system without its HTTP side: owners, pipeline, drivers. `main.ts`, the demo, the bench and the tests build it
 * from their own ports; nothing here reaches for the clock, the network or a file.
 */

import type { EndpointId, Id, PartnerId } from "../lib/ids.ts";
import { type DeadLetter, type EndpointRow, keys, type TenantRow } from "../lib/keys.ts";
import { DAY_MS, REPLAY_WINDOW_MS, SECOND_MS } from "../lib/limits.ts";
import { type Committer, makeCommitter } from "../lib/edge/committer.ts";
import type { GuardedHttp } from "../lib/edge/http.ts";
import { Heartbeat } from "../lib/edge/heartbeat.ts";
import { makeJobs } from "../lib/edge/jobs.ts";
import type { Kv, Write } from "../lib/edge/kv.ts";
import type { Ports } from "../lib/edge/ports.ts";
import { Cache } from "./cache.ts";
import { remindDomains } from "./domain_monitor.ts";
import { runDueJobs } from "./job_runner.ts";
import { retireDueAddresses } from "./mailbox/addresses.ts";
import { makeDirectory } from "./directory.ts";
import type { StoredEvent } from "./event_store.ts";
import { Flow, type FlowObserver } from "./flow.ts";
import { makeNotifier } from "./notifier.ts";
import { makeOwners } from "./owner.ts";
import { previewReplay, replay, type Selection, unpark } from "./replay.ts";
import { retain } from "./retention.ts";
import { makeSecrets } from "./secrets.ts";
import { sweep } from "./sweep.ts";
import { testDelivery } from "./test_delivery.ts";
import { trace } from "./trace.ts";

export interface SystemDeps {
  kv: Kv;
  ports: Pick<Ports, "now" | "clock" | "timers" | "random" | "ids">;
  http: GuardedHttp;
  openSecret(sealed: string, aad: string): Promise<Uint8Array>;
  hashKey: Uint8Array;
  userAgent: string;
  /** Commits under way at once. */
  commitsInFlight: number;
  jobShards: number;
  maxInFlight: number;
  maxPerEndpoint: number;
  nextDelayMs(k: number, retryAfterMs?: number): number | null;
  doorbell: boolean;
  hotHandOff: boolean;
  /** `PM_NOTIFICATIONS`: false hands nothing to the Notifier. Default true. */
  notifications?: boolean;
  observer: FlowObserver;
}

export type System = ReturnType<typeof makeSystem>;

const TENANT_CACHE_MS = 5 * SECOND_MS;
const PREFERENCES = keys.notificationPrefs("" as TenantRow["id"])[0];

export function makeSystem(deps: SystemDeps) {
  const { kv, ports } = deps;
  const { now, timers, ids } = ports;
  const directory = makeDirectory({ kv, now, clock: ports.clock });
  const combine = (events: unknown[]) => flow.combine(events as StoredEvent[]);
  const roomOf = (event: unknown) => flow.roomOf(event as StoredEvent);
  const committer = makeCommitter(kv, { maxInFlight: deps.commitsInFlight, combine, roomOf });
  const jobs = makeJobs({
    now,
    ulid: ids.ulid,
    instance: ids.ulid(),
    shards: deps.jobShards,
    doorbell: deps.doorbell,
  });
  const owners = makeOwners({ kv, committer, now, ids });
  const notifier = makeNotifier({
    kv,
    committer,
    now,
    ids,
    failed: (event, error) => deps.observer.handOffFailed?.(event, error),
  });
  const observer: FlowObserver = deps.notifications === false ? deps.observer : {
    ...deps.observer,
    fanned(event, since) {
      deps.observer.fanned(event, since);
      notifier.take(event);
    },
  };
  const secrets = makeSecrets(deps.openSecret, () => observer.failed("secret", new Error("does not open")));
  const tenants = new Cache<string, number>(now, TENANT_CACHE_MS);

  /** How long an event stays replayable, from `occurred_at` (R1). */
  function windowOf({ tenant }: StoredEvent): Promise<number> {
    if (tenant === null) return Promise.resolve(REPLAY_WINDOW_MS);
    return tenants.get(tenant, async () => {
      const days = (await kv.get<TenantRow>(keys.tenant(tenant))).value?.policy.retention.events_days;
      return Math.min(REPLAY_WINDOW_MS, (days ?? Infinity) * DAY_MS);
    });
  }

  const shared = { ...deps, kv, committer, jobs, now, timers, ids, directory, secrets, windowOf, observer };
  const flow = new Flow(shared);
  const poke = () => flow.pump.poke();
  const heartbeat = new Heartbeat({ ...shared, freed: poke, failed: observer.failed });
  const pipeline = { ...shared, poke };

  /**
   * For changes of tenants, partners and endpoints: what this isolate caches of them is dropped, and what they left to do is
   * looked at, once they are durable.
   */
  const watched: Committer = {
    idle: committer.idle,
    async commit(unit) {
      const settled = await committer.commit(unit);
      if (settled.ok) unit.writes.forEach(forget);
      return settled;
    },
  };

  function forget(write: Write): void {
    if (write.op === "enqueue") return;
    if (write.key[0] === keys.jobs()[0]) poke(); // a change with a job of its own: nobody else knows of it
    if (write.key[0] === keys.endpointsRevision()[0]) directory.invalidate();
    if (write.key[0] === PREFERENCES) notifier.forget(write.key[1] as TenantRow["id"]);
    if (write.key[0] === keys.tenants()[0]) {
      owners.forgetTenant(write.key[1] as TenantRow["id"]);
      tenants.clear();
    }
  }

  return {
    kv,
    owners,
    flow,
    directory,
    committer: watched,
    jobs,
    deliveries: {
      test: (endpoint: EndpointId, extra?: Write[]) => testDelivery(endpoint, pipeline, extra),
      replay: (endpoint: EndpointId, selection: Selection, extra?: Write[]) =>
        replay(endpoint, selection, pipeline, extra),
      previewReplay: (endpoint: EndpointId, selection: Selection) =>
        previewReplay(endpoint, selection, pipeline),
      unpark: async (partner: PartnerId) => void await unpark(keys.parkedOf(partner), pipeline),
      trace: (event: StoredEvent, shown: (endpoint: EndpointRow) => boolean) => trace(event, shown, pipeline),
      redrive,
    },
    /** What the queue's doorbell does: look, and return at once. */
    doorbell: poke,
    /** Every minute. One chore that fails holds up no other. */
    async sweep(): Promise<void> {
      const chores = {
        sweep: () => sweep({ ...pipeline, recover: () => heartbeat.recover() }),
        jobs: () => runDueJobs({ kv, owners, now }),
        domains: () => remindDomains({ kv, owners, now }),
        addresses: () => retireDueAddresses({ kv, owners, now }),
        notifications: () => notifier.sweep(),
        retention: () => retain({ kv, committer, now }),
      };
      for (const [name, chore] of Object.entries(chores)) {
        await Promise.resolve(chore()).catch((error) => observer.failed(name, error));
      }
    },
    async start(): Promise<void> {
      await heartbeat.start();
      await heartbeat.recover();
      flow.start();
    },
    /** No new claims, attempts in flight finish within `graceMs`, the rest is left due. */
    async stop(graceMs: number): Promise<void> {
      await flow.stop(graceMs);
      await notifier.idle();
      await committer.idle();
      await heartbeat.stop();
    },
  };

  /** Puts a dead letter's job back, with a clean count; null when there is no such item. `extra` rows (audit) ride along. */
  async function redrive(id: Id<"deadLetter">, extra: Write[] = []): Promise<DeadLetter | null> {
    const { value, versionstamp } = await kv.get<DeadLetter>(keys.deadLetter(id));
    if (value === null) return null;
    const { throws: _, ...job } = value.job;
    const { writes } = jobs.write(job as DeadLetter["job"], now());
    const checks = [{ key: keys.deadLetter(id), versionstamp }];
    const settled = await committer.commit({
      checks,
      writes: [{ op: "delete", key: keys.deadLetter(id) }, ...writes, ...extra],
    });
    poke();
    return settled.ok ? value : null;
  }
}

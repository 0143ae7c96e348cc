/**
 * One isolate of a simulated world: a running system with its own handle, ids and timers. When it is killed nothing of it goes
 * on: its timers are silent, its promises never settle, its answers are lost.
 */
import { makeSystem, type System } from "../actors/system.ts";
import type { EndpointDeps } from "../actors/endpoints.ts";
import type { TenancyDeps } from "../actors/tenancy.ts";
import { ApiError } from "../lib/errors.ts";
import { makeGuardedHttp } from "../lib/edge/http.ts";
import type { Timers } from "../lib/edge/ports.ts";
import type { Sealer } from "../lib/edge/seal.ts";
import { makeIds } from "../lib/ids.ts";
import { nextDelayMs } from "../lib/schedule.ts";
import { SimKv, StoreError } from "./kv.ts";
import type { Rng } from "./rng.ts";
import type { World } from "./world.ts";

const HASH_KEY = new Uint8Array(32).fill(7);

export class Isolate {
  alive = true;
  /** Takes work: started, and not stopping. */
  serving = false;
  readonly kv: SimKv;
  readonly system: System;
  readonly deps: EndpointDeps & TenancyDeps;

  constructor(readonly world: World, readonly name: string, rng: Rng) {
    const { clock, net, model, config, store, bells, weather } = world;
    const timers: Timers = {
      after: (ms, run) => clock.after(ms, () => this.alive && run()),
      cancel: clock.cancel,
    };
    this.kv = new SimKv({
      store,
      timers: clock,
      rng: rng.fork("kv"),
      bells,
      fault: (op, hasChecks) => op === "read" ? weather.read(clock.mono) : world.commitFault(hasChecks),
      latencyMs: config.latencyMs,
      poisoned: world.poisoned,
      died: () => world.kill(this),
      readTook: (ms) => void (model.slowestRead = Math.max(model.slowestRead, ms)),
    });
    const skew = rng.between(-config.skewMs, config.skewMs);
    const now = () => clock.now() + skew;
    const entropy = rng.fork("ids");
    const ids = makeIds(now, () => entropy.unit());
    const guarded = makeGuardedHttp({
      rules: { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set() },
      resolver: { resolve: (host) => this.#mortal(() => net.resolver.resolve(host)) },
      dialer: { dial: (request) => this.#mortal(() => net.dialer.dial(request)), close: net.dialer.close },
      timers,
      now,
      clock: () => clock.mono,
    });
    const http: typeof guarded = {
      check: guarded.check,
      send: (request) =>
        this.#mortal(() => {
          model.sending(new URL(request.url).hostname, request.body, request.headers["webhook-id"]!);
          return guarded.send(request);
        }),
    };
    const sealer = world.sealer as Sealer;
    const jitter = rng.fork("jitter");
    this.system = makeSystem({
      kv: this.kv.port,
      ports: { now, clock: () => clock.mono, timers, random: rng.fork("random"), ids },
      http,
      openSecret: sealer.open,
      hashKey: HASH_KEY,
      userAgent: "PylotaMail/sim",
      commitsInFlight: config.commitsInFlight,
      jobShards: config.shards,
      maxInFlight: config.maxInFlight,
      maxPerEndpoint: config.maxPerEndpoint,
      nextDelayMs: (k, retryAfterMs) => nextDelayMs(k, jitter.unit(), retryAfterMs),
      doorbell: config.doorbell,
      hotHandOff: config.hotHandOff,
      observer: {
        fanned: () => {},
        recorded: () => {},
        disabled: () => {},
        failed: (what, error) => this.#failed(what, error),
      },
    });
    const { committer, jobs } = this.system;
    this.deps = {
      kv: this.kv.port,
      committer,
      now,
      ids,
      random: rng.fork("secrets"),
      sealer,
      guard: guarded,
      jobs,
    };
  }

  async start(): Promise<void> {
    if (this.world.config.doorbell) void this.kv.port.listenQueue(() => this.system.doorbell());
    await this.system.start();
    this.serving = true;
  }

  kill(): void {
    this.alive = false;
    this.serving = false;
    this.kv.die();
  }

  /** As `main.ts` does it; then the process is gone. */
  async stop(graceMs: number): Promise<void> {
    this.serving = false;
    await this.system.stop(graceMs);
    this.kill();
  }

  /** Only faults of the store may come out of the pipeline: anything else is a fault of its own. */
  #failed(what: string, error: unknown): void {
    if (!this.alive) return;
    this.world.trace(`${this.name} fault in ${what}: ${(error as Error).message}`);
    this.world.tally.count(`fault_in_${what}`);
    const expected = error instanceof StoreError || error instanceof ApiError || what === "secret" ||
      (error as Error).message === "others keep changing the same rows";
    if (!expected) this.world.model.violated("fault", `${what}: ${(error as Error).stack ?? error}`);
  }

  #mortal<T>(run: () => Promise<T>): Promise<T> {
    if (!this.alive) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      run().then((value) => this.alive && resolve(value), (error) => this.alive && reject(error));
    });
  }
}

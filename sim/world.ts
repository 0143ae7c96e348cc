/** A simulated world: one store, one network, isolates that come and go, cron, and the model that watches. */
import { MINUTE_MS, SECOND_MS } from "../lib/limits.ts";
import type { KvKey } from "../lib/edge/kv.ts";
import { Bells } from "./bells.ts";
import { SimClock } from "./clock.ts";
import { encodeKey } from "./codec.ts";
import { Isolate } from "./isolate.ts";
import { Model } from "./model.ts";
import { SimNet } from "./net.ts";
import { Producers } from "./producers.ts";
import { Rng } from "./rng.ts";
import type { Config } from "./script.ts";
import { simSealer } from "./signatures.ts";
import { SimStore } from "./store.ts";
import { Tally } from "./tally.ts";
import { type StoreFault, Weather } from "./weather.ts";

const KEPT_LINES = 2_000;
/** A process that does not stop in time is killed, as its manager would. */
const STOP_LIMIT_MS = 30 * SECOND_MS;

export class World {
  readonly clock = new SimClock();
  readonly store = new SimStore();
  readonly tally = new Tally();
  readonly rng: Rng;
  readonly model: Model;
  readonly net: SimNet;
  readonly weather: Weather;
  readonly bells: Bells;
  readonly producers: Producers;
  readonly sealer = simSealer((sealed) => this.#unopenable(sealed));
  isolates: Isolate[] = [];
  /** Sealed secrets that do not open for now. */
  readonly unopenable = new Set<string>();
  /** Rows that cannot be read for now, by encoded key. */
  readonly poisoned = new Set<string>();
  cronStoppedUntil = -1;
  /** Set by a test of crash points: called for each commit, before the weather is asked. */
  atCommit: ((index: number) => StoreFault | null) | null = null;
  commits = 0;
  hash = 2166136261;
  lines: string[] = [];
  #born = 0;
  #ended = false;

  constructor(seed: number, readonly config: Config) {
    this.rng = new Rng(seed);
    const { clock, tally } = this;
    this.model = new Model({
      mono: () => clock.mono,
      now: clock.now,
      discord: () => 2 * config.skewMs + clock.jumpedBack,
      tally,
      trace: (what) => this.trace(what),
    });
    this.weather = new Weather(this.rng.fork("weather"), tally, config.severity);
    if (config.severity === 0) this.weather.calm = true;
    this.bells = new Bells({
      timers: clock,
      rng: this.rng.fork("bells"),
      fault: () => this.weather.bell(),
      rang: () => tally.count("doorbell"),
    });
    this.net = new SimNet({
      timers: clock,
      rng: this.rng.fork("net"),
      tally,
      received: (receipt) => this.model.received(receipt),
      answered: (host, error, id) => this.model.answeredWith(host, error, id),
      asked: (host, id, seconds) => this.model.asked(host, id, seconds),
      violated: (rule, what) => this.model.violated(rule, what),
    });
    this.store.watch = (landed) => {
      this.trace(`commit ${landed.versionstamp} ${landed.changes.length}`);
      this.model.landed(landed);
      this.bells.add(landed.messages);
    };
    this.store.expiring = (key, expireIn, versionstamp) =>
      void clock.after(expireIn + this.rng.int(MINUTE_MS), () => this.store.expire(key, versionstamp));
    this.producers = new Producers(this);
    this.#cron();
  }

  trace(what: string): void {
    const line = `${this.clock.mono} ${what}`;
    let hash = this.hash;
    for (let i = 0; i < line.length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 16777619);
    this.hash = hash >>> 0;
    this.lines.push(line);
    if (this.lines.length > 2 * KEPT_LINES) this.lines = this.lines.slice(-KEPT_LINES);
  }

  commitFault(hasChecks: boolean): StoreFault | null {
    const index = this.commits++;
    return this.atCommit?.(index) ?? this.weather.commit(hasChecks, this.clock.mono);
  }

  /** A new process; one that cannot start is started again by its manager. */
  spawn(): Isolate {
    const name = `i${this.#born++}`;
    const isolate = new Isolate(this, name, this.rng.fork(name));
    this.isolates.push(isolate);
    this.trace(`${name} starts`);
    this.client(isolate.start(), (error) => {
      this.trace(`${name} cannot start: ${error}`);
      this.tally.count("start_failed");
      this.kill(isolate, SECOND_MS);
    });
    return isolate;
  }

  /** kill -9, and another process in its place after `restartMs`. */
  kill(isolate: Isolate, restartMs = this.rng.between(0, 8_000)): void {
    if (!isolate.alive) return;
    this.trace(`${isolate.name} dies`);
    this.tally.count("killed");
    this.#remove(isolate);
    this.clock.after(restartMs, () => this.#ended || this.spawn());
  }

  stop(isolate: Isolate): void {
    this.trace(`${isolate.name} stops`);
    const stopped = () => {
      if (!isolate.alive && !this.isolates.includes(isolate)) return;
      this.#remove(isolate);
      this.clock.after(this.rng.between(0, 3_000), () => this.#ended || this.spawn());
    };
    this.client(
      isolate.stop(this.rng.pick([0, 2, 20, 20]) * SECOND_MS).then(
        () => (this.tally.count("stopped"), stopped()),
      ),
      () => {
        this.tally.count("stop_failed");
        stopped();
      },
    );
    this.clock.after(STOP_LIMIT_MS, () => isolate.alive && this.kill(isolate));
  }

  poison(key: KvKey): void {
    this.tally.count("poisoned");
    this.poisoned.add(encodeKey(key));
  }

  get serving(): Isolate[] {
    return this.isolates.filter((isolate) => isolate.serving);
  }

  end(): void {
    this.#ended = true;
    for (const isolate of this.isolates) isolate.kill();
  }

  /** Something a client waits for: its failure is no failure of the world. */
  client(promise: Promise<unknown>, failed: (error: unknown) => void = () => {}): void {
    promise.catch(failed);
  }

  sweep(): void {
    const [isolate] = this.serving.length > 0 ? [this.rng.pick(this.serving)] : [];
    if (isolate === undefined) return;
    this.tally.count("swept");
    this.client(isolate.system.sweep(), () => this.tally.count("sweep_failed"));
  }

  #remove(isolate: Isolate): void {
    isolate.kill();
    this.isolates = this.isolates.filter((other) => other !== isolate);
  }

  #cron(): void {
    this.clock.after(MINUTE_MS, () => {
      if (this.#ended) return;
      if (this.clock.mono >= this.cronStoppedUntil) this.sweep();
      else this.tally.count("cron_missed");
      this.#cron();
    });
  }

  #unopenable(sealed: string): boolean {
    if (!this.unopenable.has(sealed)) return false;
    this.model.secretFailed(sealed);
    this.tally.count("secret_did_not_open");
    return true;
  }
}

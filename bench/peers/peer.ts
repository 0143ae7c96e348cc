/** One peer: its processes under Node, and the same phases as our side's, each on an empty store. */
import { fileURLToPath } from "node:url";
import { answerOf, lineOf, spawn, stop } from "../children.ts";
import type { Found } from "../engine.ts";
import { sleep, warmUp } from "../payload.ts";
import { forget, stats } from "../roles/receipts.ts";
import type { Installed } from "./install.ts";
import type { Service } from "./services.ts";

const ENGINE = fileURLToPath(new URL("./engine.mjs", import.meta.url));
const BULK = 200;
const FAN = 10;
const PER_SECOND = 200;
const GIVE_UP_MS = 240_000;

/** What its worker is given; the best of several is taken. */
export type Settings = Record<string, number>;

export class Peer {
  settings: Settings;

  constructor(
    readonly name: string,
    readonly module: string,
    readonly service: Service,
    readonly installed: Installed,
    readonly origin: string,
    /** Settings worth trying, the one that won before first. */
    readonly choices: Settings[],
  ) {
    this.settings = choices[0]!;
  }

  async phase(role: string, { n, seconds }: { n: number; seconds: number }): Promise<Found> {
    await this.#run("setup");
    await forget(this.origin);
    switch (role) {
      case "append":
        return await this.#append(n);
      case "drain":
        return await this.drain(n);
      case "flood":
        return await this.#together(n, { n, warm: warmUp(n) });
      case "fan": {
        const events = Math.ceil(n / FAN);
        return await this.#together(events * FAN, { n: events, warm: warmUp(events), fan: FAN });
      }
      case "steady": {
        const warm = PER_SECOND * 2, perSecond = PER_SECOND;
        return await this.#together(PER_SECOND * seconds, { n: PER_SECOND * seconds, warm, perSecond });
      }
      default:
        throw new Error(`Cannot run "${role}" on ${this.name}`);
    }
  }

  /** Durable appends while no worker runs. */
  async #append(n: number): Promise<Found> {
    const { start: _, ...found } = await this.#produce({ n, warm: warmUp(n), delivered: false });
    return found;
  }

  /** Tries each setting on a small backlog and keeps the fastest. */
  async tune(n: number): Promise<void> {
    let best = 0;
    for (const choice of this.choices) {
      this.settings = choice;
      const { perSecond } = await this.phase("drain", { n, seconds: 0 });
      if (perSecond! > best) [best, this.choices[0]] = [perSecond!, choice];
    }
    this.settings = this.choices[0]!;
  }

  /** From the first receipt after the worker's warm-up to the last. */
  async drain(n: number): Promise<Found> {
    const warm = warmUp(n);
    await this.#produce({ n: n + warm, warm: 0, bulk: BULK, delivered: false });
    const worker = await this.#worker();
    const { first, last } = await this.#arrived(n + warm, warm);
    await this.#kept(n + warm);
    await stop(worker);
    return { perSecond: Math.round(n / (last - first) * 1_000) };
  }

  /** Producer and worker together, from the producer's start to the last receipt. */
  async #together(deliveries: number, options: Record<string, number>): Promise<Found> {
    const worker = await this.#worker();
    const { start } = await this.#produce(options);
    const { last, latency } = await this.#arrived(deliveries, 0);
    await this.#kept(deliveries);
    await stop(worker);
    const perSecond = Math.round(deliveries / (last - start!) * 1_000);
    return { perSecond, p50Ms: latency.p50, p99Ms: latency.p99 };
  }

  async #arrived(unique: number, skip: number) {
    const until = performance.now() + GIVE_UP_MS;
    for (;;) {
      const found = await stats(this.origin, skip);
      if (found.bad > 0) throw new Error(`Cannot trust ${this.name}: ${found.bad} signatures are wrong`);
      if (found.unique >= unique) return found;
      if (performance.now() > until) {
        throw new Error(`Cannot trust ${this.name}: ${found.unique} of ${unique} arrived`);
      }
      await sleep(50);
    }
  }

  /** Every outcome is in its store: the same work as ours. */
  async #kept(outcomes: number): Promise<void> {
    for (let tries = 0; tries < 50; tries++) {
      const { done, open } = await answerOf<Found>(this.#spawn("count", {}));
      if (done! >= outcomes && open === 0) return;
      await sleep(100);
    }
    throw new Error(`Cannot trust ${this.name}: not every outcome was kept`);
  }

  async #worker(): Promise<Deno.ChildProcess> {
    const worker = this.#spawn("worker", this.settings);
    await lineOf(worker, /READY/);
    return worker;
  }

  #produce(options: Record<string, number | boolean>): Promise<Found> {
    return answerOf<Found>(this.#spawn("produce", options));
  }

  async #run(role: string): Promise<void> {
    const child = this.#spawn(role, {});
    await child.stdout.cancel();
    const { code } = await child.status;
    if (code !== 0) throw new Error(`Cannot run ${role} of ${this.name}: code ${code}`);
  }

  #spawn(role: string, options: Record<string, number | boolean>): Deno.ChildProcess {
    return spawn({
      command: this.installed.node,
      args: [ENGINE, this.module, role, JSON.stringify(options)],
      env: { ...this.service.env, PEERS_DIR: this.installed.dir, RECEIVER: this.origin },
    });
  }
}

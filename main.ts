/**
 * Entry of the service: configuration → store → migrations → ports → pipeline → HTTP, and the graceful stop. Nothing here
 * decides anything; the pipeline is in `actors/flow.ts`, the routes in `routes/`.
 */
import { makeEventTypes } from "./actors/event_types.ts";
import { makeObserver } from "./actors/observe.ts";
import { Stats } from "./actors/stats.ts";
import { makeSystem, type System } from "./actors/system.ts";
import { type Config, ConfigError, loadConfig, notesOf } from "./lib/edge/config.ts";
import { makeDialer } from "./lib/edge/dialer.ts";
import { makeFetchDialer } from "./lib/edge/dialer_fetch.ts";
import { type GuardedHttp, makeGuardedHttp, permits, WITHDRAWN } from "./lib/edge/http.ts";
import { LocalSecretsError } from "./lib/edge/local_secrets.ts";
import type { Log } from "./lib/edge/log.ts";
import { openKv, OpenKvError } from "./lib/edge/open_kv.ts";
import { realClock, realIds, realNow, realRandom, realTimers } from "./lib/edge/ports.ts";
import { readiness } from "./lib/edge/readiness.ts";
import { makeResolver } from "./lib/edge/resolver.ts";
import { makeSealer } from "./lib/edge/seal.ts";
import { makeTelemetry } from "./lib/edge/telemetry.ts";
import { nextDelayMs } from "./lib/schedule.ts";
import {
  BODY_DEADLINE_MS,
  DEPLOY_STAY_MS,
  DEPLOY_STOP_MS,
  GRACEFUL_STOP_MS,
  SECOND_MS,
} from "./lib/limits.ts";
import { MIGRATIONS } from "./migrations/list.ts";
import { migrate, SchemaTooNewError } from "./migrations/runner.ts";
import { createApp } from "./routes/app.ts";
import { allRoutes } from "./routes/all.ts";
import { makeKeyCache } from "./routes/auth.ts";
import type { Services } from "./routes/services.ts";
import release from "./deno.json" with { type: "json" };

/** How long a stop may take, and what requests under way get of it, before and after the deliveries get theirs. */
const stopTimes = ({ onDeploy }: Config) =>
  onDeploy
    ? { stopMs: DEPLOY_STOP_MS, requestsMs: SECOND_MS / 2 }
    : { stopMs: GRACEFUL_STOP_MS, requestsMs: 2 * SECOND_MS };
const LOOK_MS = SECOND_MS / 4;
const IDLE_LOOKS = 4;

export interface Server {
  readonly port: number;
  readonly services: Services;
  readonly system: System;
  /** Answers a request as the socket would. */
  fetch(request: Request): Promise<Response>;
  /** Every minute: the chores, and on Deno Deploy what they set going. */
  sweep(): Promise<void>;
  /** Graceful: no new work, what is in flight finishes, the rest is left due. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Answers before the routes do; null passes the request on. The receiver of `deno task dev`. */
  before?(request: Request): Promise<Response> | Response | null;
  /** Takes a log line. */
  write?(line: string): void;
}

/** Starts everything and listens on `config.host:config.port` (0: any free port). */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<Server> {
  const opened = await openKv(config.kvPath);
  const { kv } = opened;
  const ids = realIds();
  const telemetry = makeTelemetry({ level: config.log, now: realNow, write: options.write ?? console.log });
  const { log, metrics, spans } = telemetry;
  await migrate(MIGRATIONS, { kv, now: realNow, timers: realTimers, instance: ids.ulid() });

  const rules = config;
  const socket = config.httpTransport === "undici";
  const dialer = socket
    ? makeDialer({ timers: realTimers, clock: realClock, permits: permits(rules) })
    : makeFetchDialer({ fetch, timers: realTimers, permits: permits(rules) });
  const resolver = makeResolver({ resolveDns: Deno.resolveDns, timers: realTimers });
  const guarded = makeGuardedHttp({
    rules,
    resolver,
    dialer,
    timers: realTimers,
    now: realNow,
    clock: realClock,
  });
  const http = { ...guarded, send: telling(guarded, log) };
  const { masterKey, masterKeyNext, hashKey, keyPepper } = config.secrets;
  const sealer = makeSealer(masterKey.bytes, masterKeyNext?.bytes ?? null, realRandom);
  const queue = config.doorbell === "auto" && await hear(kv, () => system.doorbell());
  const observer = makeObserver({ metrics, log, now: realNow, spans });
  const system = makeSystem({
    kv,
    ports: { now: realNow, clock: realClock, timers: realTimers, random: realRandom, ids },
    http,
    openSecret: sealer.open,
    hashKey: hashKey.bytes,
    userAgent: `PylotaMail/${release.version} (+https://github.com/PILOTAAI/pylota-mail)`,
    commitsInFlight: opened.maxInFlight,
    jobShards: config.jobShards,
    maxInFlight: config.maxInFlight,
    maxPerEndpoint: config.maxPerEndpoint,
    nextDelayMs: (k, retryAfterMs) => nextDelayMs(k, realRandom.unit(), retryAfterMs, config.retryScale),
    doorbell: queue,
    hotHandOff: config.hotHandOff === "auto",
    notifications: config.notifications,
    observer: {
      ...observer,
      recorded: (settlement, dead) => (observer.recorded(settlement, dead), stats.recorded(settlement, dead)),
    },
  });
  const stats = new Stats({
    committer: system.committer,
    timers: realTimers,
    now: realNow,
    instance: ids.ulid(),
  });
  let working = false;
  const services: Services = {
    kv,
    committer: system.committer,
    owners: system.owners,
    now: realNow,
    timers: realTimers,
    ids,
    random: realRandom,
    config: {
      hashKey: hashKey.bytes,
      keyPepper: keyPepper.bytes,
      keyMode: config.env === "production" ? "live" : "test",
      metricsOpen: config.metrics === "open",
      bodyDeadlineMs: BODY_DEADLINE_MS,
      version: release.version,
      consoleHost: config.consoleHost,
      transport: socket ? "socket" : "fetch",
      notes: notesOf(config),
    },
    log,
    metrics,
    sealer,
    guard: http,
    deliveries: system.deliveries,
    eventTypes: makeEventTypes({ kv, committer: system.committer, now: realNow }),
    jobs: system.jobs,
    poke: system.doorbell,
    keyCache: makeKeyCache({ kv, now: realNow }),
    ready: () =>
      readiness({
        kv,
        now: realNow,
        timers: realTimers,
        instance: system.jobs.instance,
        working: () => working,
      }),
  };
  const app = createApp(allRoutes(services.config), services);
  const answer = async (request: Request, info?: Deno.ServeHandlerInfo<Deno.NetAddr>): Promise<Response> =>
    await options.before?.(request) ?? await app.fetch(request, info);
  await system.start();
  const server = await listen(config, answer).catch(async (error) => {
    await system.stop(0);
    await dialer.close();
    kv.close();
    throw error;
  });
  working = true;
  const { port } = server.addr;
  const { stopMs, requestsMs } = stopTimes(config);
  log.info("started", {
    port,
    env: config.env,
    store: opened.place,
    release: release.version,
    transport: config.httpTransport,
  });

  return {
    port,
    services,
    system,
    fetch: answer,
    async sweep() {
      await system.sweep();
      if (config.onDeploy) await stay(system, DEPLOY_STAY_MS);
    },
    async stop() {
      working = false;
      const answered = server.shutdown();
      // What was asked for a moment ago is answered and delivered; a client that dawdles holds nothing up.
      await within(requestsMs, answered);
      await system.stop(stopMs - 2 * requestsMs);
      await within(requestsMs, answered); // who still dawdles is cut off by the end of the process
      await stats.stop();
      await system.committer.idle();
      await dialer.close();
      kv.close();
      log.info("stopped");
    },
  };
}

/** The address cannot be listened on; the message says what to change. */
class ListenError extends Error {
  override name = "ListenError";
}

/** Throws `ListenError`. */
async function listen(
  { host, port }: Config,
  answer: Deno.ServeHandler<Deno.NetAddr>,
): Promise<Deno.HttpServer<Deno.NetAddr>> {
  try {
    const listening = Promise.withResolvers<void>();
    const onListen = () => listening.resolve();
    const server = Deno.serve({ hostname: host, port, onListen }, answer);
    server.finished.catch(listening.reject);
    await listening.promise;
    return server;
  } catch (error) {
    throw new ListenError(
      `Cannot listen on ${host}:${port}: ${(error as Error).message}. ` +
        "End what listens there, or set PM_HOST and PM_PORT to a free address.",
      { cause: error },
    );
  }
}

/** Waits for `work`, but no longer than `ms`. True when it was done by then. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = realTimers.after(ms, () => late.resolve(false));
  const done = await Promise.race([work.then(() => true), late.promise]);
  realTimers.cancel(timer);
  return done;
}

/** What happens at every stop and at every disabling is no fault. */
const ORDINARY = new Set(["shutdown", WITHDRAWN]);

/** A fault of ours is charged to nobody (D4), so it shows in no delivery log: it is said here, or it would be silence. */
function telling(http: GuardedHttp, log: Log): GuardedHttp["send"] {
  return async (request) => {
    const sent = await http.send(request);
    const { outcome } = sent;
    if (outcome.kind === "ours" && !ORDINARY.has(outcome.reason)) {
      log.error("delivery_fault", { reason: outcome.reason });
    }
    return sent;
  };
}

/** Hears the doorbell where the platform has queues; elsewhere timers and the sweep do all of it. */
async function hear(kv: Deno.Kv, ring: () => void): Promise<boolean> {
  const listening = kv.listenQueue(ring).then(() => true, () => false);
  return await Promise.race([listening, new Promise<true>((resolve) => setTimeout(() => resolve(true), 50))]);
}

/**
 * Deno Deploy stops an instance soon after its last answer, and a run of the cron counts as a request: so that run lasts while
 * there is work, retries that fall due meanwhile included.
 */
async function stay(system: System, ms: number): Promise<void> {
  const until = performance.now() + ms;
  for (let idle = 0; idle < IDLE_LOOKS && performance.now() < until;) {
    await new Promise((resolve) => realTimers.after(LOOK_MS, () => resolve(null)));
    idle = system.flow.busy ? 0 : idle + 1;
  }
}

/** A start refused for a reason that whoever started it can change. */
const REFUSALS = [ConfigError, LocalSecretsError, ListenError, OpenKvError, SchemaTooNewError];

/** Prints why a start was refused and ends the process with code 1. */
export function refuseStart(error: unknown): never {
  const expected = REFUSALS.some((kind) => error instanceof kind);
  if (!expected) throw error;
  console.error((error as Error).message);
  Deno.exit(1);
}

/** Runs until SIGINT or SIGTERM, then stops gracefully. */
export function stopOnSignal(server: Server): void {
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      if (stopping) return;
      stopping = true;
      void server.stop().then(() => Deno.exit(0));
    });
  }
}

if (import.meta.main) {
  const starting = loadConfig(realRandom).then((config) => startServer(config));
  starting.then(stopOnSignal, refuseStart);
  // At the top level: Deno Deploy reads the schedule before anything runs.
  Deno.cron("sweep", "* * * * *", async () => (await starting).sweep());
}

/**
 * `deno task bench:peers [--quick] [--rounds N] [--only phase,…] [--peers name,…]`: the same work on BullMQ (Redis) and on
 * graphile-worker and pg-boss (PostgreSQL), phase by phase in turn with ours. The peers run with the best of several
 * settings, printed. `--quick` tries no settings. Exits 1 when a target is missed.
 */
import { parseArgs } from "node:util";
import { startReceiver, stopAll } from "./children.ts";
import { judge, type Round } from "./measures.ts";
import { makeOurs } from "./ours.ts";
import { install } from "./peers/install.ts";
import { Peer } from "./peers/peer.ts";
import { type Service, startPostgres, startRedis } from "./peers/services.ts";
import { MEASURES, PEERS, PHASES, slot } from "./peers/targets.ts";
import { quiet } from "./quiet.ts";
import { report, say } from "./report.ts";

const FULL = { rounds: 3, n: 20_000, seconds: 12, tune: 4_000 };
const QUICK = { rounds: 1, n: 2_000, seconds: 3, tune: 0 };
/** The longest wait for a quiet machine before each side of a phase. */
const QUIET_MS = 6_000;

const { values: flags } = parseArgs({
  args: Deno.args,
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    peers: { type: "string" },
  },
});
const sizes = flags.quick ? QUICK : FULL;
const phases = flags.only?.split(",") ?? [...PHASES];
const chosen = flags.peers?.split(",") ?? [...PEERS];

const dir = Deno.makeTempDirSync({ prefix: "pylota-bench-" });
const services: Service[] = [];
let missed: string[] = [];
try {
  const peers = await startPeers();
  const ours = makeOurs(dir, peers.origin);
  const rounds: Round[] = [];
  for (let index = 1; index <= Number(flags.rounds ?? sizes.rounds); index++) {
    const round: Round = { bare: [], phases: {} };
    rounds.push(round);
    for (const phase of phases) {
      const options = { n: sizes.n, seconds: sizes.seconds };
      const note = (side: string, found: Record<string, number>) => {
        round.phases[slot(phase, side)] = found;
        say({ round: index, phase, side, ...found });
      };
      await quiet(QUIET_MS);
      note("ours", await ours.phase(phase, options));
      for (const peer of peers.list) {
        await quiet(QUIET_MS);
        note(peer.name, await peer.phase(phase, options));
      }
    }
  }
  missed = report(judge(MEASURES, rounds));
} finally {
  // Services first, each in its own way; whatever is left is killed.
  await Promise.allSettled(services.map((service) => service.stop()));
  await stopAll();
  await Deno.remove(dir, { recursive: true });
}
Deno.exit(missed.length > 0 ? 1 : 0);

async function startPeers(): Promise<{ list: Peer[]; origin: string }> {
  const installed = await install();
  say({ versions: installed.versions });
  const { origin } = await startReceiver();
  const start = async (service: Promise<Service>): Promise<Service> => {
    const started = await service;
    services.push(started);
    return started;
  };
  const list: Peer[] = [];
  const add = (name: string, module: string, service: Service, choices: Record<string, number>[]) =>
    list.push(new Peer(name, module, service, installed, origin, choices));
  const concurrency = [{ concurrency: 64 }, { concurrency: 128 }, { concurrency: 256 }];
  for (const policy of ["always", "everysec"] as const) {
    const name = `bullmq-${policy}`;
    if (chosen.includes(name)) add(name, "bullmq", await start(startRedis(installed, policy)), concurrency);
  }
  if (chosen.includes("graphile-worker") || chosen.includes("pg-boss")) {
    const postgres = await start(startPostgres(installed));
    if (chosen.includes("graphile-worker")) {
      add("graphile-worker", "graphile", postgres, [
        { concurrentJobs: 64, localQueue: 500 },
        { concurrentJobs: 128, localQueue: 500 },
        { concurrentJobs: 64, localQueue: 0 },
      ]);
    }
    if (chosen.includes("pg-boss")) {
      add("pg-boss", "pgboss", postgres, [
        { batchSize: 100, localConcurrency: 4 },
        { batchSize: 64, localConcurrency: 8 },
        { batchSize: 500, localConcurrency: 2 },
      ]);
    }
  }
  for (const peer of list) {
    if (sizes.tune > 0) await peer.tune(sizes.tune);
    say({ peer: peer.name, settings: peer.settings, service: peer.service.settings });
  }
  return { list, origin };
}

// One process of a peer, under Node: `node engine.mjs <peer> <role> <options as JSON>`.
// Roles: setup (an empty store), worker (until SIGTERM), produce (prints what it measured), count (prints outcomes kept).
import process from "node:process";
import { envelope, nowMs, sleep } from "./common.mjs";

const [name, role, json = "{}"] = process.argv.slice(2);
const options = JSON.parse(json);
const { default: peer } = await import(`./${name}.mjs`);
const RECEIVER = process.env.RECEIVER;
const print = (fact) => console.log(JSON.stringify(fact));

async function inParallel(n, callers, one) {
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(callers, n) }, async () => {
    while (next < n) await one(next++);
  }));
}

async function atRate(n, perSecond, one) {
  const start = performance.now(), open = [];
  for (let i = 0; i < n; i++) {
    const wait = start + i * 1_000 / perSecond - performance.now();
    if (wait > 0.5) await sleep(wait);
    open.push(one(i));
  }
  await Promise.all(open);
}

/** Warms up, waits until the warm-up has arrived (unless nothing delivers), then appends `n` events on the clock. */
async function produce({ n, warm, fan = 1, callers = 64, perSecond = 0, bulk = 0, delivered = true }) {
  const queue = await peer.open(options);
  const run = `${Date.now().toString(36)}${process.pid}`;
  const jobsOf = (i, part) => {
    const id = `evt_${run}${part}${i}`, body = envelope(i, id);
    return Array.from({ length: fan }, (_, endpoint) => ({ id, endpoint, body }));
  };
  const appendAll = async (count, part, waits) => {
    const one = async (i) => {
      const start = performance.now();
      await queue.add(jobsOf(i, part));
      waits.push(performance.now() - start);
    };
    if (perSecond > 0) return await atRate(count, perSecond, one);
    if (bulk === 0) return await inParallel(count, callers, one);
    await inParallel(Math.ceil(count / bulk), 4, async (group) => {
      const jobs = [];
      for (let i = group * bulk; i < Math.min(count, (group + 1) * bulk); i++) jobs.push(...jobsOf(i, part));
      await queue.add(jobs);
    });
  };
  if (warm > 0) {
    await appendAll(warm, "w", []);
    while (delivered && (await (await fetch(`${RECEIVER}/stats`)).json()).unique < warm * fan) {
      await sleep(50);
    }
    if (delivered) await fetch(`${RECEIVER}/reset`, { method: "POST" });
  }
  const waits = [], start = nowMs();
  await appendAll(n, "m", waits);
  const seconds = (nowMs() - start) / 1_000;
  const sorted = waits.sort((a, b) => a - b), at = (p) => sorted[Math.floor(p * sorted.length)] ?? 0;
  print({ start, perSecond: Math.round(n / seconds), p50Ms: at(0.5), p99Ms: at(0.99) });
}

if (role === "setup") await peer.setup(options);
else if (role === "count") print(await peer.count());
else if (role === "produce") await produce(options);
else if (role === "worker") {
  const end = await peer.worker(options);
  process.on("SIGTERM", async () => {
    setTimeout(() => process.exit(0), 4_000);
    await end();
    process.exit(0);
  });
  console.log("READY");
}
if (role !== "worker") process.exit(0);

/**
 * What deliveries cost, as docs/scale.md tells it: commits, reads, mutations, CPU seconds and stored bytes, per million. Runs the
 * system on a file against the bench's receiver and counts at the store's own methods. Not a race: the columns are counts.
 *
 *   deno run -A bench/cost.ts [--events 20000]
 */
import { createServer } from "node:http";
import process from "node:process";
import { startReceiver, stopAll } from "./children.ts";
import { EVENT_TYPE, sleep } from "./payload.ts";
import { openWorld, TENANT, type World } from "./world.ts";

interface Counts {
  commits: number;
  mutations: number;
  checks: number;
  /** Keys asked for by get and getMany. */
  keys: number;
  /** Calls of get, getMany and list. */
  reads: number;
}

const zero = (): Counts => ({ commits: 0, mutations: 0, checks: 0, keys: 0, reads: 0 });
let counts = zero();

/** Counts every call of every store of this process. */
function countStores(): void {
  const { get, getMany, list, atomic } = Deno.Kv.prototype;
  Object.assign(Deno.Kv.prototype, {
    get(this: Deno.Kv, ...args: Parameters<typeof get>) {
      counts.reads++;
      counts.keys++;
      return get.apply(this, args);
    },
    getMany(this: Deno.Kv, ...args: Parameters<typeof getMany>) {
      counts.reads++;
      counts.keys += args[0].length;
      return getMany.apply(this, args);
    },
    list(this: Deno.Kv, ...args: Parameters<typeof list>) {
      counts.reads++;
      return list.apply(this, args);
    },
    atomic(this: Deno.Kv) {
      const operation = atomic.apply(this);
      const { set, check, commit } = operation, remove = operation.delete;
      return Object.assign(operation, {
        set: (...args: Parameters<typeof set>) => (counts.mutations++, set.apply(operation, args)),
        delete: (...args: Parameters<typeof remove>) => (counts.mutations++, remove.apply(operation, args)),
        check: (
          ...args: Parameters<typeof check>
        ) => (counts.checks += args.length, check.apply(operation, args)),
        commit: () => (counts.commits++, commit.apply(operation)),
      });
    },
  });
}

interface Row extends Counts {
  name: string;
  attempts: number;
  seconds: number;
  cpu: number;
  bytes: number;
}

async function measure(
  name: string,
  events: number,
  origin: string,
  endpoints: number,
  feed: (world: World) => Promise<void>,
): Promise<Row> {
  const folder = await Deno.makeTempDir({ prefix: "pm-cost-" });
  const file = `${folder}/pm.db`;
  const world = await openWorld({
    file,
    origin,
    paths: Array.from({ length: endpoints }, (_, i) => `/hook/${i}`),
  });
  try {
    await world.system.start();
    await world.append(0);
    await sleep(500);
    const before = await sizeOf(file);
    counts = zero();
    const cpu = process.cpuUsage(), at = performance.now();
    const done = world.until(events * endpoints);
    await feed(world);
    await done;
    const used = process.cpuUsage(cpu);
    const seconds = (performance.now() - at) / 1_000, found = counts;
    await sleep(200);
    return {
      name,
      attempts: events * endpoints,
      seconds,
      cpu: (used.user + used.system) / 1e6,
      bytes: await sizeOf(file) - before,
      ...found,
    };
  } finally {
    await world.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** Pages in use: the write-ahead log is folded in by then, or counted as it stands. */
async function sizeOf(file: string): Promise<number> {
  const { DatabaseSync } = await import("node:sqlite");
  const db = new DatabaseSync(file, { readOnly: true });
  const one = (sql: string): number => Number(Object.values(db.prepare(sql).get()!)[0]);
  const bytes = (one("PRAGMA page_count") - one("PRAGMA freelist_count")) * one("PRAGMA page_size");
  db.close();
  return bytes;
}

type Append = (world: World, i: number) => Promise<unknown>;

const large: Append = (world, i) => world.append(i);
/** An envelope of some 300 bytes: its row needs no overflow page. */
const small: Append = (world, i) =>
  world.system.owners.run(
    { kind: "custom", tenant: TENANT, id: `account-${i % 1_000}` },
    (tx) => tx.append({ type: EVENT_TYPE, data: { number: i } }),
  );

function flood(events: number, append = large) {
  return async (world: World) => {
    let next = 1;
    const caller = async () => {
      while (next <= events) await append(world, next++);
    };
    await Promise.all(Array.from({ length: 64 }, caller));
  };
}

function steady(events: number, perSecond: number) {
  return async (world: World) => {
    const started = performance.now(), appended: Promise<unknown>[] = [];
    for (let i = 1; i <= events; i++) {
      const wait = started + i * 1_000 / perSecond - performance.now();
      if (wait > 0) await sleep(wait);
      appended.push(world.append(i));
    }
    await Promise.all(appended);
  };
}

const perMillion = (value: number, attempts: number) =>
  Math.round(value / attempts * 1e6).toLocaleString("en");

if (import.meta.main) {
  const events = Number(Deno.args[Deno.args.indexOf("--events") + 1] ?? 0) || 20_000;
  countStores();
  const { origin } = await startReceiver();
  const failing = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(500).end());
  });
  await new Promise<void>((resolve) => failing.listen(0, "127.0.0.1", () => resolve()));
  const { port } = failing.address() as { port: number };
  try {
    const rows = [
      await measure("flood", events, origin, 1, flood(events)),
      await measure("steady, 200/s", 2_000, origin, 1, steady(2_000, 200)),
      await measure("steady, 10/s", 100, origin, 1, steady(100, 10)),
      await measure("300 B", events, origin, 1, flood(events, small)),
      await measure("10 endpoints an event", events / 10, origin, 10, flood(events / 10)),
      await measure("first attempt failed", 2_000, `http://127.0.0.1:${port}`, 1, flood(2_000)),
    ];
    console.log("per million attempts | " + rows.map(({ name }) => name).join(" | "));
    for (const column of ["commits", "mutations", "checks", "reads", "keys", "cpu", "bytes"] as const) {
      console.log(`${column} | ` + rows.map((row) => perMillion(row[column], row.attempts)).join(" | "));
    }
    console.log(
      "attempts a second | " + rows.map((row) => Math.round(row.attempts / row.seconds)).join(" | "),
    );
  } finally {
    failing.close();
    await stopAll();
  }
}

// graphile-worker on PostgreSQL (fsync on). It deletes finished jobs, so its handler keeps the outcome in a table of its
// own, inserted for up to 64 at once and awaited before the job counts as done.
import process from "node:process";
import { deliver, load } from "./common.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");
const pg = load("pg");
const TASK = "deliver";
const GROUP = 64, GROUP_MS = 2;
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));

function poolOf(max) {
  const pool = new pg.Pool({ connectionString: process.env.PG_URL, max });
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {})); // graphile-worker asks for it
  return pool;
}

/** Inserts outcomes in groups; each call resolves when its row is durable. */
function recorder(pool) {
  let waiting = [], timer = null;
  const flush = async () => {
    clearTimeout(timer);
    timer = null;
    const rows = waiting;
    waiting = [];
    const columns = [0, 1, 2, 3].map((column) => rows.map(({ row }) => row[column]));
    const text = "insert into attempts (event, endpoint, status, ms) select * from" +
      " unnest($1::text[], $2::int[], $3::int[], $4::int[])";
    try {
      await pool.query({ name: "attempts", text, values: columns });
      for (const { done } of rows) done();
    } catch (error) {
      for (const { fail } of rows) fail(error);
    }
  };
  return (...row) =>
    new Promise((done, fail) => {
      waiting.push({ row, done, fail });
      if (waiting.length >= GROUP) void flush();
      else timer ??= setTimeout(flush, GROUP_MS);
    });
}

export default {
  async setup() {
    const utils = await makeWorkerUtils({ connectionString: process.env.PG_URL, logger });
    await utils.migrate();
    await utils.release();
    const pool = poolOf(1);
    await pool.query(
      "create table if not exists attempts (id bigserial primary key, event text not null, endpoint int not null," +
        " status int not null, ms int not null, at timestamptz not null default now())",
    );
    await pool.query("truncate attempts; truncate graphile_worker._private_jobs");
    await pool.end();
  },
  async worker({ concurrentJobs = 64, localQueue = 500 }) {
    const pool = poolOf(12), record = recorder(pool);
    const worker = {
      concurrentJobs,
      pollInterval: 100,
      maxPoolSize: 12,
      completeJobBatchDelay: 2,
      failJobBatchDelay: 2,
      ...(localQueue > 0 ? { localQueue: { size: localQueue } } : {}),
    };
    const handler = async (job) => {
      const { status, ms } = await deliver(job);
      await record(job.id, job.endpoint, status, ms);
    };
    const runner = await run({
      pgPool: pool,
      noHandleSignals: true,
      preset: { worker },
      logger,
      taskList: { [TASK]: handler },
    });
    return () => runner.stop();
  },
  async open() {
    const utils = await makeWorkerUtils({ pgPool: poolOf(16), logger });
    return {
      add: (jobs) =>
        jobs.length === 1
          ? utils.addJob(TASK, jobs[0], { maxAttempts: 13 })
          : utils.addJobs(jobs.map((payload) => ({ identifier: TASK, payload, maxAttempts: 13 }))),
    };
  },
  async count() {
    const pool = poolOf(1);
    const { rows } = await pool.query(
      "select (select count(*) from attempts)::int done, (select count(*) from graphile_worker._private_jobs)::int open",
    );
    return rows[0];
  },
};

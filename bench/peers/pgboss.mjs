// pg-boss on PostgreSQL (fsync on). A completed job stays with its output: the outcome kept. LISTEN/NOTIFY on.
import process from "node:process";
import { deliver, load } from "./common.mjs";

const { PgBoss } = load("pg-boss");
const pg = load("pg");
const NAME = "webhooks";

async function boss(max) {
  const made = new PgBoss({
    connectionString: process.env.PG_URL,
    max,
    useListenNotify: true,
    supervise: false,
    schedule: false,
  });
  made.on("error", (error) => console.error(error.message));
  await made.start();
  return made;
}

export default {
  async setup() {
    const made = await boss(4);
    await made.createQueue(NAME, { retryLimit: 13, retryBackoff: true, notify: true });
    await made.deleteAllJobs(NAME);
    await made.stop({ graceful: false });
  },
  async worker({ batchSize = 100, localConcurrency = 4, poolSize = 10 }) {
    const made = await boss(poolSize);
    const options = {
      batchSize,
      localConcurrency,
      pollingIntervalSeconds: 0.5,
      perJobResults: true,
      burstWhenBatchFull: true,
    };
    await made.work(NAME, options, (jobs) =>
      Promise.all(jobs.map(async ({ id, data }) => {
        try {
          return { id, status: "completed", output: await deliver(data) };
        } catch (error) {
          return { id, status: "failed", output: { error: String(error) } };
        }
      })));
    return () => made.stop({ graceful: true, timeout: 3_000 });
  },
  async open() {
    const made = await boss(8);
    return {
      add: (jobs) =>
        jobs.length === 1 ? made.send(NAME, jobs[0]) : made.insert(NAME, jobs.map((data) => ({ data }))),
    };
  },
  async count() {
    const client = new pg.Client(process.env.PG_URL);
    await client.connect();
    const { rows } = await client.query(
      "select count(*) filter (where state = 'completed' and output is not null)::int done," +
        " count(*) filter (where state in ('created', 'active', 'retry'))::int open from pgboss.job where name = $1",
      [NAME],
    );
    await client.end();
    return rows[0];
  },
};

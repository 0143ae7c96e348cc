// BullMQ on Redis. A completed job stays with its return value: the outcome kept. Durability is the service's appendfsync.
import process from "node:process";
import { deliver, load } from "./common.mjs";

const { Queue, Worker } = load("bullmq");
const NAME = "webhooks";
const connection = () => ({
  host: "127.0.0.1",
  port: Number(process.env.REDIS_PORT),
  maxRetriesPerRequest: null,
});
const JOB = {
  attempts: 13,
  backoff: { type: "exponential", delay: 1_000 },
  removeOnComplete: false,
  removeOnFail: false,
};

async function queue() {
  const made = new Queue(NAME, { connection: connection() });
  await made.waitUntilReady();
  return made;
}

export default {
  async setup() {
    await (await queue()).obliterate({ force: true });
  },
  async worker({ concurrency = 64 }) {
    const worker = new Worker(NAME, (job) => deliver(job.data), { connection: connection(), concurrency });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    return () => worker.close();
  },
  async open() {
    const made = await queue();
    return {
      add: (jobs) =>
        jobs.length === 1
          ? made.add("d", jobs[0], JOB)
          : made.addBulk(jobs.map((data) => ({ name: "d", data, opts: JOB }))),
    };
  },
  async count() {
    const counts = await (await queue()).getJobCounts();
    return { done: counts.completed, open: counts.waiting + counts.active + counts.delayed };
  },
};

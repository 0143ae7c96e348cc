/** A batch of seeds over some threads. */
import type { Violation } from "./model.ts";
import { Tally } from "./tally.ts";

export interface Report {
  seed: number;
  violation: Violation | null;
  counts: [string, number][];
  commits: number;
  virtualMs: number;
  deterministic: boolean;
}

export interface Batch {
  reports: number;
  failed: Report[];
  tally: Tally;
  commits: number;
  virtualMs: number;
}

const SEEDS_AT_ONCE = 20;

/** Runs `count` seeds from `from` on; `told` hears of each failure at once. */
export async function runBatch(
  from: number,
  count: number,
  threads: number,
  told: (report: Report) => void = () => {},
): Promise<Batch> {
  const batch: Batch = { reports: 0, failed: [], tally: new Tally(), commits: 0, virtualMs: 0 };
  let next = from;
  const end = from + count;
  await Promise.all(Array.from({ length: threads }, () =>
    new Promise<void>((done, failed) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url).href, { type: "module" });
      const more = () => {
        if (next >= end) return worker.terminate(), done();
        const size = Math.min(SEEDS_AT_ONCE, end - next);
        worker.postMessage({ from: next, count: size });
        next += size;
      };
      worker.onmessage = ({ data }: MessageEvent<Report | null>) => {
        if (data === null) return more();
        batch.reports++;
        batch.tally.add(data.counts);
        batch.commits += data.commits;
        batch.virtualMs += data.virtualMs;
        if (data.violation === null && data.deterministic) return;
        batch.failed.push(data);
        told(data);
      };
      worker.onerror = (event) => failed(new Error(event.message));
      more();
    })));
  return batch;
}

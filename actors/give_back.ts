/** At a graceful stop: job rows this isolate still holds are made due now, so that another takes them at once. */
import type { Committer } from "../lib/edge/committer.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Held } from "./work.ts";

export async function giveBack(
  held: ReadonlySet<Held>,
  d: { committer: Committer; jobs: Jobs; now(): number },
): Promise<void> {
  await Promise.all([...held].map(({ key, versionstamp, job }) => {
    const { writes } = d.jobs.write(job, d.now());
    return d.committer.commit({
      checks: [{ key, versionstamp }],
      writes: [{ op: "delete", key }, ...writes],
    });
  }));
}

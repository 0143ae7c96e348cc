/** One of the processes of patience_test.ts: adds to a count under a check, until it has added often enough. */
import { openKv } from "../../lib/edge/open_kv.ts";

const [path, commits] = Deno.args as [string, string];
const { kv } = await openKv(path);
for (let done = 0; done < Number(commits);) {
  const { value, versionstamp } = await kv.get<number>(["count"]);
  const operation = kv.atomic().check({ key: ["count"], versionstamp }).set(["count"], (value ?? 0) + 1);
  if ((await operation.commit()).ok) done++;
}
kv.close();

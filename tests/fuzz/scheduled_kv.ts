/**
 * A real KV whose every operation starts, and answers, when fast-check's scheduler says so, and whose commits fail where a test says
 * so: before they are made, or after, when the caller cannot know.
 */
import type fc from "fast-check";
import type { Kv } from "../../lib/edge/kv.ts";

/** What becomes of a commit: made, not made and thrown, or made and thrown. */
export type Fate = "made" | "lost" | "unknown";

export function scheduledKv(kv: Deno.Kv, s: fc.Scheduler, isolate: string, fate: () => Fate): Kv {
  const turn = (what: string) => s.schedule(Promise.resolve(), `${isolate}: ${what}`);
  const slowly = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    await turn(what);
    const result = await run();
    await turn(`${what} answers`);
    return result;
  };

  function atomic(): Deno.AtomicOperation {
    const operation = kv.atomic(), commit = operation.commit.bind(operation);
    operation.commit = () =>
      slowly("commit", async () => {
        const what = fate();
        if (what === "lost") throw new Error("not made");
        const result = await commit();
        if (what === "unknown") throw new Error("made, perhaps");
        return result;
      });
    return operation;
  }

  return {
    atomic,
    get: (key: Deno.KvKey) => slowly(`get ${key.join(" ")}`, () => kv.get(key)),
    getMany: (keys: Deno.KvKey[]) => slowly("getMany", () => kv.getMany(keys)),
    list: kv.list.bind(kv),
    enqueue: () => Promise.reject(new Error("nobody rings")),
    listenQueue: () => Promise.resolve(),
    close: () => {},
  } as unknown as Kv;
}

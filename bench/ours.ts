/** Our side of a run: one phase in a fresh process on a fresh file, and the bare loop. */
import { answerOf, deno } from "./children.ts";
import type { Found } from "./engine.ts";

export interface Ours {
  /** @param options `file`: a prepared store, kept; else a new one, removed. */
  phase(role: string, options: { n: number; seconds?: number; file?: string }): Promise<Found>;
  bare(n: number): Promise<Found>;
  newFile(): string;
}

export function makeOurs(dir: string, origin: string): Ours {
  let files = 0;
  const newFile = () => `${dir}/${++files}.db`;
  return {
    newFile,
    async phase(role, { n, seconds = 0, file }) {
      const store = file ?? newFile();
      const options = JSON.stringify({ file: store, origin, seconds, n });
      const found = await answerOf<Found>(deno("bench/engine.ts", [role, options]));
      if (file === undefined) {
        for (const suffix of ["", "-wal", "-shm"]) await Deno.remove(store + suffix).catch(() => {});
      }
      return found;
    },
    async bare(n) {
      return await answerOf<Found>(deno("bench/bare.ts", [JSON.stringify({ origin, n })]));
    },
  };
}

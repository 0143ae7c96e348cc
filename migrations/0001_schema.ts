import type { Migration } from "./runner.ts";

/** The first version: the key families of `lib/keys.ts`. Nothing to move; the runner writes the schema row. */
export const schema0001: Migration = {
  version: 1,
  name: "schema",
  step: () => Promise.resolve({ writes: [], done: true }),
};

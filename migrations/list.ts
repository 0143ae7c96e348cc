/** Every migration, in order. A new one goes to the end under the next number; one that was released is never edited. */
import { schema0001 } from "./0001_schema.ts";
import { compactRows0002 } from "./0002_compact_rows.ts";
import type { Migration } from "./runner.ts";

export const MIGRATIONS: readonly Migration[] = [schema0001, compactRows0002];

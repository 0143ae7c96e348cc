/**
 * Families whose keys end in ULIDs, and whose rows may be blocks: one row that tells of several things which one commit wrote within one
 * bucket of time (32 ms), under the first of their ids. A scattered insert costs much more than its bytes, so what every event of the hot
 * path writes is written by the commit instead. Blocks of several commits and isolates may overlap inside a bucket, never across two,
 * so a reader merges bucket by bucket.
 */
import { after, within } from "../lib/keys.ts";
import { MAX_BLOCK_BYTES } from "../lib/limits.ts";
import type { Kv, KvKey } from "../lib/edge/kv.ts";

/** Characters of a ULID that name its bucket: all of its time but the last five bits. */
export const BUCKET_CHARS = 9;
/** The rest of it. */
export const TAIL_CHARS = 26 - BUCKET_CHARS;
export const BUCKET_MS = 32;
/** Bytes a character of a text may take. */
export const WIDE_BYTES = 2;

/** Rows as the texts of blocks, in as few as fit a value. */
export function inBlocks<R>(
  rows: readonly R[],
  textOf: (rows: readonly R[]) => string,
): { first: R; text: string }[] {
  const text = textOf(rows);
  if (text.length * WIDE_BYTES <= MAX_BLOCK_BYTES) return [{ first: rows[0]!, text }];
  const middle = rows.length >> 1;
  return [...inBlocks(rows.slice(0, middle), textOf), ...inBlocks(rows.slice(middle), textOf)];
}

/** What all entries of a block say is said once. */
export function column<R, T>(rows: readonly R[], of: (row: R) => T): T[] {
  const first = of(rows[0]!);
  return rows.every((row) => of(row) === first) ? [first] : rows.map(of);
}

export const inColumn = <T>(column: readonly T[], i: number): T => column[column.length === 1 ? 0 : i]!;

/** What is said of each, of one length, end to end. */
export function joined<R>(rows: readonly R[], of: (row: R) => string): string {
  let text = "";
  for (const row of rows) text += of(row);
  return text;
}

/** The pieces of what was joined. */
export const parts = (text: string, chars: number): string[] =>
  Array.from({ length: text.length / chars }, (_, i) => text.slice(i * chars, (i + 1) * chars));

/** Positions in a family, which are ids or their beginnings: `from` inclusive, `to` exclusive. */
export interface Range {
  from?: string | undefined;
  to?: string | undefined;
  /** The last first. */
  reverse?: boolean;
}

/** How a family is read. */
export interface Blocks<V, E> {
  family: KvKey;
  /** Characters in front of the ULID of a position. */
  prefix: number;
  /** What a row tells of, in any order. */
  entries(position: string, value: V): readonly E[];
  /** Where an entry is, as a position. */
  at(entry: E): string;
}

/** The entries of a family in the order of their ids, read as far as they are asked for. */
export async function* entriesIn<V, E>(kv: Kv, blocks: Blocks<V, E>, range: Range): AsyncGenerator<E> {
  const { from = "", to, reverse = false } = range;
  const bucketOf = (position: string) => position.slice(0, blocks.prefix + BUCKET_CHARS);
  const inOrder = (entries: E[]) =>
    entries.sort((a, b) => (blocks.at(a) < blocks.at(b)) === reverse ? 1 : -1);
  let bucket = "", entries: E[] = [];
  // A block that begins before `from` may reach beyond it, but not out of its bucket.
  for await (const row of rowsIn<V>(kv, blocks.family, { from: bucketOf(from), to, reverse })) {
    if (bucketOf(row.position) !== bucket) {
      yield* inOrder(entries);
      bucket = bucketOf(row.position);
      entries = [];
    }
    for (const entry of blocks.entries(row.position, row.value)) {
      const at = blocks.at(entry);
      if (at >= from && (to === undefined || at < to)) entries.push(entry);
    }
  }
  yield* inOrder(entries);
}

/** Rows of the first read and of the largest: a short page reads little, a long scan few times. */
const FIRST_READ = 16, LARGEST_READ = 256;

/** Rows of a family, whose last key parts are positions, in reads that grow. */
export async function* rowsIn<V>(kv: Kv, family: KvKey, { from = "", to, reverse = false }: Range) {
  if (to !== undefined && from >= to) return;
  let start = within(family, from), end = within(family, to ?? 0); // positions are texts: a number sorts behind them
  for (let size = FIRST_READ;; size = Math.min(2 * size, LARGEST_READ)) {
    let read = 0, last: KvKey = start;
    const options = { reverse, limit: size, batchSize: size };
    for await (const { key, value, versionstamp } of kv.list<V>({ start, end }, options)) {
      read++;
      last = key;
      yield { position: key.at(-1) as string, key, value, versionstamp };
    }
    if (read < size) return;
    if (reverse) end = last;
    else start = after(last);
  }
}

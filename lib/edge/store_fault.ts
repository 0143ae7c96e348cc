/**
 * Faults of the store itself, told apart from mistakes of its caller. Deno KV throws both as `TypeError`; what SQLite says is
 * all there is to go by. Of a remote store there are no such words: its faults stay unknown errors.
 */

/**
 * `locked`: another process keeps the file; `full`: no space left. Nothing was written of either, for certain: SQLite has
 * rolled the commit back. `broken`: the file cannot be read or written, and what became of a commit is unknown.
 */
export type StoreFault = "locked" | "full" | "broken";

const SAYS: [text: string, fault: StoreFault][] = [
  ["database is locked", "locked"],
  ["database table is locked", "locked"],
  ["database or disk is full", "full"],
  ["disk I/O error", "broken"],
  ["attempt to write a readonly database", "broken"],
  ["unable to open database file", "broken"],
];

/** Which fault of the store an error tells of; null: another error. */
export function storeFault(error: unknown): StoreFault | null {
  if (!(error instanceof Error)) return null;
  return SAYS.find(([text]) => error.message.includes(text))?.[1] ?? null;
}

/** Whether it is certain that a commit which threw this wrote nothing, so that it may be made again. */
export function nothingWritten(error: unknown): boolean {
  const fault = storeFault(error);
  return fault === "locked" || fault === "full";
}

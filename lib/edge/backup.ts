/**
 * A copy of a KV file, taken while services work on it. The file is SQLite in WAL mode, so one read transaction sees one moment of
 * it: SQLite's backup copies what that transaction sees, in one step, and blocks no writer. KV's own list reads page by page and is no
 * snapshot. (`VACUUM INTO` would do, too, but Deno allows it with --allow-all alone.)
 *
 * A copy appears whole or not at all: it is made under a name of its own, checked, made durable, then linked to its place, which must
 * be free. Other stores (remote, the platform's) have means of their own; they are refused here.
 */
import { Buffer } from "node:buffer";
import { backup, DatabaseSync } from "node:sqlite";
import { kvPlace } from "./open_kv.ts";
import type { Random } from "./ports.ts";

/** The copy could not be made; the message says why and what to do. Nothing was left behind. */
export class BackupError extends Error {
  override name = "BackupError";
}

export interface Copied {
  bytes: number;
  /** Rows of the KV, queue messages not counted. */
  rows: number;
  /** The newest version in it: every commit up to this one is in the copy, none after. 20 hex digits, as KV shows them. */
  versionstamp: string;
}

const FILE_MODE = 0o600;
/** What SQLite keeps beside a database. */
const COMPANIONS = ["", "-wal", "-shm", "-journal"];
/** How long to wait for whoever holds the file's locks. */
const BUSY_MS = 10_000;
/** More pages than a file can have. In several steps the copy would begin anew with every commit between them. */
const ALL_PAGES = 2 ** 30;
const TABLES = ["kv", "data_version", "queue", "queue_running", "migration_state"];

/**
 * Copies the KV file `from` to `to`, which must not exist, nor a file SQLite would keep beside it.
 * @throws BackupError when `from` is no KV file, `to` is taken, or the disk refuses.
 */
export async function copyStore(from: string, to: string, random: Pick<Random, "bytes">): Promise<Copied> {
  for (const path of [from, to]) {
    if (kvPlace(path) !== "file") {
      throw new BackupError(
        `Cannot copy ${path === from ? "from" : "to"} ${
          place(path)
        }: only a store in a file is copied like this. ` +
          "A remote or platform store is backed up by its own operator.",
      );
    }
  }
  for (const companion of COMPANIONS) await refuseTaken(to + companion);
  await mustExist(from);
  const draft = `${to}.${Buffer.from(random.bytes(8)).toString("hex")}.part`;
  try {
    // Nobody else may read it, from its first byte on.
    (await Deno.open(draft, { write: true, createNew: true, mode: FILE_MODE })).close();
    await copyPages(from, draft);
    const copied = inspect(draft);
    await persist(draft);
    const { size } = await Deno.stat(draft);
    // Linked, not renamed: of two copies that race for the name one fails, and nothing is ever overwritten.
    await Deno.link(draft, to).catch((error) => {
      throw error instanceof Deno.errors.AlreadyExists ? taken(to) : error;
    });
    await persist(folderOf(to));
    return { ...copied, bytes: size };
  } catch (error) {
    if (error instanceof BackupError) throw error;
    throw new BackupError(`Cannot copy ${from} to ${to}: ${(error as Error).message}.`, { cause: error });
  } finally {
    for (const companion of COMPANIONS) await removed(draft + companion);
  }
}

async function copyPages(from: string, draft: string): Promise<void> {
  const database = openToRead(from);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    mustBeStore(database, from);
    await backup(database, draft, { rate: ALL_PAGES });
  } finally {
    database.close();
  }
}

/** Opens for reading alone: a service beside it is not held up, and nothing of the original can change. */
function openToRead(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true });
  } catch (error) {
    throw new BackupError(`Cannot read ${path}: ${(error as Error).message}.`, { cause: error });
  }
}

function mustBeStore(database: DatabaseSync, path: string): void {
  let tables: unknown[];
  try {
    tables = database.prepare("SELECT name FROM sqlite_master").all().map((row) => row.name);
  } catch {
    tables = [];
  }
  if (!TABLES.every((name) => tables.includes(name))) {
    throw new BackupError(`Cannot copy ${path}: it is not a Deno KV file. Check the path.`);
  }
}

/** Reads the copy from end to end, and makes one file of it: in WAL mode, which KV sets again, it would need companions. */
function inspect(path: string): Pick<Copied, "rows" | "versionstamp"> {
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA journal_mode = DELETE");
    const [check] = database.prepare("PRAGMA integrity_check(1)").all();
    if (check?.integrity_check !== "ok") {
      throw new BackupError(
        `Cannot use the copy: it is damaged (${check?.integrity_check}). Check the disk.`,
      );
    }
    const rows = database.prepare("SELECT count(*) AS n FROM kv").get()!.n as number;
    const version = database.prepare("SELECT max(version) AS n FROM data_version").get()!.n as number | null;
    // KV shows a version as ten bytes of which the last two are zero.
    return { rows, versionstamp: (version ?? 0).toString(16).padStart(16, "0") + "0000" };
  } finally {
    database.close();
  }
}

async function refuseTaken(path: string): Promise<void> {
  try {
    await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw new BackupError(`Cannot write ${path}: ${(error as Error).message}.`, { cause: error });
  }
  throw taken(path);
}

async function mustExist(path: string): Promise<void> {
  const found = await Deno.stat(path).catch(() => null);
  if (!found?.isFile) throw new BackupError(`Cannot read ${path}: there is no such file. Check the path.`);
}

/** Waits until the disk has it. */
async function persist(path: string): Promise<void> {
  using file = await Deno.open(path);
  await file.sync();
}

async function removed(path: string): Promise<void> {
  await Deno.remove(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

const folderOf = (path: string): string =>
  path.includes("/") ? path.slice(0, path.lastIndexOf("/")) || "/" : ".";

/** A URL may hold credentials: its host alone is shown. */
const place = (path: string): string => kvPlace(path) === "remote" ? new URL(path).host : path;

const taken = (path: string) =>
  new BackupError(
    `Cannot write ${path}: it exists already, and nothing is ever overwritten. Choose another name.`,
  );

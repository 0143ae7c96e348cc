/**
 * Opens the store: a file of this process, memory for tests, a remote KV (Deno KV Connect), or the platform's own.
 */
import { dirname } from "node:path";
import { patient, patiently } from "./patience.ts";
import { realTimers, type Timers } from "./ports.ts";

/** Where `PM_KV_PATH` points. `platform` is what `Deno.openKv()` opens on Deno Deploy. */
export type KvPlace = "memory" | "file" | "remote" | "platform";

export interface OpenedKv {
  kv: Deno.Kv;
  place: KvPlace;
  /** Commits worth having under way at once: a file takes one at a time. */
  maxInFlight: number;
}

export const PLATFORM_KV = "platform";
const REMOTE_IN_FLIGHT = 8;
/** Nobody but the service's user may look into the folder. */
const FOLDER_MODE = 0o700;

/** The store could not be opened; the message says where and what to do. */
export class OpenKvError extends Error {
  override name = "OpenKvError";
}

export function kvPlace(path: string): KvPlace {
  if (path === ":memory:") return "memory";
  if (path === PLATFORM_KV) return "platform";
  return /^https?:\/\//.test(path) ? "remote" : "file";
}

/** @param path `PM_KV_PATH`. Makes the file's folder (mode 0700). Throws `OpenKvError`. */
export async function openKv(path: string, timers: Timers = realTimers): Promise<OpenedKv> {
  const place = kvPlace(path);
  try {
    if (place === "file") Deno.mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    const open = () => patiently(() => Deno.openKv(place === "platform" ? undefined : path), timers);
    const kv = await open();
    if (place === "file") {
      readApart(patient(kv, timers), await open().catch((error) => (kv.close(), Promise.reject(error))));
    }
    return { kv, place, maxInFlight: place === "memory" || place === "file" ? 1 : REMOTE_IN_FLIGHT };
  } catch (error) {
    throw new OpenKvError(explain(path, place, error), { cause: error });
  }
}

/**
 * One store of two connections to its file. A connection does one thing at a time, so a read would wait for the commits before it,
 * fsync included; on its own connection it waits for none, and still sees every commit that was answered.
 */
function readApart(kv: Deno.Kv, reader: Deno.Kv): void {
  kv.get = reader.get.bind(reader);
  kv.getMany = reader.getMany.bind(reader);
  kv.list = reader.list.bind(reader);
  const close = kv.close.bind(kv);
  kv.close = () => {
    reader.close();
    close();
  };
}

function explain(path: string, place: KvPlace, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  if (place === "file") {
    return `Cannot open the store file ${path}: ${reason}. Check that PM_KV_PATH names a Deno KV file in a folder ` +
      "this user may write to, and that the process was started with --allow-read and --allow-write for it.";
  }
  if (place === "remote") {
    return `Cannot open the remote store ${
      new URL(path).host
    }: ${reason}. Check PM_KV_PATH and DENO_KV_ACCESS_TOKEN.`;
  }
  return `Cannot open the store: ${reason}. Start with --unstable-kv, or set PM_KV_PATH to a file.`;
}

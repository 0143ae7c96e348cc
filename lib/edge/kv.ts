/** The part of Deno KV the system uses, as a port: real `Deno.Kv` fits it, and so does the simulator's store. */
export type KvKey = Deno.KvKey;
export type KvEntry<T> = Deno.KvEntryMaybe<T>;

export type Kv = Pick<
  Deno.Kv,
  "get" | "getMany" | "list" | "atomic" | "enqueue" | "listenQueue" | "close"
>;

/** A condition of a commit: the key's version, null for "not there". */
export interface Check {
  key: KvKey;
  versionstamp: string | null;
}

export type Write =
  /** `fresh`: the key was made for this write, so no other unit can name it and none has to be asked. */
  | { op: "set"; key: KvKey; value: unknown; expireIn?: number; fresh?: true }
  | { op: "delete"; key: KvKey }
  /** A doorbell: rung in the same commit as the job it is for. */
  | { op: "enqueue"; value: unknown; delay: number };

/**
 * What an erasure job takes out of a mailbox: state rows of a message, a thread or the whole identity. The events that
 * carry them are the job's (`keys.eventsOfMessage`). Sequence rows stay: a number is never given out twice (O2).
 */
import type { Kv, KvKey } from "../../lib/edge/kv.ts";
import type { Id } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import type { AddressRow, MessageRow } from "../../lib/payloads/rows.ts";
import type { Owners, Tx } from "../owner.ts";
import { headerKeys, loadHeader, PARTS, stateKey, textKeys } from "./store.ts";
import { leaveThread } from "./threads.ts";

/** Rows one commit takes away; well under its 1,000 mutations. */
const ROWS_PER_COMMIT = 400;

/** Deletes all rows of a message within the mailbox's transaction; false when it is not there (any more). */
export async function eraseMessage(tx: Tx, message: string): Promise<boolean> {
  const row = await tx.get<MessageRow>(stateKey(tx.owner, "message", message));
  if (row === null) return false;
  const header = await loadHeader(tx, row);
  for (const key of [...headerKeys(tx.owner, row), ...textKeys(tx.owner, row)]) tx.delete(key);
  tx.delete(stateKey(tx.owner, "message", message));
  tx.delete(stateKey(tx.owner, "recipients", message));
  await leaveThread(tx, { thread: row.thread_id, message, rfcId: header.message_id });
  return true;
}

/** Ids of a mailbox's messages, or of one thread's, in order. For the job's list of what to erase. */
export async function* messagesOf(
  kv: Kv,
  owner: OwnerRef,
  thread?: Id<"thread">,
): AsyncGenerator<Id<"message">> {
  const prefix = thread === undefined
    ? stateKey(owner, "message")
    : stateKey(owner, "thread_message", thread);
  for await (const { key } of kv.list({ prefix })) yield key.at(-1) as Id<"message">;
}

/** Whether a mailbox holds this message or thread. */
export async function holds(
  kv: Kv,
  owner: OwnerRef,
  part: "message" | "thread",
  id: string,
): Promise<boolean> {
  return (await kv.get(stateKey(owner, part, id))).value !== null;
}

/**
 * Deletes every state row of an identity and its entries in the tenant's indexes, in as many commits as it takes; answers
 * how many rows. Runs again from where it broke off. Nothing new comes in meanwhile: the identity is `deleting`, and its own
 * row goes last.
 */
export async function eraseIdentity(d: { kv: Kv; owners: Owners }, owner: OwnerRef): Promise<number> {
  let erased = 0;
  for (const part of [...PARTS].reverse()) {
    for (;;) {
      const page = await firstRows(d.kv, stateKey(owner, part));
      if (page.length === 0) break;
      await d.owners.run(owner, (tx) => erasePage(tx, page));
      erased += page.length;
    }
  }
  await d.owners.run(owner, (tx) => {
    tx.delete(keys.ownerOf(owner.id));
    tx.delete(keys.ownerOfTenant(owner));
  });
  return erased;
}

async function firstRows(kv: Kv, prefix: KvKey): Promise<KvKey[]> {
  const page: KvKey[] = [];
  // A list by prefix leaves out the row under the prefix itself.
  if ((await kv.get(prefix)).value !== null) page.push(prefix);
  for await (const { key } of kv.list({ prefix }, { limit: ROWS_PER_COMMIT })) page.push(key);
  return page;
}

async function erasePage(tx: Tx, page: KvKey[]): Promise<void> {
  const addresses = stateKey(tx.owner, "addresses");
  for (const key of page) {
    if (key.length === addresses.length && key.at(-1) === addresses.at(-1)) {
      for (const row of await tx.get<AddressRow[]>(addresses) ?? []) freeAddress(tx, row);
    }
    tx.delete(key);
  }
}

function freeAddress(tx: Tx, row: AddressRow): void {
  if (row.status !== "retired") tx.delete(keys.mailAddress(tx.owner.tenant, row.address));
  if (row.retire_at !== null) tx.delete(keys.retireDue(row.retire_at, row.id, tx.owner));
}

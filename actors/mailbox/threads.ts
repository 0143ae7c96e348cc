/** Which thread a message belongs to: the one of the mail it answers, by `In-Reply-To`, then `References` from the newest. */
import type { Id } from "../../lib/ids.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import type { RfcIdRow, ThreadRow } from "../../lib/payloads/rows.ts";
import type { Tx } from "../owner.ts";
import { badField, stateKey } from "./store.ts";

/** References looked up; each is a read that the commit checks. */
const MAX_LOOKED_UP = 10;

export async function findThread(
  tx: Tx,
  mail: Pick<ParsedMessage, "in_reply_to" | "references">,
): Promise<Id<"thread"> | null> {
  const answered = new Set([mail.in_reply_to, ...mail.references.toReversed()]);
  for (const rfcId of [...answered].slice(0, MAX_LOOKED_UP)) {
    if (rfcId === null) continue;
    const known = await tx.get<RfcIdRow>(stateKey(tx.owner, "rfc_id", rfcId));
    if (known !== null) return known.thread as Id<"thread">;
  }
  return null;
}

/** @throws 400 at `thread_id` when the caller named a thread that is not there. */
export async function enterThread(
  tx: Tx,
  entry: { thread: Id<"thread">; message: string; rfcId: string | null; mustExist: Id<"thread"> | undefined },
): Promise<void> {
  const key = stateKey(tx.owner, "thread", entry.thread);
  const thread = await tx.get<ThreadRow>(key);
  if (thread === null && entry.mustExist !== undefined) {
    throw badField("thread_id", "is no thread of this identity");
  }
  tx.set(key, { messages: (thread?.messages ?? 0) + 1, last_at: tx.now } satisfies ThreadRow);
  tx.set(stateKey(tx.owner, "thread_message", entry.thread, entry.message), true);
  if (entry.rfcId === null) return;
  const rfc = stateKey(tx.owner, "rfc_id", entry.rfcId);
  // A copy of a mail does not take over: replies belong to the first.
  if (await tx.get<RfcIdRow>(rfc) !== null) return;
  tx.set(rfc, { message: entry.message, thread: entry.thread } satisfies RfcIdRow);
}

/** Undoes `enterThread` for a message that is erased. */
export async function leaveThread(
  tx: Tx,
  entry: { thread: string; message: string; rfcId: string | null },
): Promise<void> {
  const key = stateKey(tx.owner, "thread", entry.thread);
  const thread = await tx.get<ThreadRow>(key);
  if (thread !== null && thread.messages > 1) tx.set(key, { ...thread, messages: thread.messages - 1 });
  else tx.delete(key);
  tx.delete(stateKey(tx.owner, "thread_message", entry.thread, entry.message));
  if (entry.rfcId === null) return;
  const rfc = stateKey(tx.owner, "rfc_id", entry.rfcId);
  if ((await tx.get<RfcIdRow>(rfc))?.message === entry.message) tx.delete(rfc);
}

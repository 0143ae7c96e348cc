/**
 * Erasure, step by step (document, "Retention": erasure deletes the outbox rows that reference erased messages).
 *
 * State goes before events: once a message's rows are gone no command can add an event about it, so the events found then
 * are all there will be. Every step can run again from where it broke off; counts are exact, because each event is counted
 * in the commit that erases it.
 */
import { unreachable } from "../../lib/errors.ts";
import { rfc3339 } from "../../lib/envelope.ts";
import type { EventKey, Id, IdentityId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import type { ErasureRow } from "../../lib/payloads/job_rows.ts";
import type { ErasedRequest } from "../../lib/payloads/job.ts";
import { eraseIdentity, eraseMessage, messagesOf } from "../mailbox/erase.ts";
import { behind, eventsIn } from "../event_index.ts";
import type { Tx } from "../owner.ts";
import { ending, eraseEvent, EVENTS_PER_COMMIT, type JobDeps, step, tell } from "./job_store.ts";

const move = step<ErasureRow>;
const MESSAGES_AT_ONCE = 20;
/** Events of the index looked at in one step while few of them are the identity's. */
const SCANNED_PER_STEP = 2_000;

export async function eraseStep(d: JobDeps, owner: OwnerRef, row: ErasureRow): Promise<void> {
  switch (row.step) {
    case "find":
      return await find(d, owner, row);
    case "messages":
      await Promise.all(
        row.current.map((id) => d.owners.run(mailboxOf(owner, row), (tx) => eraseMessage(tx, id))),
      );
      return await move(d, owner, row, () => ({ step: "message_events" }));
    case "message_events":
      return await messageEvents(d, owner, row);
    case "mailbox":
      await eraseIdentity(d, mailboxOf(owner, row));
      return await move(d, owner, row, () => ({ step: "identity_events" }));
    case "identity_events":
      return await identityEvents(d, owner, row);
    case "finish":
      return await move(d, owner, row, (tx) => finish(tx, row));
    default:
      return unreachable(row.step);
  }
}

/** The erasure as its event and its receipt say it; null until it is complete. */
export function erasedRequest(row: ErasureRow): ErasedRequest | null {
  if (row.completed_at === null) return null;
  return {
    id: row.id,
    scope: row.scope,
    identity_id: row.identity_id,
    message_id: row.message_id,
    thread_id: row.thread_id,
    requested_at: rfc3339(row.created_at),
    receipt: { messages: row.messages, events: row.events, completed_at: rfc3339(row.completed_at) },
  };
}

const mailboxOf = (owner: OwnerRef, row: ErasureRow): OwnerRef => ({
  kind: "mailbox",
  tenant: owner.tenant,
  id: row.identity_id,
});

/** The next messages to erase. Those erased are no longer listed, so the list is the progress. */
async function find(d: JobDeps, owner: OwnerRef, row: ErasureRow): Promise<void> {
  const current: string[] = [];
  if (row.scope === "message") {
    if (row.messages === 0) current.push(row.message_id!);
  } else {
    const thread = row.scope === "thread" ? row.thread_id as Id<"thread"> : undefined;
    for await (const id of messagesOf(d.kv, mailboxOf(owner, row), thread)) {
      if (current.push(id) === MESSAGES_AT_ONCE) break;
    }
  }
  const after = row.scope === "identity" ? "mailbox" : "finish";
  await move(d, owner, row, () => ({ current, step: current.length > 0 ? "messages" : after }));
}

async function messageEvents(d: JobDeps, owner: OwnerRef, row: ErasureRow): Promise<void> {
  const [message, ...rest] = row.current;
  if (message === undefined) return await move(d, owner, row, () => ({ step: "find" }));
  const found: EventKey[] = [];
  const rows = d.kv.list({ prefix: keys.eventsOfMessage(message) }, { limit: EVENTS_PER_COMMIT });
  for await (const entry of rows) found.push(entry.key[2] as EventKey);
  await move(d, owner, row, async (tx) => {
    if (found.length === 0) return { current: rest, messages: row.messages + 1 };
    let erased = 0;
    for (const key of found) {
      if (await eraseEvent(tx, key)) erased++;
      tx.delete(keys.eventOfMessage(message, key));
    }
    return { events: row.events + erased };
  });
}

/** What is left of an identity's events: those that carry no message. */
async function identityEvents(d: JobDeps, owner: OwnerRef, row: ErasureRow): Promise<void> {
  const found: EventKey[] = [];
  let last = row.cursor, scanned = 0;
  const from = last === null ? "" : behind(last);
  for await (const { key, identity } of eventsIn(d.kv, keys.eventsOfTenant(owner.tenant), { from })) {
    scanned++;
    last = key;
    if (identity === row.identity_id) found.push(key);
    if (found.length === EVENTS_PER_COMMIT || scanned === SCANNED_PER_STEP) break;
  }
  await move(d, owner, row, async (tx) => {
    let erased = 0;
    for (const key of found) if (await eraseEvent(tx, key)) erased++;
    const events = row.events + erased;
    if (found.length === EVENTS_PER_COMMIT || scanned === SCANNED_PER_STEP) return { events, cursor: last };
    return { events, cursor: null, step: "finish" };
  });
}

async function finish(tx: Tx, row: ErasureRow): Promise<Partial<ErasureRow>> {
  const completed = { ...row, completed_at: tx.now };
  if (row.scope === "identity") {
    const data = { identity_id: row.identity_id, erasure_request_id: row.id };
    await tell(tx, "identity.deleted", data, row.identity_id as IdentityId);
  }
  const event = await tell(tx, "erasure.completed", { erasure_request: erasedRequest(completed) });
  return { status: "completed", completed_at: tx.now, due: null, event: ending(event) };
}

/**
 * Addresses that are not written to any more. A row is filed under a keyed hash of the address; its event id is derived
 * from identity and address, so that the same suppression twice is one event (reference §3, §5).
 */
import {
  maskAddress,
  suppressionCreated,
  suppressionData,
  suppressionEventId,
  suppressionHash,
  type SuppressionReason,
} from "../../lib/payloads/suppression.ts";
import type { SuppressionRow } from "../../lib/payloads/rows.ts";
import type { Id } from "../../lib/ids.ts";
import type { Tx } from "../owner.ts";
import { type Done, done, emit, loadIdentity, loadMessage, stateKey } from "./store.ts";

export interface NewSuppression {
  address: string;
  reason: SuppressionReason;
  source_message_id: Id<"message"> | null;
}

/** Suppresses an address. Again: the first row, and the first event marked `duplicate`. */
export async function suppress(
  tx: Tx,
  hashKey: Uint8Array,
  input: NewSuppression,
): Promise<Done<SuppressionRow>> {
  const key = stateKey(tx.owner, "suppression", suppressionHash(hashKey, input.address));
  const before = await tx.get<SuppressionRow>(key);
  const row: SuppressionRow = before ?? {
    address_hint: maskAddress(input.address),
    reason: input.reason,
    source_message_id: input.source_message_id,
    created_at: tx.now,
  };
  if (before === null) tx.set(key, row);
  const event = await emit(tx, suppressionCreated, suppressionData(row), {
    event_id: suppressionEventId(hashKey, tx.owner.id, input.address),
    ...(row.source_message_id === null ? {} : { message: row.source_message_id }),
  });
  return done(row, event);
}

/** The route's command. @throws `message_not_found` for a source that is not there. */
export async function createSuppression(
  tx: Tx,
  hashKey: Uint8Array,
  input: NewSuppression,
): Promise<Done<SuppressionRow>> {
  await loadIdentity(tx);
  if (input.source_message_id !== null) await loadMessage(tx, input.source_message_id);
  return await suppress(tx, hashKey, input);
}

export const isSuppressed = async (tx: Tx, hashKey: Uint8Array, address: string): Promise<boolean> =>
  await tx.get(stateKey(tx.owner, "suppression", suppressionHash(hashKey, address))) !== null;

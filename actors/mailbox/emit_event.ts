/**
 * EmitEvent (document, "Event envelope and payloads"): events whose cause lies outside the mailbox, written into its
 * sequence. Key events keep track of the keys, so that a change that changes nothing emits nothing (`identity_key_events`).
 */
import { invalidState } from "../../lib/errors.ts";
import type { EventId, Id } from "../../lib/ids.ts";
import { keyCreated, keyRevoked, keyRotated } from "../../lib/payloads/identity.ts";
import { verificationReceived } from "../../lib/payloads/message.ts";
import type { SigningKeyRow } from "../../lib/payloads/rows.ts";
import { quotaWarning } from "../../lib/payloads/suppression.ts";
import type { Appended, Tx } from "../owner.ts";
import { badField, type Done, done, identityId, loadIdentity, loadMessage, stateKey } from "./store.ts";
import type * as z from "zod";

/** The types a caller may emit; every other one is the effect of a command. */
export const emittable = [keyCreated, keyRotated, keyRevoked, quotaWarning, verificationReceived] as const;

/** One of `emittable` with `data` its schema accepted. `wire` goes out instead of it when given, as it was written. */
export type Emission =
  & { event_id?: EventId | undefined; wire?: unknown }
  & (
    | { type: "identity.key_created"; data: z.infer<typeof keyCreated.data> }
    | { type: "identity.key_rotated"; data: z.infer<typeof keyRotated.data> }
    | { type: "identity.key_revoked"; data: z.infer<typeof keyRevoked.data> }
    | { type: "quota.warning"; data: z.infer<typeof quotaWarning.data> }
    | { type: "verification.received"; data: z.infer<typeof verificationReceived.data> }
  );

/** @throws 409 for a key change that is impossible; 400 for an identity or a message that is not this mailbox's. */
export async function emitEvent(tx: Tx, emission: Emission): Promise<Done<{ emitted: boolean }>> {
  await loadIdentity(tx);
  const { type, data, event_id, wire } = emission;
  if ("identity_id" in data && data.identity_id !== tx.owner.id) {
    throw badField("data.identity_id", "is not the identity of the path");
  }
  const change = await changeOf(tx, emission);
  if (change === null) return done({ emitted: false });
  const message = "message_id" in data ? data.message_id : undefined;
  const event: Appended = await tx.append({
    type,
    data: wire ?? data,
    identity: identityId(tx),
    ...(event_id === undefined ? {} : { event_id }),
    ...(message === undefined ? {} : { message }),
  });
  // A deterministic id seen before: no event, so no change either (O1).
  if (!event.duplicate) change();
  return done({ emitted: !event.duplicate }, event);
}

/** The change of rows the event stands for; null when they say so already. */
async function changeOf(tx: Tx, emission: Emission): Promise<(() => void) | null> {
  switch (emission.type) {
    case "identity.key_created": {
      const { kid } = emission.data;
      if (await loadKey(tx, kid) !== null) return null;
      return () => saveKey(tx, kid, { status: "active", created_at: tx.now });
    }
    case "identity.key_rotated":
      return await rotation(tx, emission.data.kid, emission.data.previous_kid);
    case "identity.key_revoked": {
      const { kid } = emission.data;
      const key = await loadKey(tx, kid);
      if (key === null) throw unknownKey();
      return key.status === "revoked" ? null : () => saveKey(tx, kid, { ...key, status: "revoked" });
    }
    case "verification.received":
      await loadMessage(tx, emission.data.message_id as Id<"message">);
      return () => {};
    case "quota.warning":
      return () => {};
  }
}

async function rotation(tx: Tx, kid: string, previousKid: string | null): Promise<(() => void) | null> {
  if (await loadKey(tx, kid) !== null) return null;
  const fresh = () => saveKey(tx, kid, { status: "active", created_at: tx.now });
  if (previousKid === null) return fresh;
  const previous = await loadKey(tx, previousKid);
  if (previous === null) throw unknownKey();
  if (previous.status !== "active") {
    throw invalidState(
      `Cannot rotate the key: the previous one is ${previous.status}.`,
      "Name the active key.",
    );
  }
  return () => {
    saveKey(tx, previousKid, { ...previous, status: "retired" });
    fresh();
  };
}

const unknownKey = () =>
  invalidState(
    "Cannot change the key: the identity has none of this name.",
    "Emit its identity.key_created first.",
  );

const loadKey = (tx: Tx, kid: string) => tx.get<SigningKeyRow>(stateKey(tx.owner, "key", kid));
const saveKey = (tx: Tx, kid: string, row: SigningKeyRow) => tx.set(stateKey(tx.owner, "key", kid), row);

/**
 * `suppression.created` and `quota.warning` (reference §5), and the keyed hashes behind suppressions: an address is
 * shown masked and filed under an HMAC, so that neither rows nor ids tell it.
 */
import { createHmac } from "node:crypto";
import * as z from "zod";
import { type EventId, PREFIX, ulidFrom, ulidTime } from "../ids.ts";
import { EXAMPLE } from "./examples.ts";
import type { SuppressionRow } from "./rows.ts";
import { idOf, mailboxType, word } from "./shapes.ts";

export const suppressionReason = z.enum(["hard_bounce", "complaint", "manual"]);
export type SuppressionReason = z.infer<typeof suppressionReason>;

export const suppressionCreated = mailboxType(
  "suppression.created",
  z.strictObject({
    address_hint: z.string().max(254),
    reason: suppressionReason,
    source_message_id: idOf("message").nullable(),
  }),
  "An address is not written to any more. Its event id is derived from the identity and the address, so it is sent once.",
  { address_hint: "m***@l***.example", reason: "hard_bounce", source_message_id: EXAMPLE.outbound },
);

export function suppressionData(row: SuppressionRow): z.infer<typeof suppressionCreated.data> {
  return {
    address_hint: row.address_hint,
    reason: row.reason,
    source_message_id: row.source_message_id,
  };
}

/** One spelling of an address for comparing: lower case. */
export const normalAddress = (address: string): string => address.toLowerCase();

/** `marta@lindenhof.example` → `m***@l***.example`: the first letters and the top-level domain. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf("@");
  const dot = address.lastIndexOf(".");
  const first = (text: string) => [...text][0] ?? "";
  return `${first(address)}***@${first(address.slice(at + 1))}***${dot > at ? address.slice(dot) : ""}`;
}

/** Hex of HMAC-SHA256(`PM_HASH_KEY`, "suppression:" + address): the name of its row. */
export function suppressionHash(hashKey: Uint8Array, address: string): string {
  return createHmac("sha256", hashKey).update(`suppression:${normalAddress(address)}`).digest("hex");
}

/**
 * The deterministic event id: a ULID of the identity's own creation time and the first 10 bytes of
 * HMAC-SHA256(`PM_HASH_KEY`, "suppression.created:" + identity + ":" + address). Twice is one event.
 */
export function suppressionEventId(hashKey: Uint8Array, identity: string, address: string): EventId {
  const mac = createHmac("sha256", hashKey)
    .update(`suppression.created:${identity}:${normalAddress(address)}`).digest();
  return `${PREFIX.event}_${ulidFrom(ulidTime(identity), mac.subarray(0, 10))}` as EventId;
}

export const quotaWarning = mailboxType(
  "quota.warning",
  z.strictObject({
    metric: word,
    used: z.number().nonnegative(),
    limit: z.number().nonnegative(),
    scope: z.enum(["tenant", "identity"]),
  }),
  "A quota is nearly used up.",
  { metric: "messages_sent_per_day", used: 900, limit: 1_000, scope: "identity" },
);

export const suppressionTypes = [suppressionCreated, quotaWarning];

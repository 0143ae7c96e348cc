/** What reads show of a mailbox, straight from the store: no transaction, but each thing from one snapshot. */
import { invariant, notFound } from "../../lib/errors.ts";
import type { OwnerRef, TenantRow } from "../../lib/keys.ts";
import { MAX_GET_MANY_KEYS } from "../../lib/limits.ts";
import { addressOf, identityOf } from "../../lib/payloads/identity.ts";
import { summarize } from "../../lib/payloads/message.ts";
import type {
  AddressRow,
  IdentityRow,
  MessageHeader,
  MessageRow,
  RecipientsRow,
} from "../../lib/payloads/rows.ts";
import type {
  AddressShape,
  Attachment,
  IdentityShape,
  MessageSummary,
  QuarantineReason,
  Triage,
  Trust,
} from "../../lib/payloads/shapes.ts";
import { capUtf8, textBytes } from "../../lib/text.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { getAll } from "../event_store.ts";
import { headerKeys, joinChunks, stateKey, textKeys } from "./store.ts";

/** An identity with its addresses. */
export type IdentityView = IdentityShape & { addresses: AddressShape[] };

/** @throws `identity_not_found`. */
export async function viewIdentity(kv: Kv, owner: OwnerRef): Promise<IdentityView> {
  const [row, addresses] = await kv.getMany<[IdentityRow, AddressRow[]]>([
    stateKey(owner, "identity"),
    stateKey(owner, "addresses"),
  ]);
  if (row.value === null) throw notFound("identity");
  return { ...identityOf(row.value), addresses: (addresses.value ?? []).map(addressOf) };
}

/** Identities of a tenant in the order asked for; null where one is gone. */
export async function viewIdentities(kv: Kv, owners: OwnerRef[]): Promise<(IdentityShape | null)[]> {
  const rows = await getAll<IdentityRow>(kv, owners.map((owner) => stateKey(owner, "identity")));
  return rows.map(({ value }) => value === null ? null : identityOf(value));
}

/** A message as its owner sees it. A quarantined one shows no text. */
export interface MessageView extends MessageSummary {
  trust: Trust;
  triage: Triage | null;
  quarantine_reason: QuarantineReason | null;
  attachments: Attachment[];
  extracted_text: string | null;
  extracted_text_truncated: boolean;
  /** Outbound: how far each recipient is, by address. */
  recipients: RecipientsRow | null;
}

/** @throws `message_not_found`. */
export async function viewMessage(
  kv: Kv,
  owner: OwnerRef,
  tenant: TenantRow,
  message: string,
): Promise<MessageView> {
  const rowKey = stateKey(owner, "message", message);
  const { value: first } = await kv.get<MessageRow>(rowKey);
  if (first === null) throw notFound("message");
  const header = headerKeys(owner, first), text = textKeys(owner, first);
  const wanted = [rowKey, stateKey(owner, "recipients", message), ...header, ...text];
  // One commit holds an event with the header beside the header itself, so a header has six chunks at most.
  invariant(wanted.length <= MAX_GET_MANY_KEYS, "O1");
  const [row, recipients, ...chunks] = (await kv.getMany<unknown[]>(wanted)).map(({ value }) => value);
  if (row === null) throw notFound("message");
  const parts = chunks as (Uint8Array | null)[];
  return shown(
    row as MessageRow,
    JSON.parse(joinChunks(parts.slice(0, header.length))),
    joinChunks(parts.slice(header.length)),
    recipients as RecipientsRow | null,
    textBytes(tenant.policy.webhook_text_bytes),
  );
}

function shown(
  row: MessageRow,
  header: MessageHeader,
  text: string,
  recipients: RecipientsRow | null,
  limit: number,
): MessageView {
  const capped = capUtf8(text, limit);
  const held = row.status === "quarantined";
  return {
    ...summarize(row, header),
    trust: row.trust,
    triage: row.triage,
    quarantine_reason: row.quarantine_reason,
    attachments: header.attachments,
    extracted_text: held ? null : capped.text,
    extracted_text_truncated: !held && (capped.truncated || row.text_cut),
    recipients,
  };
}

/** Summaries of message rows; null where one was erased meanwhile. */
export async function viewSummaries(
  kv: Kv,
  owner: OwnerRef,
  rows: MessageRow[],
): Promise<(MessageSummary | null)[]> {
  const wanted = rows.map((row) => headerKeys(owner, row));
  const chunks = await getAll<Uint8Array>(kv, wanted.flat());
  let at = 0;
  return rows.map((row, i) => {
    const parts = chunks.slice(at, at += wanted[i]!.length).map(({ value }) => value);
    return parts.includes(null) ? null : summarize(row, JSON.parse(joinChunks(parts)));
  });
}

/**
 * A mailbox's rows as its commands read and write them, within the owner's transaction. Nothing here commits or emits but
 * through `tx`.
 */
import type * as z from "zod";
import type { EventType } from "../../lib/catalogue.ts";
import { invalidRequest, invalidState, invariant, notFound } from "../../lib/errors.ts";
import type { EventId, Id, IdentityId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { MAX_CHUNK_BYTES } from "../../lib/limits.ts";
import type { AddressRow, IdentityRow, MessageHeader, MessageRow } from "../../lib/payloads/rows.ts";
import type { Appended, Tx } from "../owner.ts";

/** Families of a mailbox's state. Erasing an identity empties all of them. */
export const PARTS = [
  "identity",
  "addresses",
  "key",
  "message",
  "header",
  "text",
  "recipients",
  "suppression",
  "thread",
  "thread_message",
  "rfc_id",
] as const;
export type Part = (typeof PARTS)[number];

/** What a command did: the new state, the event it is answered with, and all events it caused. */
export interface Done<T> {
  state: T;
  event: Appended | null;
  events: Appended[];
}

/** A result with its events; the first is the one the answer shows. */
export const done = <T>(state: T, ...events: Appended[]): Done<T> => ({
  state,
  event: events[0] ?? null,
  events,
});

export const stateKey = (owner: OwnerRef, part: Part, ...rest: string[]) =>
  keys.ownerState(owner, part, ...rest);

export const identityId = (tx: Tx): IdentityId => tx.owner.id as IdentityId;

/** Appends an event of the identity. What its strict schema refuses never leaves: that would be our fault. */
export function emit<S extends z.ZodType>(
  tx: Tx,
  type: EventType & { data: S },
  data: z.input<S>,
  about: { message?: string; event_id?: EventId } = {},
): Promise<Appended> {
  const judged = type.data.safeParse(data);
  invariant(judged.success, `O3 (data of ${type.name} fits its schema)`);
  return tx.append({ type: type.name, data, identity: identityId(tx), ...about });
}

/** @throws `identity_not_found`; 409 when it is being deleted, for nothing may happen to it any more. */
export async function loadIdentity(tx: Tx): Promise<IdentityRow> {
  const row = await tx.get<IdentityRow>(stateKey(tx.owner, "identity"));
  if (row === null) throw notFound("identity");
  if (row.status === "deleting") {
    throw invalidState("Cannot change this identity: it is being deleted.", "Use another identity.");
  }
  return row;
}

export const saveIdentity = (tx: Tx, row: IdentityRow): void => tx.set(stateKey(tx.owner, "identity"), row);

export const loadAddresses = async (tx: Tx): Promise<AddressRow[]> =>
  await tx.get<AddressRow[]>(stateKey(tx.owner, "addresses")) ?? [];

export const saveAddresses = (tx: Tx, rows: AddressRow[]): void =>
  tx.set(stateKey(tx.owner, "addresses"), rows);

/** @throws `message_not_found`. */
export async function loadMessage(tx: Tx, message: Id<"message">): Promise<MessageRow> {
  const row = await tx.get<MessageRow>(stateKey(tx.owner, "message", message));
  if (row === null) throw notFound("message");
  return row;
}

export const saveMessage = (tx: Tx, row: MessageRow): void =>
  tx.set(stateKey(tx.owner, "message", row.id), row);

export async function loadHeader(tx: Tx, row: MessageRow): Promise<MessageHeader> {
  return JSON.parse(
    joinChunks(await Promise.all(headerKeys(tx.owner, row).map((key) => tx.get<Uint8Array>(key)))),
  );
}

export const loadText = async (tx: Tx, row: MessageRow): Promise<string> =>
  joinChunks(await Promise.all(textKeys(tx.owner, row).map((key) => tx.get<Uint8Array>(key))));

export const headerKeys = (owner: OwnerRef, row: MessageRow) =>
  chunkKeys(owner, "header", row.id, row.header_chunks);
export const textKeys = (owner: OwnerRef, row: MessageRow) =>
  chunkKeys(owner, "text", row.id, row.text_chunks);

const chunkKeys = (owner: OwnerRef, part: Part, id: string, count: number) =>
  Array.from({ length: count }, (_, index) => stateKey(owner, part, id, chunkName(index)));

/** The text of chunk rows in order. Decoded as one stream, because a cut may lie inside a character. */
export function joinChunks(chunks: (Uint8Array | null)[]): string {
  invariant(chunks.every((chunk) => chunk !== null), "O1 (a message has all its chunks)");
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk!, { stream: true })).join("") + decoder.decode();
}

/** Writes a text as chunk rows under 64 KiB; answers how many. */
export function saveChunks(tx: Tx, part: "header" | "text", id: string, text: string): number {
  const bytes = new TextEncoder().encode(text);
  let count = 0;
  for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
    tx.set(stateKey(tx.owner, part, id, chunkName(count++)), bytes.slice(at, at + MAX_CHUNK_BYTES));
  }
  return count;
}

const chunkName = (index: number): string => String(index).padStart(3, "0");

export const badField = (path: string, message: string) => invalidRequest([{ path, message }]);

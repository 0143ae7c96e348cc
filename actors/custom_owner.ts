/**
 * Owners of kind `custom`: an application's own things, under the application's own keys. Appending is all they do; an
 * owner needs no row beside its sequence, so it exists from its first event on and costs nothing before.
 */
import { invalidRequest } from "../lib/errors.ts";
import type { EventId, TenantId } from "../lib/ids.ts";
import { type JsonText, plainOf } from "../lib/json.ts";
import type { OwnerRef } from "../lib/keys.ts";
import { MAX_BATCH_EVENTS, MAX_OWNER_KEY_BYTES } from "../lib/limits.ts";
import type { EventTypes } from "./event_types.ts";
import type { Appended, Owners } from "./owner.ts";

export interface CustomEvent {
  type: string;
  /** A `JsonText` goes out as the producer wrote it. */
  data: JsonText | unknown;
  /** Seen before by this owner: nothing is appended and the first event is answered. */
  event_id?: EventId | undefined;
}

export interface CustomOwnerDeps {
  owners: Owners;
  types: EventTypes;
}

const encoder = new TextEncoder();

/**
 * The owner behind an application's key.
 * @throws ApiError 400 at path `key`: empty, over 256 bytes of UTF-8, or no Unicode.
 */
export function customOwner(tenant: TenantId, key: string): OwnerRef {
  if (key === "" || !key.isWellFormed() || encoder.encode(key).length > MAX_OWNER_KEY_BYTES) {
    throw invalidRequest(
      [{ path: "key", message: `must be 1 to ${MAX_OWNER_KEY_BYTES} bytes of UTF-8` }],
      "Percent-encode the key as one segment of the path.",
    );
  }
  return { kind: "custom", tenant, id: key };
}

/** Appends one event. @throws ApiError 400 for an unknown type (naming the nearest) or data its schema refuses. */
export async function appendCustom(
  deps: CustomOwnerDeps,
  owner: OwnerRef,
  event: CustomEvent,
): Promise<Appended> {
  await deps.types.check(owner.tenant, event.type, plainOf(event.data));
  return await deps.owners.run(owner, (tx) => tx.append(newEvent(event)));
}

/** Appends up to 100 events in one commit, in order: all or none. Error paths start with `events.<index>.`. */
export async function appendCustomBatch(
  deps: CustomOwnerDeps,
  owner: OwnerRef,
  events: readonly CustomEvent[],
): Promise<Appended[]> {
  if (events.length === 0 || events.length > MAX_BATCH_EVENTS) {
    throw invalidRequest([{ path: "events", message: `must hold 1 to ${MAX_BATCH_EVENTS} events` }]);
  }
  for (const [i, event] of events.entries()) {
    await deps.types.check(owner.tenant, event.type, plainOf(event.data), `events.${i}.`);
  }
  return await deps.owners.run(owner, async (tx) => {
    const appended: Appended[] = [];
    for (const event of events) appended.push(await tx.append(newEvent(event)));
    return appended;
  });
}

function newEvent({ type, data, event_id }: CustomEvent) {
  return event_id === undefined ? { type, data } : { type, data, event_id };
}

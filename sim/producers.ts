/**
 * The applications that append, and what they were told: acknowledged, refused, or nothing (then the append may or may not have
 * landed). Each event carries a number of its own, so the end can tell which append it came from.
 */
import { ApiError } from "../lib/errors.ts";
import type { EventId, IdentityId } from "../lib/ids.ts";
import { keys, type OwnerRef } from "../lib/keys.ts";
import type { Appended, NewEvent } from "../actors/owner.ts";
import type { Isolate } from "./isolate.ts";
import { CANARY } from "./model.ts";
import type { World } from "./world.ts";

export interface Append {
  owner: OwnerRef;
  /** The number in each event's payload. */
  numbers: number[];
  state: "pending" | "acknowledged" | "refused" | "unknown";
  appended: Appended[];
  /** Has an id of the producer's: however often it is sent, there is one event. */
  deterministic: boolean;
}

export interface Wanted {
  type: string;
  identity: IdentityId | null;
  event_id?: EventId;
  /** Characters of padding: over 60,000 the envelope is kept in chunks. */
  padding?: number;
}

export class Producers {
  readonly appends: Append[] = [];
  #number = 0;
  #answers = new Map<Append, Promise<void>>();

  constructor(readonly world: World) {}

  /** One command: all its events and the owner's own count of them, or nothing. */
  append(isolate: Isolate, owner: OwnerRef, wanted: readonly Wanted[]): Append {
    const numbered = wanted.map((event) => ({ ...event, n: this.#number++ }));
    const append: Append = {
      owner,
      numbers: numbered.map(({ n }) => n),
      state: "pending",
      appended: [],
      deterministic: wanted.some(({ event_id }) => event_id !== undefined),
    };
    this.appends.push(append);
    this.#answers.set(append, this.send(isolate, append, numbered));
    return append;
  }

  /** Resolves when the append's first sending was answered; never, if its isolate died. */
  answer(append: Append): Promise<void> {
    return this.#answers.get(append)!;
  }

  /** Sends an append, also again after no answer came. */
  send(isolate: Isolate, append: Append, wanted: readonly (Wanted & { n: number })[]): Promise<void> {
    const { world } = this;
    const events = wanted.map(({ type, identity, event_id, padding, n }): NewEvent => ({
      type,
      identity,
      data: { n, text: `${CANARY}-${n}`, padding: "x".repeat(padding ?? 0) },
      ...(event_id === undefined ? {} : { event_id }),
    }));
    return isolate.system.owners.run(append.owner, async (tx) => {
      const appended: Appended[] = [];
      for (const event of events) appended.push(await tx.append(event));
      const fresh = appended.filter(({ duplicate }) => !duplicate).length;
      if (fresh === 0) return appended;
      const count = keys.ownerState(append.owner, "count");
      tx.set(count, (await tx.get<number>(count) ?? 0) + fresh);
      return appended;
    }).then(
      (appended) => {
        if (append.state === "acknowledged" && append.appended[0]?.key !== appended[0]?.key) {
          world.model.violated("O1", "one deterministic id named two events");
        }
        append.state = "acknowledged";
        append.appended = appended;
        world.tally.count("acknowledged", appended.length);
        for (const { key, sequence } of appended) {
          const event = world.model.events.get(key);
          if (event === undefined) world.model.violated("O1", `${key} was acknowledged and is not there`);
          else if (event.seq !== sequence) {
            world.model.violated("O2", `${key} was acknowledged as ${sequence}`);
          }
        }
        if (appended.some(({ duplicate }) => duplicate)) world.tally.count("duplicate_append");
      },
      (error) => {
        if (append.state === "acknowledged") return;
        // A refusal is certain: the committer said that nothing was written. Anything else is not.
        append.state = error instanceof ApiError && append.state === "pending" ? "refused" : "unknown";
        world.tally.count(`append_${append.state}`);
      },
    );
  }
}

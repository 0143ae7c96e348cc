/** What mailbox routes answer: the new state by its name, and the event it caused (reference §3, "Owner routes"). */
import * as z from "zod";
import type { Appended } from "../actors/owner.ts";
import { eventCaused, showEvent, showEventOrNull } from "./owners.ts";

/** `{ <name>, event }`: `event` is null when nothing changed, so that nothing was sent. */
export const withEvent = <const N extends string, S extends z.ZodType>(name: N, state: S) =>
  z.object({ [name]: state, event: eventCaused.nullable() });

/** The same with `events`: all that the command sent, in their order. */
export const withEvents = <const N extends string, S extends z.ZodType>(name: N, state: S) =>
  withEvent(name, state).extend({ events: z.array(eventCaused) });

interface Result {
  state: unknown;
  event: Appended | null;
  events: Appended[];
}

export const answer = (name: string, { state, event }: Result) => ({
  [name]: state,
  event: showEventOrNull(event),
});

export const answerAll = (name: string, result: Result) => ({
  ...answer(name, result),
  events: result.events.map(showEvent),
});

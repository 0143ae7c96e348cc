/** What owner routes answer: the new state, and the event it caused (reference §3, "Owner routes"). */
import * as z from "zod";
import type { Appended } from "../actors/owner.ts";
import { idOf } from "./table.ts";

export const eventRef = z.object({ id: idOf("event"), type: z.string(), sequence: z.int() });

export const showEventRef = ({ id, type, sequence }: Appended) => ({ id, type, sequence });

/** The state's own fields beside `event`: null when nothing changed, so that nothing was sent. */
export const withEvent = <F extends z.ZodRawShape>(state: z.ZodObject<F>) =>
  state.extend({ event: eventRef.nullable() });

/** The same with `events`: all the command sent, in their order. */
export const withEvents = <F extends z.ZodRawShape>(state: z.ZodObject<F>) =>
  state.extend({ event: eventRef.nullable(), events: z.array(eventRef) });

interface Result<T> {
  state: T;
  event: Appended | null;
  events: Appended[];
}

export const answer = <T extends object>({ state, event }: Result<T>) => ({
  ...state,
  event: event === null ? null : showEventRef(event),
});

export const answerAll = <T extends object>(result: Result<T>) => ({
  ...answer(result),
  events: result.events.map(showEventRef),
});

/** Optimistic changes of the control plane: read, build, commit under checks, and again when another was faster. */
import { ApiError } from "../lib/errors.ts";
import type { Committer, Unit } from "../lib/edge/committer.ts";

const MAX_TRIES = 12;

/** What a build hands to the committer, and what it answers once that is durable. `unit` null: nothing to write. */
export interface Change<T> {
  unit: Pick<Unit, "checks" | "writes"> | null;
  result: T;
}

/** The last change under way on each contested thing, per committer: one after the other in this isolate. */
const lanes = new WeakMap<Committer, Map<string, Promise<unknown>>>();

/**
 * Runs `build` until its checks hold. It reads afresh each time and has no other effect; what it throws comes out.
 * @param lane names what is contested: changes of it in this isolate take turns, so that the tries are left for other isolates.
 * @throws ApiError 503 `unavailable` when others keep changing the same thing.
 */
export function change<T>(committer: Committer, lane: string, build: () => Promise<Change<T>>): Promise<T> {
  const under = lanes.get(committer) ?? new Map<string, Promise<unknown>>();
  lanes.set(committer, under);
  const turn = (under.get(lane) ?? Promise.resolve()).then(() => attempt(committer, build));
  const settled = turn.catch(() => {}).then(() => {
    if (under.get(lane) === settled) under.delete(lane);
  });
  under.set(lane, settled);
  return turn;
}

async function attempt<T>(committer: Committer, build: () => Promise<Change<T>>): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { unit, result } = await build();
    if (unit === null || (await committer.commit(unit)).ok) return result;
  }
  throw new ApiError(
    "unavailable",
    "Cannot change this now: others keep changing it.",
    "Send again in a moment.",
    undefined,
    { "retry-after": "1" },
  );
}

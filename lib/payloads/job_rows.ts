/** The state row of a job's owner, part `job`: what it is to do, how far it is, what came of it. Pointers and counts (P1). */
import * as z from "zod";
import { erasureScope, erasureStep } from "./job.ts";

const ms = z.int().nonnegative();

const progress = {
  /** `era_` or `exp_`. */
  id: z.string(),
  status: z.enum(["queued", "running", "completed", "failed"]),
  /** Counts changes: a step taken on an older one is void, so two runners never do the same step twice. */
  version: z.int().nonnegative(),
  /** When to go on, Unix ms; null once it is over. */
  due: ms.nullable(),
  /** How often a step threw since one last succeeded. */
  throws: z.int().nonnegative(),
  /** Code of what made it fail. */
  error: z.string().nullable(),
  /** The last event key looked at, for steps that walk the tenant's events. */
  cursor: z.string().nullable(),
  /** Events erased or counted. */
  events: z.int().nonnegative(),
  created_at: ms,
  completed_at: ms.nullable(),
  /** The event it ended with. */
  event: z.object({ id: z.string(), type: z.string(), sequence: z.int().positive() }).nullable(),
};

export const erasureRow = z.object({
  kind: z.literal("erasure"),
  ...progress,
  scope: erasureScope,
  identity_id: z.string(),
  message_id: z.string().nullable(),
  thread_id: z.string().nullable(),
  /** Why, in the requester's words: shown to who may read the request, in no event. */
  reason: z.string(),
  step: erasureStep,
  /** Messages under way: their state goes first, then the events that carry them. */
  current: z.array(z.string()),
  /** Messages erased. */
  messages: z.int().nonnegative(),
});
export type ErasureRow = z.infer<typeof erasureRow>;

export const exportRow = z.object({
  kind: z.literal("export"),
  ...progress,
  /** Null: every event of the tenant. */
  identity_id: z.string().nullable(),
  /** The first event key it does not hold. */
  until: z.string(),
  expires_at: ms.nullable(),
});
export type ExportRow = z.infer<typeof exportRow>;

export type JobRow = ErasureRow | ExportRow;

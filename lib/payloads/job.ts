/** Job events (reference §5): owner kind `job`, `identity_id` null but for `identity.deleted`. */
import * as z from "zod";
import type { EventType } from "../catalogue.ts";

export const erasureScope = z.enum(["message", "thread", "identity"]);
export type ErasureScope = z.infer<typeof erasureScope>;

/** Where an erasure can stand when it fails, in order; `mailbox` and `identity_events` are an identity's alone. */
export const erasureStep = z.enum([
  "find",
  "messages",
  "message_events",
  "mailbox",
  "identity_events",
  "finish",
]);
export type ErasureStep = z.infer<typeof erasureStep>;

const ulid = "[0-7][0-9A-HJKMNP-TV-Z]{25}";
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_${ulid}$`));
const time = z.iso.datetime({ precision: 3 });
const code = z.string().regex(/^[a-z0-9_]{1,64}$/);

/** What an erasure removed, as counts: the receipt names no content. */
export const erasureReceipt = z.strictObject({
  messages: z.int().nonnegative(),
  events: z.int().nonnegative(),
  completed_at: time,
});
export type ErasureReceipt = z.infer<typeof erasureReceipt>;

/** The request without its free-text reason: who reads the event needs what was erased, not why someone asked. */
export const erasedRequest = z.strictObject({
  id: id("era"),
  scope: erasureScope,
  identity_id: id("idn").nullable(),
  message_id: id("msg").nullable(),
  thread_id: id("thr").nullable(),
  requested_at: time,
  receipt: erasureReceipt,
});
export type ErasedRequest = z.infer<typeof erasedRequest>;

const ERASURE = "era_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y";

export const jobTypes: readonly EventType[] = [
  {
    name: "erasure.completed",
    owner: "job",
    data: z.strictObject({ erasure_request: erasedRequest }),
    example: {
      erasure_request: {
        id: ERASURE,
        scope: "message",
        identity_id: "idn_01JD8T4Y0Z3M5Q7R9S1V2W4X70",
        message_id: "msg_01JD8T4Y0Z3M5Q7R9S1V2W4X71",
        thread_id: null,
        requested_at: "2026-10-01T08:00:00.000Z",
        receipt: { messages: 1, events: 4, completed_at: "2026-10-01T08:00:02.500Z" },
      },
    },
    description: "What an erasure request asked for is gone; the receipt counts it.",
  },
  {
    name: "erasure.failed",
    owner: "job",
    data: z.strictObject({ erasure_request_id: id("era"), step: erasureStep, error: code }),
    example: { erasure_request_id: ERASURE, step: "message_events", error: "store_failed" },
    description: "An erasure gave up at a step; what it had erased stays erased.",
  },
  {
    name: "export.completed",
    owner: "job",
    data: z.strictObject({ export_id: id("exp"), expires_at: time }),
    example: { export_id: "exp_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y", expires_at: "2026-10-08T08:00:00.000Z" },
    description: "An export is ready until it expires.",
  },
  {
    name: "identity.deleted",
    owner: "job",
    data: z.strictObject({ identity_id: id("idn"), erasure_request_id: id("era") }),
    example: { identity_id: "idn_01JD8T4Y0Z3M5Q7R9S1V2W4X70", erasure_request_id: ERASURE },
    description: "An identity and its mailbox are gone. Its sequence is the erasure job's.",
  },
];

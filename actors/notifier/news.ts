/**
 * What of an event the Notifier is told (document, "Handing new mail to the Notifier", steps 1 and 3): `message.received`,
 * `message.released` and `message.triaged`; a re-parse is no new mail.
 */
import type { Id } from "../../lib/ids.ts";
import type { MailNews } from "../../lib/notify.ts";
import type { StoredEvent } from "../event_store.ts";

const TYPES: ReadonlySet<string> = new Set(["message.received", "message.released", "message.triaged"]);

/** Asked for every event on the hot path. */
export const isMailNews = (event: StoredEvent): boolean => TYPES.has(event.type) && event.kind === "mailbox";

interface Payload {
  data: {
    message?: { id: Id<"message">; flags: string[] };
    message_id?: Id<"message">;
    triage?: { needs_reply: boolean };
    reprocessed?: boolean;
  };
}

/** The news in an event's payload; null for a re-parse and for an erased payload. */
export function newsOf({ type, identity, body }: StoredEvent): MailNews | null {
  if (body === null || identity === null) return null;
  const { data } = JSON.parse(new TextDecoder().decode(body)) as Payload;
  if (type === "message.triaged") {
    return {
      kind: "triaged",
      identity,
      message: data.message_id!,
      needs_reply: data.triage!.needs_reply,
    };
  }
  if (data.reprocessed === true) return null;
  const { id, flags } = data.message!;
  return { kind: "new", identity, message: id, needs_reply: flags.includes("needs_reply") };
}

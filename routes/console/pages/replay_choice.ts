/** Which events a replay is to take, as the fields of its form. */
import { ApiError } from "../../../lib/errors.ts";
import type { EventId } from "../../../lib/ids.ts";
import { attemptStatus } from "../../../lib/keys.ts";
import { DAY_MS, HOUR_MS, MAX_REPLAY_IDS } from "../../../lib/limits.ts";
import type { Selection } from "../../../actors/replay.ts";
import { fromInputTime, inputTime } from "../format.ts";

export const REPLAY_STATUSES = {
  "": "Any: all events of the window",
  dead: "Dead, and never delivered",
  failed: "Failing now",
  succeeded: "Delivered before",
};

/** What is chosen, as the fields of the form. */
export interface Choice {
  since: string;
  until: string;
  status: string;
  ids: string;
}

export const choiceOf = (fields: URLSearchParams, now: number): Choice => ({
  since: fields.get("since") ?? inputTime(now - DAY_MS),
  until: fields.get("until") ?? inputTime(now + HOUR_MS),
  status: fields.get("status") ?? "dead",
  ids: (fields.get("event_id") ?? "").trim(),
});

/** @throws ApiError 400 with the field that is wrong. */
export function selectionOf(choice: Choice): Exclude<Selection, { events: unknown }> {
  const wrong = (path: string, message: string) =>
    new ApiError("invalid_request", "Cannot replay this.", "Choose again.", { errors: [{ path, message }] });
  if (choice.ids !== "") {
    const ids = choice.ids.split(/[\s,]+/).filter((id) => id !== "");
    if (ids.some((id) => !/^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))) {
      throw wrong("event_id", "must be event ids");
    }
    if (ids.length > MAX_REPLAY_IDS) throw wrong("event_id", `must be at most ${MAX_REPLAY_IDS}`);
    return { event_ids: ids as EventId[] };
  }
  const since = Date.parse(fromInputTime(choice.since) ?? ""),
    until = Date.parse(fromInputTime(choice.until) ?? "");
  if (Number.isNaN(since)) throw wrong("since", "must be a time");
  if (Number.isNaN(until)) throw wrong("until", "must be a time");
  if (since >= until) throw wrong("until", "must be after the beginning");
  if (choice.status === "") return { since, until };
  const status = attemptStatus.safeParse(choice.status);
  if (!status.success) throw wrong("status", "must be one of the list");
  return { since, until, status: status.data };
}

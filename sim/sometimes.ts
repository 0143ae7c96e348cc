/** What a batch of seeds must have met at least once: a batch that never met it proves nothing about it. */
import { MOODS } from "./acts.ts";
import { STEP_KINDS } from "./script.ts";

const acts = [...new Set(Object.values(MOODS).flatMap((mood) => Object.keys(mood)))];

export const SOMETIMES: readonly string[] = [
  ...[
    "conflict",
    "throw_before",
    "throw_after",
    "throw_late",
    "read_throws",
    "slow",
    "crash_before",
    "crash_after",
  ],
  ...["bell_dropped", "bell_repeated", "doorbell", "cron_missed", "swept"],
  ...["killed", "stopped", "start_failed", "poisoned"],
  ...acts.map((act) => `net_${act}`),
  ...STEP_KINDS.map((kind) => `step_${kind}`),
  ...["attempt_succeeded", "attempt_failed", "attempt_dead"],
  ...[
    "timeout",
    "dns",
    "tls",
    "connect",
    "redirect",
    "status_4xx",
    "status_410",
    "status_5xx",
    "ssrf_blocked",
  ]
    .map((error) => `error_${error}`),
  ...["secret_unavailable", "event_unavailable", "endpoint_disabled"].map((error) => `error_${error}`),
  ...["ended_delivered", "ended_dead", "ended_parked", "ended_dropped"],
  ...["disabled_gone", "disabled_failing", "endpoint_deleted", "handed_over", "recovered", "redriven"],
  ...["acknowledged", "append_unknown", "duplicate_append", "replayed", "replay_after_attempts"],
  ...[
    "recorded_alone",
    "recorded_in_a_block",
    "recorded_in_a_late_block",
    "recorded_by_pointers",
    "recorded_under_a_replay",
  ],
  ...["claim", "deliver", "fan_out", "heartbeat", "open", "pump", "record", "secret", "sweep", "give_back"]
    .map((what) => `fault_in_${what}`),
];

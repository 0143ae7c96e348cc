/**
 * Logs (reference §9): JSON lines with typed fields from one list. What is not on the list, or does not look like an id, a
 * code, a number or a host name, is not written: content cannot reach a log by mistake (P1).
 */
export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogValue = string | number | boolean | null | undefined;

/** `evt_…`, a bare ULID, or an instance's name. */
const ID = /^([a-z]{3}_)?[0-9A-HJKMNP-TV-Z]{26}$|^[0-9a-f-]{8,36}$/;
/** Names of ours: error codes, event types, metric labels, class names. */
const CODE = /^[A-Za-z0-9_.:-]{0,96}$/;
/** A route's pattern, never a path that was asked for: the table's own text. */
const ROUTE = /^[A-Za-z0-9_/:{}.*-]{0,128}$/;
const HOST = /^[A-Za-z0-9_.-]{1,253}(:\d{1,5})?$/;
/** `file.ts:line:column`. */
const PLACE = /^([\w.-]+:\d+:\d+)?$/;
const NUMBER = "number";

/** Every field a line may have, with what its value must look like. */
const FIELDS = {
  // ids
  request_id: ID,
  key_id: ID,
  event_id: ID,
  event_key: ID,
  endpoint_id: ID,
  delivery_id: ID,
  tenant_id: ID,
  partner_id: ID,
  job_id: ID,
  dlq_id: ID,
  instance: ID,
  // codes
  code: CODE,
  error: CODE,
  reason: CODE,
  result: CODE,
  kind: CODE,
  stage: CODE,
  event_type: CODE,
  owner_kind: CODE,
  bucket: CODE,
  method: CODE,
  transport: CODE,
  store: CODE,
  env: CODE,
  signal: CODE,
  release: CODE,
  migration: CODE,
  route: ROUTE,
  at: PLACE,
  host: HOST,
  // counts and durations
  status: NUMBER,
  attempt: NUMBER,
  attempts: NUMBER,
  count: NUMBER,
  events: NUMBER,
  jobs: NUMBER,
  throws: NUMBER,
  ms: NUMBER,
  age_ms: NUMBER,
  delay_ms: NUMBER,
  port: NUMBER,
  shard: NUMBER,
  version: NUMBER,
  in_flight: NUMBER,
  open: NUMBER,
} as const satisfies Record<string, RegExp | "number">;

export type LogField = keyof typeof FIELDS;
export type LogFields = { [K in LogField]?: LogValue };

export interface Log {
  /** `event` is a name of ours in snake_case: what happened, without particulars. */
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

const EVENT = /^[a-z][a-z0-9_]{0,63}$/;
const RANK = { debug: 0, info: 1, warn: 2, error: 3, off: 4 };

/**
 * @param level `PM_LOG`: lines below it are not written.
 * @param write Takes one line without its end; `console.log` in the service.
 */
export function makeLog(level: LogLevel | "off", now: () => number, write: (line: string) => void): Log {
  const at = (of: LogLevel) => (event: string, fields: LogFields = {}): void => {
    if (RANK[of] >= RANK[level]) write(logLine(of, event, fields, now()));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** One line: time, level, event, the fields that pass; `dropped` counts those that do not. */
function logLine(level: LogLevel, event: string, fields: LogFields, now: number): string {
  const line: Record<string, LogValue> = {
    time: new Date(now).toISOString(),
    level,
    event: EVENT.test(event) ? event : "unnamed",
  };
  let dropped = 0;
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    if (passes(name, value)) line[name] = value;
    else dropped++;
  }
  if (dropped > 0) line.dropped = dropped;
  return JSON.stringify(line);
}

function passes(name: string, value: LogValue): boolean {
  if (!Object.hasOwn(FIELDS, name)) return false;
  const shape: RegExp | "number" = FIELDS[name as LogField];
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value === "boolean") return true;
  return typeof value === "string" && shape !== NUMBER && shape.test(value);
}

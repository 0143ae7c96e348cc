/**
 * The two kinds of error that are thrown: a caller's mistake (`ApiError`, becomes an HTTP answer) and a
 * broken invariant (names itself). Expected failures elsewhere are data, not exceptions.
 */

/** One refused field: `path` is dotted (`events.0`, `url`, `cursor`), `message` says the rule. */
export interface FieldError {
  path: string;
  message: string;
}

export type ApiErrorCode =
  | "invalid_request"
  | "unauthenticated"
  | "key_revoked"
  | "key_expired"
  | "permission_denied"
  | "scope_denied"
  | "key_scope_exceeded"
  | `${NotFoundThing}_not_found`
  | "method_not_allowed"
  | "idempotency_conflict"
  | "request_in_progress"
  | "invalid_state"
  | "already_exists"
  | "cursor_expired"
  | "payload_too_large"
  | "unsupported_media_type"
  | "webhook_limit_reached"
  | "rate_limited"
  | "internal_error"
  | "unavailable";

export type NotFoundThing =
  | "webhook"
  | "tenant"
  | "partner"
  | "identity"
  | "domain"
  | "job"
  | "event"
  | "delivery"
  | "key"
  | "message"
  | "address"
  | "event_type"
  | "dead_letter"
  | "route"; // deno-fmt-ignore

const STATUS: Record<string, number> = {
  invalid_request: 400,
  unauthenticated: 401,
  key_revoked: 401,
  key_expired: 401,
  permission_denied: 403,
  scope_denied: 403,
  key_scope_exceeded: 403,
  method_not_allowed: 405,
  idempotency_conflict: 409,
  request_in_progress: 409,
  invalid_state: 409,
  already_exists: 409,
  cursor_expired: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  webhook_limit_reached: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
};

const RETRYABLE = new Set<string>(["request_in_progress", "rate_limited", "internal_error", "unavailable"]);

/** A caller's mistake or a refusal. The one error-to-HTTP mapper turns it into the error body of the API. */
export class ApiError extends Error {
  readonly status: number;
  readonly retryable: boolean;
  /** @param message "Cannot <do>: <what is in the way>"; `fix` is the way out. */
  constructor(
    readonly code: ApiErrorCode,
    message: string,
    readonly fix: string,
    readonly details?: Record<string, unknown>,
    readonly headers?: Record<string, string>,
  ) {
    super(message);
    this.status = STATUS[code] ?? 404;
    this.retryable = RETRYABLE.has(code);
  }
}

/** 400 with `details.errors[] = {path, message}`. */
export function invalidRequest(
  errors: FieldError[],
  fix = "Correct the listed fields and send again.",
): ApiError {
  const first = errors[0];
  const text = first ? `${first.path || "body"}: ${first.message}` : "the request is not valid";
  return new ApiError("invalid_request", `Cannot accept the request: ${text}`, fix, { errors });
}

/** 404, the same bytes for what is missing and for what is out of the key's reach. */
export function notFound(thing: NotFoundThing): ApiError {
  return new ApiError(
    `${thing}_not_found`,
    `Cannot find this ${thing.replace("_", " ")}.`,
    "Check the id and the key's reach.",
  );
}

/** 409 `invalid_state`: the transition is impossible from where the thing is now. */
export function invalidState(message: string, fix: string): ApiError {
  return new ApiError("invalid_state", message, fix);
}

/** A broken invariant stops what is under way and names itself (DESIGN invariants O1 to R1). */
export class InvariantError extends Error {}

export function invariant(holds: unknown, name: string): asserts holds {
  if (!holds) throw new InvariantError(`Invariant ${name} does not hold`);
}

/** For `never` branches of unions. */
export function unreachable(value: never): never {
  throw new InvariantError(`Unreachable: ${JSON.stringify(value)}`);
}

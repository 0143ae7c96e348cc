/**
 * The one mapper from what was thrown to what is answered. A caller's mistake carries its own text; anything else is
 * `internal_error` and says nothing of the inside (reference §1).
 */
import type * as z from "zod";
import { ApiError, type FieldError, InvariantError } from "../lib/errors.ts";
import { storeFault } from "../lib/edge/store_fault.ts";

const MAX_FIELD_ERRORS = 20;

/** Headers and body of an error answer. */
export interface ErrorAnswer {
  status: number;
  code: string;
  headers: Record<string, string>;
  body: string;
}

/** `{ "error": { code, message, retryable, fix, request_id, details } }`. */
export function errorAnswer(thrown: unknown, requestId: string): ErrorAnswer {
  const error = thrown instanceof ApiError
    ? thrown
    : storeFault(thrown) !== null
    ? unavailable()
    : internal();
  const body = {
    error: {
      code: error.code,
      message: error.message,
      retryable: error.retryable,
      fix: error.fix,
      request_id: requestId,
      details: error.details ?? {},
    },
  };
  return { status: error.status, code: error.code, headers: error.headers ?? {}, body: JSON.stringify(body) };
}

const internal = () =>
  new ApiError(
    "internal_error",
    "Cannot answer: something failed on our side.",
    "Send again in a moment. If it goes on, report the request id.",
  );

/** The store takes nothing now: its disk is full, or another process keeps the file. */
const unavailable = () =>
  new ApiError(
    "unavailable",
    "Cannot answer: the store takes no writes now.",
    "Send again in a moment. If it goes on, whoever runs the service should look at its disk.",
    undefined,
    { "retry-after": "1" },
  );

/** Names a thrown value for the log by kind and place, never by its text, which may quote content (P1). */
export function faultOf(thrown: unknown): { error: string; at: string } {
  if (!(thrown instanceof Error)) return { error: typeof thrown, at: "" };
  const frame = thrown.stack?.split("\n").find((line) => line.startsWith("    at ")) ?? "";
  const place = frame.match(/([\w.-]+\.[jt]s:\d+:\d+)\)?$/)?.[1] ?? "";
  const name = thrown instanceof InvariantError ? "InvariantError" : thrown.constructor.name;
  return { error: name, at: place };
}

/** The field errors of a refused value, each with its dotted path below `root`. */
export function fieldErrors(error: z.core.$ZodError, root = ""): FieldError[] {
  const found: FieldError[] = [];
  for (const issue of error.issues) collect(issue, root, found);
  return found.slice(0, MAX_FIELD_ERRORS);
}

function collect(issue: z.core.$ZodIssue, root: string, into: FieldError[]): void {
  const path = [root, ...issue.path.map(String)].filter((part) => part !== "").join(".");
  if (issue.code === "unrecognized_keys") {
    for (const key of issue.keys) {
      into.push({ path: path === "" ? key : `${path}.${key}`, message: "is not a known field" });
    }
    return;
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // The branch that came closest says more than "matches none".
    const closest = issue.errors.reduce((best, branch) => branch.length < best.length ? branch : best);
    for (const inner of closest) collect(inner, path, into);
    return;
  }
  into.push({ path, message: issue.message });
}

/** Failures of dialling as data, shared by both transports. Pure. */
import { classifyCode } from "../outcome.ts";
import type { DialResult } from "./ports.ts";

/** Errors of undici, node:net and node:tls carry `code`; a timeout's may be the number 23, and a few have a name alone. */
export function fromError(error: unknown): DialResult {
  const { code, name } = error as { code?: unknown; name?: unknown };
  const detail = code === undefined || code === 0 ? String(name ?? "unknown") : String(code);
  if (detail === "ssrf_blocked") return failure("ssrf_blocked", detail);
  return failure(classifyCode(detail), detail);
}

/** `detail` is a code, never a text of the far side. */
export function failure(
  error: Extract<DialResult, { kind: "failed" }>["error"],
  detail: string,
): DialResult {
  return { kind: "failed", error, detail };
}

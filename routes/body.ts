/**
 * Reading a request's body: counted while it streams, before anything is buffered beyond the cap, and within a deadline,
 * because the server underneath has neither. Answers 413, 415 or 400 as `ApiError`.
 */
import { ApiError, invalidRequest } from "../lib/errors.ts";
import type { Timers } from "../lib/edge/ports.ts";
import { decodeUtf8, type JsonText, readJson } from "../lib/json.ts";
import { MAX_BODY_BYTES } from "../lib/limits.ts";

/** A body as it came. `json` is null for an empty or a raw one. */
export interface Body {
  bytes: Uint8Array<ArrayBuffer>;
  json: JsonText | null;
  raw: boolean;
}

/** @param raw media types accepted besides JSON. @param deadlineMs how long the client may take to send it. */
export async function readBody(
  request: Request,
  raw: readonly string[],
  timers: Timers,
  deadlineMs: number,
): Promise<Body> {
  const declared = Number(request.headers.get("content-length") ?? "0");
  if (declared > MAX_BODY_BYTES) throw tooLarge();
  const type = mediaType(request);
  const accepted = type === "application/json" || raw.includes(type);
  // An unaccepted type is refused before its body is read, unless there turns out to be none.
  if (!accepted && type !== "") throw unsupported(raw);
  const bytes = await readBytes(request, timers, deadlineMs);
  if (bytes.length === 0) return { bytes, json: null, raw: raw.includes(type) };
  if (!accepted) throw unsupported(raw);
  if (raw.includes(type)) return { bytes, json: null, raw: true };
  return { bytes, json: readJson(decodeUtf8(bytes)), raw: false };
}

/** The bare media type in lower case; "" when there is none. Any charset but UTF-8 and any coding is not supported. */
function mediaType(request: Request): string {
  const coding = request.headers.get("content-encoding") ?? "identity";
  if (coding.trim().toLowerCase() !== "identity") {
    throw new ApiError(
      "unsupported_media_type",
      "Cannot read the body: it has a Content-Encoding.",
      "Send it uncompressed.",
    );
  }
  const [type = "", ...parameters] = (request.headers.get("content-type") ?? "").split(";");
  for (const parameter of parameters) {
    const [name = "", value = ""] = parameter.trim().toLowerCase().split("=");
    if (
      name === "charset" && type.trim().toLowerCase() === "application/json" && !/^"?utf-?8"?$/.test(value)
    ) {
      throw new ApiError(
        "unsupported_media_type",
        "Cannot read the body: JSON is UTF-8.",
        "Send charset=utf-8 or none.",
      );
    }
  }
  return type.trim().toLowerCase();
}

async function readBytes(
  request: Request,
  timers: Timers,
  deadlineMs: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (request.body === null) return new Uint8Array(0);
  const reader = request.body.getReader();
  const parts: Uint8Array[] = [];
  let size = 0, late = false;
  const timer = timers.after(deadlineMs, () => {
    late = true;
    reader.cancel().catch(() => {});
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (late) throw slow(deadlineMs);
      if (done) break;
      size += value.length;
      if (size > MAX_BODY_BYTES) {
        reader.cancel().catch(() => {});
        throw tooLarge();
      }
      parts.push(value);
    }
  } catch (thrown) {
    if (thrown instanceof ApiError) throw thrown;
    // The client went away or the chunking was broken: nobody may be there to read the answer.
    throw late ? slow(deadlineMs) : invalidRequest([{ path: "body", message: "broke off" }]);
  } finally {
    timers.cancel(timer);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) whole.set(part, at), at += part.length;
  return whole;
}

const tooLarge = () =>
  new ApiError(
    "payload_too_large",
    `Cannot accept the body: it is over ${MAX_BODY_BYTES} bytes.`,
    "Send less at once.",
    { limit: MAX_BODY_BYTES },
  );

const slow = (deadlineMs: number) =>
  invalidRequest([{ path: "body", message: `did not arrive within ${deadlineMs / 1000} s` }]);

const unsupported = (raw: readonly string[]) => {
  const accepted = ["application/json", ...raw];
  return new ApiError(
    "unsupported_media_type",
    "Cannot read the body: its Content-Type is not accepted here.",
    `Send ${accepted.join(" or ")}.`,
    { accepted },
  );
};

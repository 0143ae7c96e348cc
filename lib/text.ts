/**
 * Text that goes into payloads: cleaned of what no reader needs, and capped in bytes at a UTF-8 character boundary
 * (the document, "Event envelope and payloads"; reference §5). Pure.
 */
import { TEXT_BYTES_DEFAULT, TEXT_BYTES_MAX } from "./limits.ts";

const encoder = new TextEncoder();

/** The first `maxBytes` bytes of `text` in UTF-8, never cutting a character; `truncated` tells if any were left out. */
export function capUtf8(text: string, maxBytes: number): { text: string; truncated: boolean } {
  if (text.length * 3 <= maxBytes) return { text, truncated: false };
  // encodeInto stops before a character that does not fit, and counts the UTF-16 units it took.
  const { read } = encoder.encodeInto(text, new Uint8Array(Math.max(0, maxBytes)));
  return { text: text.slice(0, read), truncated: read < text.length };
}

/** A tenant's `webhook_text_bytes` within the limits; what is no number of bytes is the default. */
export function textBytes(policyBytes: number | null | undefined): number {
  if (typeof policyBytes !== "number" || !Number.isInteger(policyBytes) || policyBytes < 0) {
    return TEXT_BYTES_DEFAULT;
  }
  return Math.min(policyBytes, TEXT_BYTES_MAX);
}

// deno-lint-ignore no-control-regex -- control characters are what it takes out
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** Body text: lines end in \n, no control characters (JSON would spend six bytes on each), no lone surrogates. */
export function cleanText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, "\n").replace(CONTROLS, "").replace(/\n{4,}/g, "\n\n\n")
    .trim();
}

/** One header's text: white space and control characters become one space; at most `maxChars` UTF-16 units. */
export function cleanLine(text: string, maxChars: number): string {
  // deno-lint-ignore no-control-regex -- as above
  const line = text.toWellFormed().replace(/[\s\u0000-\u001f\u007f]+/g, " ").trim();
  return line.length <= maxChars ? line : line.slice(0, maxChars).toWellFormed().replace(/\ufffd$/, "");
}

/** `text` without its `<style>` elements, in one pass: the HTML converter keeps their content. */
export function dropStyles(html: string): string {
  const lower = html.toLowerCase();
  // Lower-casing may change the length of a few letters; the places would be off then, and the text is kept as it is.
  if (lower.length !== html.length) return html;
  let out = "";
  for (let at = 0;;) {
    const open = lower.indexOf("<style", at);
    if (open < 0) return out + html.slice(at);
    out += html.slice(at, open);
    const close = lower.indexOf("</style", open);
    const end = close < 0 ? -1 : lower.indexOf(">", close);
    if (end < 0) return out;
    at = end + 1;
  }
}

/** Small schemas the rows share: instants, list parameters, and how times and lists are shown (reference §1). */
import * as z from "zod";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../lib/limits.ts";

/** Unix ms → RFC 3339 UTC with milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString();
export const isoOrNull = (ms: number | null): string | null => ms === null ? null : iso(ms);

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** RFC 3339 text → Unix ms. */
export const instant = z.string()
  .refine((text) => INSTANT.test(text) && !Number.isNaN(Date.parse(text)), "must be an RFC 3339 time")
  .transform((text) => Date.parse(text))
  .meta({ type: "string", format: "date-time" });

/** The answer's twin of `instant`. */
export const instantShown = z.string().meta({ format: "date-time" });

/** Query parameters every list takes. */
export const listQuery = {
  limit: z.string().optional()
    .refine(
      (text) => text === undefined || /^[1-9]\d{0,2}$/.test(text) && Number(text) <= LIST_LIMIT_MAX,
      `must be a whole number from 1 to ${LIST_LIMIT_MAX}`,
    )
    .transform((text) => text === undefined ? LIST_LIMIT_DEFAULT : Number(text))
    .meta({ type: "integer", minimum: 1, maximum: LIST_LIMIT_MAX, default: LIST_LIMIT_DEFAULT }),
  cursor: z.string().max(1_024).optional(),
};

/** `{ data, next_cursor }`. */
export const listOf = (row: z.ZodType) =>
  z.object({ data: z.array(row), next_cursor: z.string().nullable() });

/** A person's text: trimmed of nothing, without control characters. */
export const text = (max: number) =>
  z.string().min(1).max(max).regex(/^[^\p{Cc}]*$/u, "must not contain control characters");

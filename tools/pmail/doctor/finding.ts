/** What the doctor says of one thing. */

/** `failed`: deliveries suffer now, exit code 1. `warning`: look at it. */
export interface Finding {
  check: string;
  status: "ok" | "warning" | "failed";
  /** What was found. */
  found: string;
  /** How to mend it; null when nothing is to be done. */
  mend: string | null;
}

export const ok = (check: string, found: string): Finding => ({ check, status: "ok", found, mend: null });
export const warning = (check: string, found: string, mend: string): Finding => ({
  check,
  status: "warning",
  found,
  mend,
});
export const failed = (check: string, found: string, mend: string): Finding => ({
  check,
  status: "failed",
  found,
  mend,
});

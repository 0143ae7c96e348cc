/** Mutants that no test can or should notice, each with why. A line that is no mutant any more, or is noticed, fails the run. */

export interface Justified {
  file: string;
  /** The line as it is, trimmed. */
  was: string;
  /** The line as mutated, trimmed. */
  is: string;
  reason: string;
}

const ROUND_TRIP =
  "the text is compared with what its bytes spell at the end: these tests only refuse earlier";
const HOUSEKEEPING =
  "when passed buckets are forgotten changes nothing but memory: what has passed never rings";
const BATCH = "how many rows a read fetches at once changes its speed alone";
const NO_TIMER = "cancelling no timer, or one that has run, does nothing";
const COUNTED = "only whether it has changed is looked at, not by how much";
const FIRST_FOUR = "an address has eight groups, and only the first four are looked at";

export const JUSTIFIED: readonly Justified[] = [
  {
    file: "lib/signing.ts",
    was: "if (!text.startsWith(SECRET_PREFIX)) return null;",
    is: "if (false && (!text.startsWith(SECRET_PREFIX))) return null;",
    reason: ROUND_TRIP,
  },
  {
    file: "lib/signing.ts",
    was: "if (!text.startsWith(SECRET_PREFIX)) return null;",
    is: "if (!text.startsWith(SECRET_PREFIX)) ;",
    reason: ROUND_TRIP,
  },
  {
    file: "lib/signing.ts",
    was: "if (!BASE64.test(encoded)) return null;",
    is: "if (false && (!BASE64.test(encoded))) return null;",
    reason: ROUND_TRIP,
  },
  {
    file: "lib/signing.ts",
    was: "if (!BASE64.test(encoded)) return null;",
    is: "if (!BASE64.test(encoded)) ;",
    reason: ROUND_TRIP,
  },
  {
    file: "lib/reach.ts",
    was: "const WIDTH: Record<KeyLevel, number> = { platform: 3, partner: 2, tenant: 1, identity: 0 };",
    is: "const WIDTH: Record<KeyLevel, number> = { platform: 4, partner: 2, tenant: 1, identity: 0 };",
    reason: "only the order of the widths is looked at",
  },
  {
    file: "lib/edge/jobs.ts",
    was: "if (rung.size > 4_096) { for (const at of rung) if (at < now) rung.delete(at); }",
    is: "if (true || (rung.size > 4_096)) { for (const at of rung) if (at < now) rung.delete(at); }",
    reason: HOUSEKEEPING,
  },
  {
    file: "lib/edge/jobs.ts",
    was: "if (rung.size > 4_096) { for (const at of rung) if (at < now) rung.delete(at); }",
    is: "if (rung.size >= 4_096) { for (const at of rung) if (at < now) rung.delete(at); }",
    reason: HOUSEKEEPING,
  },
  {
    file: "lib/edge/jobs.ts",
    was: "if (rung.size > 4_096) { for (const at of rung) if (at < now) rung.delete(at); }",
    is: "if (rung.size > 4_096) { for (const at of rung) if (at <= now) rung.delete(at); }",
    reason: HOUSEKEEPING,
  },
  {
    file: "lib/edge/jobs.ts",
    was: "const batchSize = Math.min(limit, 500);",
    is: "const batchSize = Math.max(limit, 500);",
    reason: BATCH,
  },
  {
    file: "lib/edge/jobs.ts",
    was: "const batchSize = Math.min(limit, 500);",
    is: "const batchSize = Math.min(limit, 501);",
    reason: BATCH,
  },
  {
    file: "lib/edge/pump.ts",
    was: "#again = false;",
    is: "#again = true;",
    reason: "whoever starts the pump pokes it, which sets it",
  },
  {
    file: "lib/edge/pump.ts",
    was: "if (this.#timer !== null) this.d.timers.cancel(this.#timer);",
    is: "if (true || (this.#timer !== null)) this.d.timers.cancel(this.#timer);",
    reason: NO_TIMER,
  },
  {
    file: "lib/edge/pump.ts",
    was: "this.#timer = null;",
    is: ";",
    reason: NO_TIMER,
  },
  {
    file: "lib/edge/pump.ts",
    was: "if (this.#stopped) return;",
    is: "if (this.#stopped) ;",
    reason: "the loop behind it does not turn while the pump is stopped",
  },
  {
    file: "lib/edge/pump.ts",
    was: "if (this.#stopped) return;",
    is: "if (false && (this.#stopped)) return;",
    reason: "the loop behind it does not turn while the pump is stopped",
  },
  {
    file: "lib/edge/pump.ts",
    was: "if (this.#stopped || due >= this.#timerDue) return;",
    is: "if (this.#stopped || due > this.#timerDue) return;",
    reason: "an alarm for the same moment is as good",
  },
  {
    file: "routes/auth.ts",
    was: "let writes = 0;",
    is: "let writes = 1;",
    reason: COUNTED,
  },
  {
    file: "routes/auth.ts",
    was: "writes++;",
    is: "writes--;",
    reason: COUNTED,
  },
  {
    file: "routes/auth.ts",
    was:
      'const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);',
    is:
      'const missing = tail === undefined ? 1 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);',
    reason: FIRST_FOUR,
  },
  {
    file: "routes/auth.ts",
    was:
      'const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);',
    is:
      'const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 1 : tail.split(":").length);',
    reason: FIRST_FOUR,
  },
  {
    file: "routes/auth.ts",
    was: 'const all = [...groups, ...Array(Math.max(0, missing)).fill("0"), ...(tail ?? "").split(":")];',
    is: 'const all = [...groups, ...Array(Math.max(1, missing)).fill("0"), ...(tail ?? "").split(":")];',
    reason: FIRST_FOUR,
  },
];

/** Mutants that no test can or should notice, each with why. A line that is no mutant any more, or is noticed, fails the run. */

export interface Justified {
  file: string;
  /** The line as it is, trimmed. */
  was: string;
  /** The line as mutated, trimmed. */
  is: string;
  reason: string;
}

export const JUSTIFIED: readonly Justified[] = [];

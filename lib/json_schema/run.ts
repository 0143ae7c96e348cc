/** One check of a value against a schema: its budget, its findings, and what every keyword needs. */
import type { FieldError } from "../errors.ts";

export const MAX_ERRORS = 10;
/** Steps of one check: sub-schemas, values compared and characters matched. Some 10 to 50 ms of work. */
const BUDGET = 500_000;
/** Sub-schemas within each other: data nests 64 deep at most, the rest is room for references and combinations. */
const MAX_DEPTH = 500;

export interface Run {
  cost: number;
  depth: number;
  /** Null within `anyOf`, `not` and the like, where only yes or no counts. */
  errors: FieldError[] | null;
}

/** Whether the value at the dotted path `at` holds; what does not is said in `run.errors`. */
export type Check = (value: unknown, at: string, run: Run) => boolean;
export type Schema = Record<string, unknown>;

/** The budget is spent: neither yes nor no. */
export class TooCostly extends Error {}

export function spend(run: Run, cost: number): void {
  run.cost += cost;
  if (run.cost > BUDGET) throw new TooCostly();
}

/** Runs a sub-schema's keywords one level down. */
export function descend(run: Run, checks: readonly Check[], value: unknown, at: string): boolean {
  spend(run, 1);
  if (++run.depth > MAX_DEPTH) throw new TooCostly();
  let ok = true;
  for (const check of checks) {
    if (check(value, at, run)) continue;
    ok = false;
    if (run.errors === null) break;
  }
  run.depth--;
  return ok;
}

export function fail(run: Run, path: string, message: string): false {
  if (run.errors !== null && run.errors.length < MAX_ERRORS) run.errors.push({ path, message });
  return false;
}

/** A verdict without its reasons, on the same budget. */
export function silently(check: Check, value: unknown, run: Run): boolean {
  const errors = run.errors;
  run.errors = null;
  const held = check(value, "", run);
  run.errors = errors;
  return held;
}

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string => typeof value === "string";
export const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);

/** A text two equal JSON values share, whatever the order of their keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${
    Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()
  }}`;
}

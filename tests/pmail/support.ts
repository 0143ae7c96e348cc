/** `pmail` as a process, started by its task, and its JSON. */
import assert from "node:assert/strict";
import { type Env, run } from "../e2e/support/process.ts";

// deno-lint-ignore no-explicit-any
export type Json = any;

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export const pmail = (env: Env, ...args: string[]): Promise<Ran> => run("pmail", env, args);

/** A command's answer with `--json`, when it ended with the expected code. */
export async function json(env: Env, args: string[], code = 0): Promise<Json> {
  const ran = await pmail(env, ...args, "--json");
  assert.equal(ran.code, code, `${args.join(" ")}: ${ran.stderr}${ran.stdout}`);
  return JSON.parse(ran.stdout);
}

/** Looks into the store of a service that is down, or beside it. */
import assert from "node:assert/strict";
import { keys } from "../../../lib/keys.ts";
import { allAttemptsOf } from "../../support/rows.ts";

/** D1: at most one row for (endpoint, event, attempt). Answers how many rows there are. */
export async function checkAttempts(path: string): Promise<number> {
  using kv = await Deno.openKv(path);
  const seen = new Set<string>();
  let rows = 0;
  for (const { endpoint, value } of await allAttemptsOf(kv)) {
    rows++;
    seen.add(`${endpoint} ${value.event_id} ${value.attempt}`);
  }
  assert.equal(seen.size, rows, "D1: no attempt is recorded twice");
  return rows;
}

/** How many job rows there are. */
export async function jobRows(kv: Deno.Kv): Promise<number> {
  let rows = 0;
  for await (const _ of kv.list({ prefix: [keys.jobsOfShard(0)[0]!] })) rows++;
  return rows;
}

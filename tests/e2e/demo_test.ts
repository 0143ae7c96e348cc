/** `deno task demo`: succeeds without a network and in seconds, and says what is missing when something is. */
import assert from "node:assert/strict";
import { aligned, type Endpoint, report, type StoredEvent } from "../../tools/demo/report.ts";
import { run } from "./support/process.ts";

Deno.test("demo: every event arrives as stored and verified, and the exit code is 0", async () => {
  const { code, stdout, stderr } = await run("demo", {});
  assert.equal(code, 0, stdout + stderr);
  assert.equal(stderr, "");
  assert.match(stdout, /everything {2}order\.\* +100 +300 +200 +300\/300 +100\/100/);
  assert.match(stdout, /mail only {3}message\.\* +3 +9 +6 +9\/9 +3\/3/);
  assert.match(stdout, /All 104 events arrived exactly as stored, every signature verified/);
});

const endpoint: Endpoint = { name: "everything", path: "/a", wants: () => true };
const event: StoredEvent = { id: "evt_1", type: "order.paid", occurredAt: 1_000, envelope: "{}" };
const arrival = { path: "/a", id: "evt_1", body: "{}", verified: true, status: 204, at: 1_020 };

const FAULTS: { reason: string; arrivals: typeof arrival[]; says: RegExp }[] = [
  { reason: "it never came", arrivals: [], says: /accepted evt_1 0 times/ },
  { reason: "it was only refused", arrivals: [{ ...arrival, status: 500 }], says: /accepted evt_1 0 times/ },
  {
    reason: "a byte is another",
    arrivals: [{ ...arrival, body: "{ }" }],
    says: /other bytes than are stored/,
  },
  { reason: "a signature is wrong", arrivals: [{ ...arrival, verified: false }], says: /does not verify/ },
  { reason: "it came twice", arrivals: [arrival, arrival], says: /accepted evt_1 2 times/ },
  {
    reason: "nobody appended it",
    arrivals: [arrival, { ...arrival, id: "evt_2" }],
    says: /evt_2, which nobody appended/,
  },
];

Deno.test("demo: the report is empty of faults only when each event was accepted once, as stored and verified", () => {
  const refused = { ...arrival, status: 500, at: 1_004 };
  const { rows, missing } = report([event], [endpoint], [refused, arrival]);
  assert.deepEqual(missing, []);
  assert.deepEqual(rows[1], ["everything", "order.*", "1", "2", "1", "2/2", "1/1", "4 ms", "20 ms"]);
  assert.equal(new Set(aligned(rows).split("\n").map((line) => line.length)).size, 1, "columns are in line");
  for (const { reason, arrivals, says } of FAULTS) {
    assert.match(report([event], [endpoint], arrivals).missing.join("\n"), says, reason);
  }
});

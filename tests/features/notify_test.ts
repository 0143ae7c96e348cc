/** Coalescing of new-mail notifications: when what is told, as arithmetic. */
import assert from "node:assert/strict";
import type { Id, IdentityId } from "../../lib/ids.ts";
import {
  expired,
  LONGEST_WAIT_MS,
  type MailNews,
  MAX_COUNTED,
  MAX_HELD,
  noted,
  NOTHING,
  QUIET_MS,
  ripe,
  told,
  TRIAGE_HOLD_MS,
  visible,
} from "../../lib/notify.ts";
import { MAX_VALUE_BYTES, SECOND_MS } from "../../lib/limits.ts";

const id = (n: number) => `msg_${String(n).padStart(26, "0")}` as Id<"message">;
const mail = (n: number, more: Partial<MailNews> = {}): MailNews => ({
  kind: "new",
  identity: `idn_${"0".repeat(26)}` as IdentityId,
  message: id(n),
  needs_reply: false,
  ...more,
});
const counted = ({ counted }: typeof NOTHING) => counted.map(({ message }) => Number(message.slice(4)));

Deno.test("O14: a burst is told two minutes after its last mail, a stream ten minutes after its first", () => {
  let row = NOTHING;
  for (let n = 0; n < 3; n++) row = noted(row, mail(n), "all", n * 60 * SECOND_MS);
  assert.deepEqual([counted(row), row.due], [[0, 1, 2], 2 * 60 * SECOND_MS + QUIET_MS]);
  assert.equal(ripe(row, row.due! - 1), false);
  assert.equal(ripe(row, row.due!), true);
  row = NOTHING;
  for (let n = 0; n < 20; n++) row = noted(row, mail(n), "all", n * 60 * SECOND_MS);
  assert.equal(row.due, LONGEST_WAIT_MS);
  assert.deepEqual(told(row), NOTHING);
});

Deno.test("O14: a mail counts once, whatever is said of it again", () => {
  const row = noted(NOTHING, mail(1), "all", 0);
  assert.equal(noted(row, mail(1), "all", 5), row);
  assert.equal(noted(row, mail(1, { kind: "triaged", needs_reply: true }), "all", 5), row);
});

Deno.test("O16: a needs_reply filter holds a mail for its triage, five minutes and no longer", () => {
  const held = noted(NOTHING, mail(1), "needs_reply", 0);
  assert.deepEqual([counted(held), held.held.length, held.due], [[], 1, TRIAGE_HOLD_MS]);
  assert.equal(noted(held, mail(1), "needs_reply", 5), held, "held once");
  const yes = noted(held, mail(1, { kind: "triaged", needs_reply: true }), "needs_reply", 1_000);
  assert.deepEqual([counted(yes), yes.held, yes.due], [[1], [], 1_000 + QUIET_MS]);
  const no = noted(held, mail(1, { kind: "triaged" }), "needs_reply", 1_000);
  assert.deepEqual(no, NOTHING);
  assert.equal(expired(held, TRIAGE_HOLD_MS - 1), held);
  const late = expired(held, TRIAGE_HOLD_MS);
  assert.deepEqual(late, NOTHING);
  const after = noted(late, mail(1, { kind: "triaged", needs_reply: true }), "needs_reply", TRIAGE_HOLD_MS);
  assert.equal(after, late, "any other verdict is ignored");
});

Deno.test("O16: a mail that comes with its verdict counts at once", () => {
  assert.deepEqual(counted(noted(NOTHING, mail(1, { needs_reply: true }), "needs_reply", 0)), [1]);
});

Deno.test("notify: the row stays a value of the store, and a full one is told at once", () => {
  let row = NOTHING;
  for (let n = 0; n < 1_000; n++) row = noted(row, mail(n), "needs_reply", 0);
  assert.equal(row.held.length, MAX_HELD);
  assert.equal(row.held[0]!.message, id(1_000 - MAX_HELD), "the oldest is forgotten");
  // What a turn may add before it tells: a turn's events beyond the limit.
  for (let n = 0; n < MAX_COUNTED + 50; n++) row = noted(row, mail(n + 5_000), "all", 0);
  assert.equal(ripe(row, 0), true);
  assert.ok(JSON.stringify(row).length < MAX_VALUE_BYTES, `${JSON.stringify(row).length}`);
});

Deno.test("O15: only mail visible in the inbox counts", () => {
  const row = { direction: "inbound", status: "received", flags: [] } as const;
  const table: [reason: string, mail: Parameters<typeof visible>[0], seen: boolean][] = [
    ["received", { ...row, flags: ["has_attachments"] }, true],
    ["released", { ...row, status: "released", flags: [] }, true],
    ["erased", null, false],
    ["quarantined", { ...row, status: "quarantined", flags: [] }, false],
    ["outbound", { direction: "outbound", status: "sent", flags: [] }, false],
    ["archived by a rule", { ...row, flags: ["archived"] }, false],
    ["in the trash", { ...row, flags: ["trash"] }, false],
  ];
  for (const [reason, mail, seen] of table) assert.equal(visible(mail), seen, reason);
});

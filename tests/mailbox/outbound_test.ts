import assert from "node:assert/strict";
import fc from "fast-check";
import type { Outcome } from "../../actors/mailbox/outcome_input.ts";
import { MAX_OUTBOUND_RECIPIENTS } from "../../actors/mailbox/queue.ts";
import { createSuppression } from "../../actors/mailbox/suppressions.ts";
import {
  type MessageOutcome,
  nextRecipient,
  nextStatus,
  onItsWay,
  type RecipientOutcome,
  sumOf,
} from "../../actors/mailbox/transitions.ts";
import { recipientState } from "../../lib/payloads/rows.ts";
import { outboundStatus } from "../../lib/payloads/shapes.ts";
import { suppressionEventId } from "../../lib/payloads/suppression.ts";
import { type Box, HASH_KEY, MARTA, type MessageId, paths, refuses, withBox } from "./support.ts";

const SENT: Outcome = {
  outcome: "sent",
  provider: "northrelay",
  provider_message_id: "nr-1",
  sent_via_fallback: false,
};
const hard: Outcome = {
  outcome: "bounced",
  recipient: MARTA,
  bounce_type: "hard",
  smtp_code: 550,
  smtp_response: "5.1.1 No such mailbox",
};
const soft: Outcome = { ...hard, bounce_type: "soft" };
const delivered: Outcome = { outcome: "delivered", recipient: MARTA, smtp_code: 250 };
const deferred: Outcome = { outcome: "deferred", recipient: MARTA, smtp_code: 451, smtp_response: null };
const complained: Outcome = { outcome: "complained", recipient: MARTA };

/** Applies outcomes in order to a fresh message and answers the last result. */
async function walk(box: Box, ...outcomes: Outcome[]) {
  let done = await box.queue();
  for (const outcome of outcomes) done = await box.outcome(done.state.id, outcome);
  return done;
}

Deno.test(
  "an outbound message is queued without an event, and shows no bcc",
  withBox(async (box) => {
    const done = await box.queue({}, ["hidden@lindenhof.example"]);
    assert.deepEqual([done.state.status, done.state.direction, done.event], ["queued", "outbound", null]);
    assert.equal(JSON.stringify(done).includes("hidden"), false);
    const sent = await box.outcome(done.state.id, SENT);
    assert.equal(sent.event?.type, "message.sent");
    assert.equal((await box.w.texts()).some((text) => text!.includes("hidden")), false);
    await box.outcome(done.state.id, { ...delivered, recipient: "Hidden@lindenhof.example" });
    assert.equal((await box.last()).data.recipient, "hidden@lindenhof.example");
  }),
);

Deno.test(
  "each possible way of a message and of a recipient is one event each, and the message shows where it stands",
  withBox(async (box) => {
    const table: [Outcome[], string, string][] = [
      [[SENT], "sent", "message.sent"],
      [[SENT, delivered], "delivered", "message.delivered"],
      [[SENT, deferred], "deferred", "message.deferred"],
      [[SENT, deferred, deferred, delivered], "delivered", "message.delivered"],
      [[SENT, soft], "bounced", "message.bounced"],
      [[{ outcome: "rejected", reason: "size", detail: null }], "rejected", "message.rejected"],
      [[{ outcome: "failed", reason: "no_provider" }], "failed", "message.failed"],
      [[{ outcome: "canceled" }], "canceled", "message.canceled"],
      [[{ outcome: "uncertain", reason: "timeout" }], "uncertain", "message.uncertain"],
      [
        [{ outcome: "uncertain", reason: "timeout" }, { outcome: "reconciled", status: "sent" }, delivered],
        "delivered",
        "message.delivered",
      ],
      [
        [{ outcome: "uncertain", reason: "timeout" }, { outcome: "reconciled", status: "failed" }],
        "failed",
        "message.reconciled",
      ],
      [[{ outcome: "suppressed", recipients: [MARTA] }], "suppressed", "message.suppressed"],
    ];
    for (const [outcomes, status, type] of table) {
      const before = (await box.types()).length;
      const done = await walk(box, ...outcomes);
      assert.equal(done.state.status, status, type);
      assert.equal(done.event?.type, type);
      assert.equal((await box.types()).length, before + outcomes.length, type);
    }
  }),
);

Deno.test(
  "an impossible transition is 409 invalid_state and sends nothing",
  withBox(async (box) => {
    const canceled: Outcome = { outcome: "canceled" };
    const table: [Outcome[], Outcome, string][] = [
      [[], delivered, "delivered before it was sent"],
      [[], { outcome: "reconciled", status: "sent" }, "reconciled without being uncertain"],
      [[SENT], SENT, "sent twice"],
      [[SENT], canceled, "canceled after it was sent"],
      [[SENT], { outcome: "suppressed", recipients: [MARTA] }, "suppressed after it was sent"],
      [[SENT], complained, "a complaint about what was not delivered"],
      [[SENT, delivered], delivered, "delivered twice"],
      [[SENT, delivered], deferred, "deferred after delivery"],
      [[SENT, soft], delivered, "delivered after a bounce"],
      [[canceled], SENT, "sent after it was canceled"],
      [[{ outcome: "failed", reason: "x" }], delivered, "delivered after it failed"],
      [[{ outcome: "uncertain", reason: "x" }], SENT, "sent while uncertain: it must be reconciled"],
    ];
    for (const [outcomes, impossible, why] of table) {
      const { state } = await walk(box, ...outcomes);
      await refuses(box, "invalid_state", () => box.outcome(state.id, impossible), why);
    }
    const inbound = (await box.receive()).state.id;
    await refuses(box, "invalid_state", () => box.outcome(inbound, SENT), "inbound");
  }),
);

Deno.test(
  "a recipient the message does not have is a 400 that names the field",
  withBox(async (box) => {
    const { state } = await walk(box, SENT);
    const other = { ...delivered, recipient: "other@x.example" } as Outcome;
    assert.deepEqual(paths(await refuses(box, "invalid_request", () => box.outcome(state.id, other))), [
      "recipient",
    ]);
    const { state: queued } = await box.queue();
    const suppressed: Outcome = { outcome: "suppressed", recipients: [MARTA, "other@x.example"] };
    const error = await refuses(box, "invalid_request", () => box.outcome(queued.id, suppressed));
    assert.deepEqual(paths(error), ["recipients.1"]);
  }),
);

Deno.test(
  "a hard bounce and a complaint suppress the address in the same commit; a soft bounce does not",
  withBox(async (box) => {
    const bounced = await walk(box, SENT, hard);
    assert.deepEqual(bounced.events.map(({ type }) => type), ["message.bounced", "suppression.created"]);
    const [bounce, created] = (await box.w.envelopes()).slice(-2);
    assert.equal(bounce!.data.suppressed, true);
    assert.deepEqual(created!.data, {
      address_hint: "m***@l***.example",
      reason: "hard_bounce",
      source_message_id: bounced.state.id,
    });
    assert.equal(created!.id, suppressionEventId(HASH_KEY, box.owner.id, MARTA));
    const someone = "ines@lindenhof.example";
    const other = await box.queue({ to: [{ address: someone, name: null }] });
    await box.outcome(other.state.id, SENT);
    const result = await box.outcome(
      other.state.id,
      { ...soft, recipient: someone } as Outcome,
    );
    assert.deepEqual(result.events.map(({ type }) => type), ["message.bounced"]);
    assert.equal((await box.last()).data.suppressed, false);
  }),
);

Deno.test(
  "suppression.created: the same address twice is one event with one sequence, whoever asks",
  withBox(async (box) => {
    const { state } = await walk(box, SENT, delivered);
    const suppress = (address: string) =>
      box.run((tx) =>
        createSuppression(tx, HASH_KEY, { address, reason: "manual", source_message_id: null })
      );
    const first = await suppress("Marta@Lindenhof.example");
    assert.equal(first.event?.duplicate, false);
    const again = await suppress(MARTA);
    assert.deepEqual([again.event?.duplicate, again.event?.id, again.event?.sequence], [
      true,
      first.event?.id,
      first.event?.sequence,
    ]);
    assert.equal(again.state.reason, "manual");
    const complaint = await box.outcome(state.id, complained);
    assert.deepEqual(complaint.events.map(({ type }) => type), ["message.complained"]);
    assert.equal(
      complaint.event?.sequence,
      first.event!.sequence + 1,
      "no sequence was spent on the duplicate",
    );
    assert.equal((await box.types()).filter((type) => type === "suppression.created").length, 1);
    const unknown = box.w.ids.next("message");
    await refuses(
      box,
      "message_not_found",
      () =>
        box.run((tx) =>
          createSuppression(tx, HASH_KEY, {
            address: "x@y.example",
            reason: "manual",
            source_message_id: unknown,
          })
        ),
    );
  }),
);

Deno.test(
  "a suppressed recipient is left out of a new message; with nobody left the message is suppressed",
  withBox(async (box) => {
    await box.run((tx) =>
      createSuppression(tx, HASH_KEY, { address: MARTA, reason: "manual", source_message_id: null })
    );
    const to = [{ address: MARTA, name: null }, { address: "ines@lindenhof.example", name: null }];
    const both = await box.queue({ to });
    assert.deepEqual([both.state.status, both.event?.type], ["queued", "message.suppressed"]);
    assert.deepEqual((await box.last()).data, { message_id: both.state.id, recipients: [MARTA] });
    await box.outcome(both.state.id, SENT);
    await refuses(box, "invalid_state", () => box.outcome(both.state.id, delivered), "it never went to her");
    const done = await box.outcome(both.state.id, { ...delivered, recipient: to[1]!.address });
    assert.equal(done.state.status, "delivered");
    const alone = await box.queue();
    assert.deepEqual([alone.state.status, alone.event?.type], ["suppressed", "message.suppressed"]);
    await refuses(box, "invalid_state", () => box.outcome(alone.state.id, SENT), "nobody to send to");
  }),
);

Deno.test(
  "a message is sent from an active address of the identity to 1 to 50 recipients",
  withBox(async (box) => {
    const from = { address: "someone@else.example", name: null };
    assert.deepEqual(paths(await refuses(box, "invalid_request", () => box.queue({ from }))), [
      "from.address",
    ]);
    const many = Array.from({ length: MAX_OUTBOUND_RECIPIENTS }, (_, i) => ({
      address: `r${i}@x.example`,
      name: null,
    }));
    assert.deepEqual(paths(await refuses(box, "invalid_request", () => box.queue({ to: [] }))), ["to"]);
    await refuses(box, "invalid_request", () => box.queue({ to: many }, ["one@more.example"]));
    assert.equal((await box.queue({ to: many })).state.to.length, MAX_OUTBOUND_RECIPIENTS);
  }),
);

Deno.test("the state machine: ends are ends, and what a message shows follows from its recipients", () => {
  const outcomes: MessageOutcome[] = [
    "sent",
    "rejected",
    "failed",
    "uncertain",
    "suppressed",
    "canceled",
    "reconciled",
  ];
  for (const status of outboundStatus.options) {
    const possible = outcomes.filter((outcome) => nextStatus(status, outcome) !== null);
    const wanted = status === "queued" ? 6 : status === "uncertain" ? 1 : 0;
    assert.equal(possible.length, wanted, status);
    assert.ok(!(onItsWay(status) && possible.length > 0), status);
  }
  const recipients: RecipientOutcome[] = ["delivered", "deferred", "bounced", "complained"];
  for (const end of ["bounced", "complained", "suppressed"] as const) {
    for (const outcome of recipients) assert.equal(nextRecipient(end, outcome), null);
  }
  fc.assert(fc.property(fc.array(fc.constantFrom(...recipientState.options), { minLength: 1 }), (states) => {
    const shown = sumOf(states);
    const open = states.some((state) => state === "pending" || state === "deferred");
    if (shown === "delivered") assert.ok(!open && !states.includes("bounced"));
    if (states.includes("complained")) assert.equal(shown, "complained");
    assert.equal(sumOf(states.toReversed()), shown, "order does not matter");
  }));
});

Deno.test(
  "O1: outcomes in any order never leave a state without its event",
  withBox(async (box) => {
    let run = 0;
    const steps = fc.constantFrom<Outcome>(
      SENT,
      delivered,
      deferred,
      hard,
      complained,
      { outcome: "canceled" },
      { outcome: "uncertain", reason: "x" },
      { outcome: "reconciled", status: "sent" },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 8 }), async (outcomes) => {
        const address = `r${run++}@x.example`; // nobody suppressed yet
        const to = [{ address, name: null }, { address: "ines@x.example", name: null }];
        const { state } = await box.queue({ to });
        for (const step of outcomes) {
          const outcome = "recipient" in step ? { ...step, recipient: address } : step;
          const before = (await box.types()).length;
          const done = await box.outcome(state.id as MessageId, outcome).catch(() => null);
          assert.equal((await box.types()).length, before + (done?.events.length ?? 0));
          if (done !== null) assert.equal(done.event?.type, `message.${outcome.outcome}`);
        }
      }),
      { numRuns: 25 },
    );
  }),
);

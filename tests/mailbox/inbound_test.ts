import assert from "node:assert/strict";
import { releaseMessage, reprocessMessage, triageMessage } from "../../actors/mailbox/receive.ts";
import { viewMessage } from "../../actors/mailbox/views.ts";
import { messageReceived } from "../../lib/payloads/message.ts";
import { keys } from "../../lib/keys.ts";
import { MAX_VALUE_BYTES, TEXT_BYTES_MAX } from "../../lib/limits.ts";
import { parseMail } from "../../lib/mail.ts";
import { type Box, MARTA, type MessageId, NOOR, paths, refuses, withBox } from "./support.ts";

const demo = async (name: string) =>
  await parseMail(await Deno.readFile(new URL(`../../demo/mails/${name}`, import.meta.url)));

/** The tenant's policy of the text cap, as an update would leave it. */
async function capAt(box: Box, webhook_text_bytes: number) {
  const tenant = { ...box.w.tenant, policy: { ...box.w.tenant.policy, webhook_text_bytes } };
  await box.w.kv.set(keys.tenant(tenant.id), tenant);
  box.w.owners.forgetTenant(tenant.id);
}

Deno.test(
  "O1: a received mail's rows and message.received are one commit, and its event can be found by message",
  withBox(async (box) => {
    const { event, state } = await box.receive({ text: "Hello 🌱" });
    const { data, sequence } = await box.last();
    assert.equal(sequence, 2);
    assert.equal(messageReceived.data.safeParse(data).success, true);
    assert.deepEqual([data.extracted_text, data.extracted_text_truncated], ["Hello 🌱", false]);
    const rows = await Promise.all([
      box.w.kv.get(keys.ownerState(box.owner, "message", state.id)),
      box.w.kv.get(keys.event(event!.key)),
      box.w.kv.get(keys.eventOfMessage(state.id, event!.key)),
    ]);
    assert.equal(new Set(rows.map(({ versionstamp }) => versionstamp)).size, 1);
    assert.notEqual(rows[0].versionstamp, null);
  }),
);

Deno.test(
  "payload_text_cap: message.received is cut at the tenant's webhook_text_bytes, between characters",
  withBox(async (box) => {
    const long = await demo("emoji_long.eml");
    const bytes = (text: unknown) => new TextEncoder().encode(text as string).length;
    await box.receive(long);
    const { data } = await box.last();
    assert.equal(data.extracted_text_truncated, true);
    assert.ok(bytes(data.extracted_text) <= 16_384 && bytes(data.extracted_text) > 16_380);
    assert.ok(long.text.startsWith(data.extracted_text as string));
    await capAt(box, 100);
    await box.receive(long);
    assert.ok(bytes((await box.last()).data.extracted_text) <= 100);
    await capAt(box, 65_536);
    await box.receive(long);
    const whole = (await box.last()).data;
    assert.deepEqual([whole.extracted_text, whole.extracted_text_truncated], [long.text, false]);
  }),
);

Deno.test(
  "payload_text_cap: text over the greatest cap is kept to 65,536 bytes and says so, each row under 64 KiB",
  withBox(async (box) => {
    await capAt(box, 1_000_000);
    const { state } = await box.receive({ text: "é".repeat(400_000) });
    const { data } = await box.last();
    assert.equal(new TextEncoder().encode(data.extracted_text as string).length, TEXT_BYTES_MAX);
    assert.equal(data.extracted_text_truncated, true);
    for await (
      const entry of box.w.kv.list<Uint8Array>({ prefix: keys.ownerState(box.owner, "text", state.id) })
    ) {
      assert.ok(entry.value.length < MAX_VALUE_BYTES - 1_024);
    }
    const shown = await viewMessage(box.w.kv, box.owner, { ...box.w.tenant }, state.id);
    assert.equal(shown.extracted_text_truncated, true);
  }),
);

Deno.test(
  "payload_text_cap: quarantined carries none, and neither does reading it before its release",
  withBox(async (box) => {
    const { state, event } = await box.receive({ quarantine_reason: "spam", text: "CANARY" }, {
      verification: { kind: "code" },
    });
    assert.equal(event?.type, "message.quarantined");
    assert.equal((await box.w.texts()).some((text) => text!.includes("CANARY")), false);
    assert.deepEqual(await box.types(), ["identity.created", "message.quarantined"]);
    const read = () => viewMessage(box.w.kv, box.owner, box.w.tenant, state.id);
    assert.equal((await read()).extracted_text, null);
    await box.run((tx) => releaseMessage(tx, state.id as MessageId, { key: tx.ids.next("key") }, "known"));
    assert.equal((await read()).extracted_text, "CANARY");
    assert.equal(
      (await box.w.texts()).some((text) => text!.includes("CANARY")),
      false,
      "released is thin too",
    );
  }),
);

Deno.test(
  "what is held back: a given reason, a malicious verdict, a failed DMARC check; nothing else",
  withBox(async (box) => {
    const none = { spf: "none", dkim: "none", dmarc: "none" } as const;
    const table = [
      [{ quarantine_reason: "malware" }, "malware"],
      [{ trust: { verdict: "malicious", ...none } }, "trust_verdict"],
      [{ trust: { verdict: "suspicious", ...none, dmarc: "fail" } }, "dmarc_failed"],
      [{ trust: { verdict: "suspicious", ...none } }, undefined],
      [{}, undefined],
    ] as const;
    for (const [change, reason] of table) {
      await box.receive(change);
      assert.equal((await box.last()).data.quarantine_reason, reason);
    }
  }),
);

Deno.test(
  "verification.received follows its mail in the same commit and never carries the value",
  withBox(async (box) => {
    const done = await box.receive({ text: "Your code is 493817" }, { verification: { kind: "code" } });
    assert.deepEqual(done.events.map(({ type, sequence }) => [type, sequence]), [
      ["message.received", 2],
      ["verification.received", 3],
    ]);
    assert.deepEqual((await box.last()).data, {
      message_id: done.state.id,
      sender_domain: "lindenhof.example",
      kind: "code",
    });
  }),
);

Deno.test(
  "only a quarantined mail is released, once",
  withBox(async (box) => {
    const by = { user: box.w.ids.next("user") };
    const release = (id: string) => box.run((tx) => releaseMessage(tx, id as MessageId, by, null));
    const inbox = (await box.receive()).state.id;
    await refuses(box, "invalid_state", () => release(inbox), "in the inbox");
    const held = (await box.receive({ quarantine_reason: "policy" })).state.id;
    const done = await release(held);
    assert.equal(done.state.status, "released");
    const { data } = await box.last();
    assert.deepEqual([data.released_by_key_id, data.released_by_user_id], [null, by.user]);
    await refuses(box, "invalid_state", () => release(held), "released already");
    await refuses(box, "message_not_found", () => release(box.w.ids.next("message")), "unknown");
  }),
);

Deno.test(
  "triage sets the verdict and its flag; the same verdict again sends nothing; quarantined mail is not triaged",
  withBox(async (box) => {
    const id = (await box.receive({ flags: ["vip"] })).state.id as MessageId;
    const verdict = { needs_reply: true, priority: "high", category: null } as const;
    const done = await box.run((tx) => triageMessage(tx, id, verdict));
    assert.deepEqual(done.state.flags, ["vip", "needs_reply"]);
    assert.deepEqual((await box.last()).data.triage, verdict);
    assert.equal((await box.run((tx) => triageMessage(tx, id, verdict))).event, null);
    const cleared = await box.run((tx) => triageMessage(tx, id, { ...verdict, needs_reply: false }));
    assert.deepEqual(cleared.state.flags, ["vip"]);
    const held = (await box.receive({ quarantine_reason: "spam" })).state.id as MessageId;
    await refuses(
      box,
      "invalid_state",
      () => box.run((tx) => triageMessage(tx, held, verdict)),
      "quarantined",
    );
  }),
);

Deno.test(
  "a re-parse sends message.received again with reprocessed: true, under the policy of today",
  withBox(async (box) => {
    const id = (await box.receive({ text: "one two three" })).state.id as MessageId;
    const first = (await box.last()).data;
    await capAt(box, 3);
    const done = await box.run((tx) => reprocessMessage(tx, id));
    const again = (await box.last()).data;
    assert.equal(done.event?.sequence, 3);
    assert.deepEqual(again, {
      ...first,
      extracted_text: "one",
      extracted_text_truncated: true,
      reprocessed: true,
    });
    const held = (await box.receive({ quarantine_reason: "spam" })).state.id as MessageId;
    await refuses(box, "invalid_state", () => box.run((tx) => reprocessMessage(tx, held)), "quarantined");
  }),
);

Deno.test(
  "a reply joins the thread of what it answers, by In-Reply-To or References; anything else starts one",
  withBox(async (box) => {
    const first = (await box.receive(await demo("plain.eml"))).state;
    const reply = (await box.receive(await demo("multipart_attachment.eml"))).state;
    assert.equal(reply.thread_id, first.thread_id);
    const byReference = await box.receive({
      references: ["<unknown@x.example>", first.in_reply_to ?? "", "<20261002081455.7c1@lindenhof.example>"],
    });
    assert.equal(byReference.state.thread_id, first.thread_id);
    assert.notEqual((await box.receive()).state.thread_id, first.thread_id);
    const sent = await box.queue({ in_reply_to: "<20261002081455.7c1@lindenhof.example>" });
    assert.equal(sent.state.thread_id, first.thread_id);
    const thread = box.w.ids.next("thread");
    const error = await refuses(box, "invalid_request", () => box.receive({}, { thread }), "no such thread");
    assert.deepEqual(paths(error), ["thread_id"]);
  }),
);

Deno.test(
  "the identity's own address tells whom a mail was delivered to, and whether it was a primary recipient",
  withBox(async (box) => {
    const shown = async (change: Parameters<Box["receive"]>[0]) => {
      const { state } = await box.receive(change);
      return [state.delivered_to, state.is_primary_recipient];
    };
    const noor = [{ address: "Noor@Werkbank.example", name: null }];
    const marta = [{ address: MARTA, name: null }];
    assert.deepEqual(await shown({ to: noor }), ["Noor@Werkbank.example", true]);
    assert.deepEqual(await shown({ to: marta, cc: noor }), ["Noor@Werkbank.example", false]);
    assert.deepEqual(await shown({ to: marta }), [null, false]);
    assert.deepEqual(await shown({ to: marta, delivered_to: NOOR }), [NOOR, false]);
  }),
);

Deno.test(
  "sequence_strictly_increases: over every kind of command of a mailbox, also when callers do not wait",
  withBox(async (box) => {
    const many = Array.from({ length: 30 }, (_, i) => i % 3 === 0 ? box.queue() : box.receive());
    await Promise.all(many);
    const sequences = (await box.w.envelopes()).map((envelope) => envelope!.sequence);
    assert.deepEqual(sequences, sequences.map((_, i) => i + 1));
    assert.equal(sequences.length, 21);
  }),
);

Deno.test(
  "the largest mail the bounds allow still fits its commit or is refused as too large, never half written",
  withBox(async (box) => {
    const person = (i: number) => ({ address: `${"字".repeat(240)}${i}@x.example`, name: "字".repeat(128) });
    const people = Array.from({ length: 100 }, (_, i) => person(i));
    const attachments = Array.from({ length: 100 }, () => ({
      filename: "字".repeat(200),
      content_type: "application/octet-stream",
      size: 1,
    }));
    await capAt(box, TEXT_BYTES_MAX);
    const { state } = await box.receive({ to: people, attachments, text: "ж".repeat(40_000) });
    const shown = await viewMessage(box.w.kv, box.owner, box.w.tenant, state.id);
    assert.equal(shown.to.length, 100);
    await refuses(
      box,
      "payload_too_large",
      () => box.receive({ to: people, cc: people, attachments, text: '"'.repeat(65_536) }),
    );
  }),
);

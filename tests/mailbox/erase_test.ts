import assert from "node:assert/strict";
import { activateAddress, addAddress, promoteAddress } from "../../actors/mailbox/addresses.ts";
import { emitEvent } from "../../actors/mailbox/emit_event.ts";
import { eraseIdentity, eraseMessage, holds, messagesOf } from "../../actors/mailbox/erase.ts";
import { createIdentity, deleteIdentity } from "../../actors/mailbox/identity.ts";
import { createSuppression } from "../../actors/mailbox/suppressions.ts";
import type { Id } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { type Box, HASH_KEY, MARTA, NOOR, withBox } from "./support.ts";

/** Keys of the store that name the mailbox or its address, but for its sequence and its events. */
async function traces(box: Box): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of box.w.kv.list({ prefix: [] })) {
    const name = JSON.stringify(key);
    const mine = name.includes(box.owner.id) || name.includes(NOOR);
    if (mine && key[0] !== "seq" && !String(key[0]).startsWith("ev")) found.push(name);
  }
  return found;
}

Deno.test(
  "erasing a message takes all its rows, and its thread when it was the last in it",
  withBox(async (box) => {
    const before = await traces(box);
    const first = await box.receive({ message_id: "<one@x.example>", text: "é".repeat(40_000) });
    const reply = await box.receive({ message_id: "<two@x.example>", in_reply_to: "<one@x.example>" });
    const sent = await box.queue({ in_reply_to: "<two@x.example>" });
    const thread = first.state.thread_id as Id<"thread">;
    const ids = [first, reply, sent].map(({ state }) => state.id);
    const listed: string[] = [];
    for await (const id of messagesOf(box.w.kv, box.owner, thread)) listed.push(id);
    assert.deepEqual(listed, ids);
    for (const id of ids) {
      assert.equal(await holds(box.w.kv, box.owner, "thread", thread), true);
      assert.equal(await box.run((tx) => eraseMessage(tx, id)), true);
      assert.equal(await box.run((tx) => eraseMessage(tx, id)), false, "again finds nothing");
    }
    assert.deepEqual(await traces(box), before);
  }),
);

Deno.test(
  "a later mail does not join the thread of an erased one",
  withBox(async (box) => {
    const first = await box.receive({ message_id: "<one@x.example>" });
    await box.run((tx) => eraseMessage(tx, first.state.id));
    const reply = await box.receive({ in_reply_to: "<one@x.example>" });
    assert.notEqual(reply.state.thread_id, first.state.thread_id);
  }),
);

Deno.test(
  "O2: erasing an identity leaves nothing of it but its sequence, and frees its address",
  withBox(async (box) => {
    const { w, owner } = box;
    const identity_id = owner.id;
    for (let i = 0; i < 130; i++) await box.receive({ message_id: `<${i}@x.example>` });
    await box.queue();
    await box.run((tx) =>
      createSuppression(tx, HASH_KEY, { address: MARTA, reason: "manual", source_message_id: null })
    );
    await box.run((tx) => emitEvent(tx, { type: "identity.key_created", data: { identity_id, kid: "k1" } }));
    const second = (await box.run((tx) => addAddress(tx, "second@werkbank.example"))).state.id as Id<
      "address"
    >;
    await box.run((tx) => activateAddress(tx, second));
    await box.run((tx) => promoteAddress(tx, second));
    const seq = (await w.kv.get<number>(keys.ownerMeta(owner))).value;
    await box.run((tx) => deleteIdentity(tx, "asked"));
    const rows = await eraseIdentity(w, owner);
    assert.ok(rows > 600, `${rows} rows take more than one commit`);
    assert.deepEqual(await traces(box), []);
    assert.equal((await w.kv.get<number>(keys.ownerMeta(owner))).value, seq);
    assert.equal(await eraseIdentity(w, owner), 0, "again finds nothing");
    const other = { kind: "mailbox" as const, tenant: w.tenant.id, id: w.ids.next("identity") };
    const done = await w.owners.run(
      other,
      (tx) => createIdentity(tx, { display_name: "New", address: NOOR }),
    );
    assert.equal(done.state.primary_address, NOOR);
  }),
);

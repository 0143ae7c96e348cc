import assert from "node:assert/strict";
import {
  activateAddress,
  addAddress,
  MAX_ADDRESSES,
  promoteAddress,
  retireAddress,
  retireDueAddresses,
} from "../../actors/mailbox/addresses.ts";
import { type Emission, emitEvent } from "../../actors/mailbox/emit_event.ts";
import {
  createIdentity,
  deleteIdentity,
  pauseIdentity,
  resumeIdentity,
  updateIdentity,
} from "../../actors/mailbox/identity.ts";
import type { EventId, Id } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { type Box, NOOR, paths, refuses, withBox } from "./support.ts";

type AddressId = Id<"address">;

Deno.test(
  "O1: an identity, its look-ups and identity.created come in one commit",
  withBox(async (box) => {
    const { w, owner } = box;
    const created = await box.last();
    assert.deepEqual([created.type, created.identity_id, created.sequence], [
      "identity.created",
      owner.id,
      1,
    ]);
    assert.equal((created.data.identity as { primary_address: string }).primary_address, NOOR);
    assert.deepEqual((await w.kv.get(keys.ownerOf(owner.id))).value, owner);
    const entries = await Promise.all([
      w.kv.get(keys.ownerState(owner, "identity")),
      w.kv.get(keys.ownerOf(owner.id)),
      w.kv.get(keys.ownerOfTenant(owner)),
      w.kv.get(keys.ownerMeta(owner)),
    ]);
    assert.equal(new Set(entries.map(({ versionstamp }) => versionstamp)).size, 1);
  }),
);

Deno.test(
  "identity.updated names the fields that changed; no change writes and sends nothing",
  withBox(async (box) => {
    const done = await box.run((tx) =>
      updateIdentity(tx, { display_name: "Noor Aziz", description: "Sales", external_id: "crm-1" })
    );
    assert.deepEqual((await box.last()).data.changed, ["description", "external_id"]);
    assert.equal(done.event?.sequence, 2);
    const again = await box.run((tx) => updateIdentity(tx, { description: "Sales" }));
    assert.equal(again.event, null);
    assert.equal((await box.types()).length, 2);
    await box.run((tx) => updateIdentity(tx, { description: null }));
    assert.equal((await box.last()).sequence, 3);
  }),
);

Deno.test(
  "an identity is paused once and resumed once; an abuse threshold brings its metrics",
  withBox(async (box) => {
    await refuses(box, "invalid_state", () => box.run(resumeIdentity), "not paused");
    const metrics = { complaint_rate: 0.01 };
    const paused = await box.run((tx) => pauseIdentity(tx, { reason: "abuse_threshold", metrics }));
    assert.deepEqual([paused.state.status, paused.state.paused_reason], ["paused", "abuse_threshold"]);
    assert.deepEqual((await box.last()).data, {
      identity_id: box.owner.id,
      reason: "abuse_threshold",
      metrics,
    });
    await refuses(
      box,
      "invalid_state",
      () => box.run((tx) => pauseIdentity(tx, { reason: "manual" })),
      "paused already",
    );
    assert.equal((await box.run(resumeIdentity)).state.status, "active");
    assert.equal((await box.last()).type, "identity.resumed");
  }),
);

Deno.test(
  "a paused identity receives but sends nothing",
  withBox(async (box) => {
    await box.run((tx) => pauseIdentity(tx, { reason: "manual" }));
    await refuses(box, "invalid_state", () => box.queue(), "paused");
    assert.equal((await box.receive()).event?.type, "message.received");
  }),
);

Deno.test(
  "a deleted identity takes no command any more, and deleting twice names one erasure",
  withBox(async (box) => {
    const first = await box.run((tx) => deleteIdentity(tx, "asked"));
    const second = await box.run((tx) => deleteIdentity(tx, "asked again"));
    assert.equal(first.identity.status, "deleting");
    assert.equal(first.erasure.id, second.erasure.id);
    await refuses(box, "invalid_state", () => box.receive(), "mail");
    await refuses(
      box,
      "invalid_state",
      () => box.run((tx) => updateIdentity(tx, { display_name: "x" })),
      "update",
    );
    await refuses(box, "invalid_state", () => box.run((tx) => addAddress(tx, "a@b.example")), "address");
    assert.deepEqual(await box.types(), ["identity.created"]);
  }),
);

Deno.test(
  "an address is added, activated, promoted and retired, each with its event",
  withBox(async (box) => {
    const added = await box.run((tx) => addAddress(tx, "Noor.Aziz@Werkbank.example"));
    const id = added.state.id as AddressId;
    assert.deepEqual([added.state.address, added.state.status], ["noor.aziz@werkbank.example", "pending"]);
    await refuses(box, "invalid_state", () => box.run((tx) => promoteAddress(tx, id)), "pending");
    await box.run((tx) => activateAddress(tx, id));
    await refuses(box, "invalid_state", () => box.run((tx) => activateAddress(tx, id)), "active already");
    const promoted = await box.run((tx) => promoteAddress(tx, id, 30));
    assert.equal(promoted.state.is_primary, true);
    const { previous_primary } = (await box.last()).data as { previous_primary: Record<string, unknown> };
    assert.equal(previous_primary.address, NOOR);
    assert.equal(previous_primary.retire_at, new Date(box.w.clock.now + 30 * DAY_MS).toISOString());
    await refuses(box, "invalid_state", () => box.run((tx) => retireAddress(tx, id)), "primary");
    await box.run((tx) => retireAddress(tx, previous_primary.id as AddressId));
    assert.deepEqual((await box.types()).slice(1), [
      "identity.address_added",
      "identity.address_activated",
      "identity.address_promoted",
      "identity.address_retired",
    ]);
    const nobody = box.w.ids.next("address");
    await refuses(box, "address_not_found", () => box.run((tx) => retireAddress(tx, nobody)), "unknown");
  }),
);

Deno.test(
  "an address belongs to one identity of a tenant until it is retired",
  withBox(async (box) => {
    const { w } = box;
    const other = { kind: "mailbox" as const, tenant: w.tenant.id, id: w.ids.next("identity") };
    const create = () =>
      w.owners.run(
        other,
        (tx) => createIdentity(tx, { display_name: "Other", address: "NOOR@werkbank.example" }),
      );
    await refuses(box, "already_exists", create, "taken, in another spelling");
    const added = await box.run((tx) => addAddress(tx, "new@werkbank.example"));
    await box.run((tx) => activateAddress(tx, added.state.id as AddressId));
    const { previous_primary } = await box.run((tx) => promoteAddress(tx, added.state.id as AddressId))
      .then(async () => (await box.last()).data as { previous_primary: { id: AddressId } });
    await box.run((tx) => retireAddress(tx, previous_primary.id));
    assert.equal((await create()).state.primary_address, NOOR);
  }),
);

Deno.test(
  "a former primary address retires by itself when its time has come, unless it was promoted again",
  withBox(async (box) => {
    const { w } = box;
    const d = { kv: w.kv, owners: w.owners, now: w.now };
    const second = (await box.run((tx) => addAddress(tx, "second@werkbank.example"))).state.id as AddressId;
    await box.run((tx) => activateAddress(tx, second));
    await box.run((tx) => promoteAddress(tx, second, 1));
    assert.equal(await retireDueAddresses(d), 0, "not yet");
    const first = ((await box.last()).data.previous_primary as { id: AddressId }).id;
    await box.run((tx) => promoteAddress(tx, first, 2));
    w.clock.now += DAY_MS;
    assert.equal(await retireDueAddresses(d), 0, "it is primary again");
    w.clock.now += DAY_MS;
    assert.equal(await retireDueAddresses(d), 1, "the second one is due");
    assert.equal((await box.last()).type, "identity.address_retired");
    assert.equal(await retireDueAddresses(d), 0, "once");
  }),
);

Deno.test(
  `an identity has ${MAX_ADDRESSES} addresses at most`,
  withBox(async (box) => {
    for (let i = 1; i < MAX_ADDRESSES; i++) await box.run((tx) => addAddress(tx, `a${i}@werkbank.example`));
    await refuses(box, "invalid_state", () => box.run((tx) => addAddress(tx, "more@werkbank.example")));
  }),
);

const emit = (box: Box, emission: Emission) => box.run((tx) => emitEvent(tx, emission));

Deno.test(
  "identity_key_events: they carry the identity's id and its next sequence",
  withBox(async (box) => {
    const identity_id = box.owner.id;
    await emit(box, { type: "identity.key_created", data: { identity_id, kid: "k1" } });
    await box.receive();
    await emit(box, { type: "identity.key_rotated", data: { identity_id, kid: "k2", previous_kid: "k1" } });
    await emit(box, { type: "identity.key_revoked", data: { identity_id, kid: "k1" } });
    const events = (await box.w.envelopes()).map((e) => [e!.type, e!.identity_id, e!.sequence]);
    assert.deepEqual(events, [
      ["identity.created", identity_id, 1],
      ["identity.key_created", identity_id, 2],
      ["message.received", identity_id, 3],
      ["identity.key_rotated", identity_id, 4],
      ["identity.key_revoked", identity_id, 5],
    ]);
  }),
);

Deno.test(
  "identity_key_events: a no-op emits nothing",
  withBox(async (box) => {
    const identity_id = box.owner.id;
    const all: Emission[] = [
      { type: "identity.key_rotated", data: { identity_id, kid: "k1", previous_kid: null } },
      { type: "identity.key_rotated", data: { identity_id, kid: "k2", previous_kid: "k1" } },
      { type: "identity.key_revoked", data: { identity_id, kid: "k1" } },
    ];
    for (const emission of all) assert.equal((await emit(box, emission)).state.emitted, true);
    const before = await box.types();
    for (const emission of all.toReversed()) {
      const again = await emit(box, emission);
      assert.deepEqual([again.state.emitted, again.event], [false, null], emission.type);
    }
    await emit(box, { type: "identity.key_created", data: { identity_id, kid: "k1" } });
    assert.deepEqual(await box.types(), before);
    const next = await emit(box, { type: "identity.key_revoked", data: { identity_id, kid: "k2" } });
    assert.equal(next.event?.sequence, 5, "no sequence was spent");
  }),
);

Deno.test(
  "identity_key_events: an impossible key change is refused",
  withBox(async (box) => {
    const identity_id = box.owner.id;
    const revoke = (kid: string) => emit(box, { type: "identity.key_revoked", data: { identity_id, kid } });
    const rotate = (kid: string, previous_kid: string) =>
      emit(box, { type: "identity.key_rotated", data: { identity_id, kid, previous_kid } });
    await refuses(box, "invalid_state", () => revoke("none"), "unknown key");
    await refuses(box, "invalid_state", () => rotate("k2", "none"), "unknown previous key");
    await emit(box, { type: "identity.key_created", data: { identity_id, kid: "k1" } });
    await revoke("k1");
    await refuses(box, "invalid_state", () => rotate("k2", "k1"), "the previous one is revoked");
    const foreign = box.w.ids.next("identity");
    const error = await refuses(
      box,
      "invalid_request",
      () => emit(box, { type: "identity.key_created", data: { identity_id: foreign, kid: "k9" } }),
    );
    assert.deepEqual(paths(error), ["data.identity_id"]);
  }),
);

Deno.test(
  "O1: a deterministic event id seen before emits nothing and changes nothing, whatever it says now",
  withBox(async (box) => {
    const identity_id = box.owner.id;
    const event_id = `evt_${box.w.ids.ulid()}` as EventId;
    const first = await emit(box, {
      type: "identity.key_created",
      data: { identity_id, kid: "k1" },
      event_id,
    });
    const second = await emit(box, {
      type: "identity.key_created",
      data: { identity_id, kid: "k2" },
      event_id,
    });
    assert.deepEqual([second.event?.id, second.event?.duplicate, second.state.emitted], [
      event_id,
      true,
      false,
    ]);
    assert.equal(second.event?.sequence, first.event?.sequence);
    await refuses(
      box,
      "invalid_state",
      () => emit(box, { type: "identity.key_revoked", data: { identity_id, kid: "k2" } }),
      "k2 never came to be",
    );
  }),
);

Deno.test(
  "quota.warning is emitted into the identity's sequence",
  withBox(async (box) => {
    const data = { metric: "messages_sent_per_day", used: 900, limit: 1_000, scope: "tenant" as const };
    await emit(box, { type: "quota.warning", data });
    assert.deepEqual((await box.last()).data, data);
  }),
);

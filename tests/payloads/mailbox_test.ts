/** Mailbox payloads: the wire bytes of every type, and what can never be in them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { buildEnvelope } from "../../lib/envelope.ts";
import { EXAMPLE } from "../../lib/payloads/examples.ts";
import { identityOf } from "../../lib/payloads/identity.ts";
import { mailboxTypes } from "../../lib/payloads/mailbox.ts";
import {
  messageQuarantined,
  messageReceived,
  messageReleased,
  quarantinedData,
  receivedData,
  releasedData,
  triagedData,
  verificationData,
  verificationReceived,
} from "../../lib/payloads/message.ts";
import type { MessageHeader, MessageRow } from "../../lib/payloads/rows.ts";
import { maskAddress, suppressionEventId, suppressionHash } from "../../lib/payloads/suppression.ts";
import { ulidTime } from "../../lib/ids.ts";
import { golden } from "./golden.ts";

const REFERENCE = `message.received message.quarantined message.released message.triaged message.sent
  message.delivered message.deferred message.bounced message.complained message.rejected message.failed
  message.uncertain message.reconciled message.suppressed message.canceled verification.received suppression.created
  quota.warning identity.created identity.updated identity.paused identity.resumed identity.address_added
  identity.address_activated identity.address_retired identity.address_promoted identity.key_created
  identity.key_rotated identity.key_revoked`.split(/\s+/);

Deno.test("the mailbox catalogue is exactly the mailbox table of the reference", () => {
  assert.deepEqual(mailboxTypes.map(({ name }) => name).toSorted(), REFERENCE.toSorted());
  for (const type of mailboxTypes) {
    assert.equal(type.owner, "mailbox");
    assert.ok(type.description.length > 20, type.name);
  }
});

for (const type of mailboxTypes) {
  Deno.test(`O3: the envelope of ${type.name} is byte for byte the golden one`, async () => {
    const bytes = buildEnvelope({
      id: "evt_01K6H0Q2V9ZC3M5N7P9R1S3T5V",
      type: type.name,
      occurredAt: Date.parse("2026-10-02T08:15:02.417Z"),
      tenant: EXAMPLE.tenant,
      identity: EXAMPLE.identity,
      sequence: 42,
      data: type.example,
    });
    await golden(`mailbox/${type.name}.json`, bytes);
  });

  Deno.test(`the schema of ${type.name} takes its example and refuses one field more anywhere`, () => {
    const parsed = type.data.parse(type.example);
    assert.equal(JSON.stringify(parsed), JSON.stringify(type.example), "nothing is dropped or reordered");
    for (const path of objectPaths(type.example)) {
      const wider = structuredClone(type.example) as Record<string, unknown>;
      setAt(wider, [...path, "body"], "the whole mail");
      assert.equal(type.data.safeParse(wider).success, false, path.join("."));
    }
  });
}

const row: MessageRow = {
  id: EXAMPLE.message,
  thread_id: EXAMPLE.thread,
  direction: "inbound",
  status: "received",
  kind: "mail",
  trust: { verdict: "unknown", spf: "none", dkim: "none", dmarc: "none" },
  triage: { needs_reply: true, priority: "high", category: null },
  quarantine_reason: null,
  labels: [],
  flags: [],
  sent_at: null,
  received_at: 1_790_000_000_000,
  created_at: 1_790_000_000_000,
  updated_at: 1_790_000_000_000,
  header_chunks: 1,
  text_chunks: 1,
  text_cut: false,
};
const header: MessageHeader = {
  from: { address: "marta@lindenhof.example", name: null },
  to: [],
  cc: [],
  delivered_to: null,
  is_primary_recipient: false,
  subject: null,
  message_id: null,
  in_reply_to: null,
  references: [],
  attachments: [],
};

/** Every place a mail's content could hide in rows, whatever the types say today. */
const soiled = fc.record({
  key: fc.constantFrom("text", "html", "body", "raw", "content", "snippet", "bcc", "extracted_text"),
  where: fc.constantFrom("row", "header"),
});
const BODY = "CANARY-of-the-body";

Deno.test("FR-WH-4: no body field but the capped extracted_text gets into data, whatever the rows hold", () => {
  fc.assert(fc.property(fc.array(soiled), fc.string(), fc.nat(200), (dirt, filler, cap) => {
    const add = <T extends object>(where: string, to: T): T => ({
      ...to,
      ...Object.fromEntries(dirt.filter((d) => d.where === where).map((d) => [d.key, BODY + filler])),
    });
    const r = add("row", { ...row, triage: row.triage! });
    const clean = { id: EXAMPLE.attachment, filename: "a.pdf", content_type: "application/pdf", size: 1 };
    const h = add<MessageHeader>("header", { ...header, attachments: [clean] });
    const text = BODY + filler;

    const received = receivedData(r, h, text, cap, false);
    const { extracted_text, ...rest } = received;
    assert.ok(new TextEncoder().encode(extracted_text).length <= cap);
    assert.equal(messageReceived.data.safeParse(received).success, true);
    const others = [
      rest,
      quarantinedData({ ...r, quarantine_reason: "spam" }, h),
      releasedData(r, h, { key: EXAMPLE.key }, null),
      triagedData(r),
      verificationData(r, h, { kind: "code" }),
    ];
    for (const data of others) assert.equal(JSON.stringify(data).includes(BODY), false);
    assert.equal(messageQuarantined.data.safeParse(others[1]).success, true);
    assert.equal(messageReleased.data.safeParse(others[2]).success, true);
    assert.equal(verificationReceived.data.safeParse(others[4]).success, true);
  }));
});

Deno.test("FR-WH-4: only extracted_text may hold free text beyond a header line: every other string is bounded", () => {
  const long = "x".repeat(1_000);
  for (const type of mailboxTypes) {
    for (const path of stringPaths(type.example)) {
      if (path.join(".") === "extracted_text") continue;
      const stuffed = structuredClone(type.example) as Record<string, unknown>;
      setAt(stuffed, path, long);
      assert.equal(type.data.safeParse(stuffed).success, false, `${type.name} ${path.join(".")}`);
    }
  }
});

Deno.test("payload_text_cap: quarantined carries no text", () => {
  const data = quarantinedData({ ...row, quarantine_reason: "spam" }, header);
  assert.deepEqual(Object.keys(data), ["message", "thread_id", "trust", "attachments", "quarantine_reason"]);
});

Deno.test("message.received says reprocessed only when a re-parse sends it again", () => {
  assert.equal("reprocessed" in receivedData(row, header, "", 10, false), false);
  assert.equal(receivedData(row, header, "", 10, true).reprocessed, true);
});

Deno.test("message.released names the key or the user, never both and never none", () => {
  const data = releasedData(row, header, { user: EXAMPLE.user }, null);
  assert.equal(messageReleased.data.safeParse(data).success, true);
  for (const [key, user] of [[EXAMPLE.key, EXAMPLE.user], [null, null]]) {
    const wrong = { ...data, released_by_key_id: key, released_by_user_id: user };
    assert.equal(messageReleased.data.safeParse(wrong).success, false);
  }
});

Deno.test("suppression.created has the same id for the same identity and address, whatever the spelling", () => {
  const hashKey = new TextEncoder().encode("a hash key of a test");
  const id = suppressionEventId(hashKey, EXAMPLE.identity, "Marta@Lindenhof.example");
  assert.equal(id, suppressionEventId(hashKey, EXAMPLE.identity, "marta@lindenhof.example"));
  assert.equal(id, "evt_01K6GZ4A7D" + id.slice(14));
  assert.equal(ulidTime(id), ulidTime(EXAMPLE.identity));
  const others = [
    suppressionEventId(hashKey, EXAMPLE.identity, "martb@lindenhof.example"),
    suppressionEventId(hashKey, "idn_01K6GZ4A7DSE0JY5H3C8F2K9TN", "marta@lindenhof.example"),
    suppressionEventId(new Uint8Array(32), EXAMPLE.identity, "marta@lindenhof.example"),
  ];
  assert.equal(new Set([id, ...others]).size, 4);
  assert.match(suppressionHash(hashKey, "marta@lindenhof.example"), /^[0-9a-f]{64}$/);
});

Deno.test("an address hint shows first letters and the top-level domain", () => {
  assert.equal(maskAddress("marta.oduya@lindenhof.example"), "m***@l***.example");
  assert.equal(maskAddress("a@b"), "a***@b***");
  assert.equal(maskAddress("🌱x@β.example"), "🌱***@β***.example");
});

Deno.test("an identity shows its state row and nothing else", () => {
  const shown = identityOf({
    id: EXAMPLE.identity,
    tenant_id: EXAMPLE.tenant,
    display_name: "Noor",
    description: null,
    external_id: null,
    status: "active",
    paused_reason: null,
    primary_address_id: null,
    primary_address: null,
    erasure_request_id: null,
    created_at: 0,
    updated_at: 1,
  });
  assert.equal("erasure_request_id" in shown, false);
  assert.equal(shown.updated_at, "1970-01-01T00:00:00.001Z");
});

function stringPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value === "string") return [path];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => stringPaths(inner, [...path, key]));
}

function objectPaths(value: unknown, path: string[] = []): string[][] {
  if (value === null || typeof value !== "object") return [];
  const inner = Object.entries(value).flatMap(([key, part]) => objectPaths(part, [...path, key]));
  return Array.isArray(value) ? inner : [path, ...inner];
}

function setAt(target: Record<string, unknown>, path: string[], value: unknown) {
  const last = path.at(-1)!;
  const parent = path.slice(0, -1).reduce((at, key) => at[key] as Record<string, unknown>, target);
  parent[last] = value;
}

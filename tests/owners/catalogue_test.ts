import assert from "node:assert/strict";
import { catalogue, unknownType } from "../../lib/catalogue.ts";
import { buildEnvelope } from "../../lib/envelope.ts";
import { nearest } from "../../lib/nearest.ts";
import { golden } from "../payloads/golden.ts";

const OCCURRED_AT = Date.UTC(2026, 9, 2, 8, 15, 2, 417);
const TENANT = "ten_01K6GZ3T9QW5X8V7R2N4M6P1BD";

for (const type of catalogue.values()) {
  if (type.owner === "mailbox") continue; // their golden files carry an identity and are held by their own test
  Deno.test(`catalogue: ${type.name} goes out as its golden file`, async () => {
    const deleted = type.name === "identity.deleted";
    const bytes = buildEnvelope({
      id: "evt_01K6H0Q2V9ZC3M5N7P9R1S3T5V",
      type: type.name,
      occurredAt: OCCURRED_AT,
      tenant: TENANT,
      identity: deleted ? (type.example as { identity_id: string }).identity_id : null,
      sequence: type.owner === "platform" ? null : 42,
      data: type.example,
    });
    await golden(`${type.owner}/${type.name}.json`, bytes);
  });
}

Deno.test("catalogue: every type has a golden file", async () => {
  for (const { owner, name } of catalogue.values()) {
    await Deno.stat(new URL(`../golden/${owner}/${name}.json`, import.meta.url));
  }
});

Deno.test("catalogue: a schema takes its example as it is and nothing beside it", () => {
  for (const { name, data, example } of catalogue.values()) {
    assert.deepEqual(data.parse(example), example, name);
    assert.equal(data.safeParse({ ...example as object, body: "canary" }).success, false, name);
    for (const key of Object.keys(example as object)) {
      const { [key]: _left, ...rest } = example as Record<string, unknown>;
      if (key !== "reprocessed" && key !== "metrics") {
        assert.equal(data.safeParse(rest).success, false, `${name} without ${key}`);
      }
    }
  }
});

Deno.test("catalogue: it lists the reference's types of domain, job and platform", () => {
  const names = (owner: string) =>
    [...catalogue.values()].filter((t) => t.owner === owner).map((t) => t.name);
  assert.deepEqual(
    names("domain"),
    "created verified degraded failing suspended recovered reminder removed".split(" ").map((n) =>
      `domain.${n}`
    ),
  );
  assert.deepEqual(names("job"), [
    "erasure.completed",
    "erasure.failed",
    "export.completed",
    "identity.deleted",
  ]);
  assert.deepEqual(names("platform"), [
    "webhook.disabled",
    "webhook.test",
    "member.invited",
    "member.joined",
    "member.role_changed",
    "member.removed",
    "billing.plan_changed",
    "billing.payment_failed",
    "billing.limit_reached",
    "tenant.policy_updated",
  ]);
});

Deno.test("an unknown type is answered with the nearest one", () => {
  const TABLE = [
    ["message.recieved", "message.received"],
    ["Domain.Verified", "domain.verified"],
    ["webhooks.test", "webhook.test"],
    ["erasure.complete", "erasure.completed"],
  ];
  for (const [wrong, right] of TABLE) assert.equal(nearest(wrong!, catalogue.keys()), right);
  assert.equal(
    unknownType("order.payed", ["order.paid"]),
    'unknown event type "order.payed"; the nearest is "order.paid"',
  );
  assert.equal(nearest("x", []), null);
  assert.ok(nearest("x".repeat(1e6), catalogue.keys()));
});

/** Domains: the table of states, their events, and what time does to them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  addDomain,
  checkDomain,
  readDomain,
  remindDomains,
  removeDomain,
} from "../../actors/domain_monitor.ts";
import { catalogue } from "../../lib/catalogue.ts";
import {
  checked,
  checkResult,
  domainName,
  type DomainRow,
  elapsed,
  newDomain,
} from "../../lib/domain_states.ts";
import { ApiError } from "../../lib/errors.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { DAY_MS, HOUR_MS } from "../../lib/limits.ts";
import { START, type World, world } from "./bench_owner.ts";

const ID = "dom_01K6GZ3T9QW5X8V7R2N4M6P1BD";
const ISSUES = [{ code: "spf_missing", record: "TXT", fix: "Add it." }];

/** [from, result, to, event or null for none or "409"] */
const TABLE: [string, string, string, string | null, string][] = [
  ["pending", "unverified", "pending", null, "nothing was found yet"],
  ["pending", "verifying", "verifying", null, "some records are there"],
  ["pending", "healthy", "healthy", "verified", "all records at once"],
  ["verifying", "healthy", "healthy", "verified", "verified is sent on verifying to healthy"],
  ["verifying", "unverified", "verifying", null, "a record may flicker"],
  ["verifying", "degraded", "degraded", "degraded", "reaching degraded first gets degraded"],
  ["verifying", "failing", "failing", "failing", "as above"],
  ["verifying", "nameservers_changed", "verifying", null, "nothing verified is lost"],
  ["healthy", "healthy", "healthy", null, "no change"],
  ["healthy", "degraded", "degraded", "degraded", "trouble"],
  ["healthy", "failing", "failing", "failing", "trouble"],
  ["healthy", "verifying", "healthy", "409", "verified already"],
  ["healthy", "nameservers_changed", "suspended", "suspended", "lost"],
  ["healthy", "ownership_record_missing", "suspended", "suspended", "lost"],
  ["healthy", "registration_changed", "suspended", "suspended", "lost"],
  ["healthy", "zone_expired", "removed", "removed", "gone"],
  ["degraded", "healthy", "healthy", "recovered", "then recovered"],
  ["degraded", "degraded", "degraded", null, "other issues are no event"],
  ["degraded", "failing", "failing", "failing", "worse"],
  ["failing", "degraded", "degraded", "degraded", "better"],
  ["failing", "healthy", "healthy", "recovered", "well"],
  ["suspended", "healthy", "healthy", "recovered", "well"],
  ["suspended", "degraded", "suspended", null, "only health ends a suspension"],
  ["suspended", "registration_changed", "suspended", null, "suspended already"],
  ["suspended", "zone_expired", "removed", "removed", "gone"],
  ["removed", "healthy", "removed", "409", "final"],
];

const rowIn = (state: string): DomainRow => ({
  ...newDomain(ID, "a.dev", START).row,
  state: state as DomainRow["state"],
});

for (const [from, result, to, event, reason] of TABLE) {
  Deno.test(`domain: ${from} + ${result} → ${to} (${reason})`, () => {
    const step = checked(rowIn(from), { result: checkResult.parse(result), issues: ISSUES }, START + 1);
    if (event === "409") return assert.ok("refused" in step);
    assert.ok("row" in step);
    assert.equal(step.row.state, to);
    assert.equal(step.event?.type ?? null, event);
    if (step.event !== null) catalogue.get(`domain.${step.event.type}`)!.data.parse(step.event.data);
  });
}

Deno.test("domain: whatever happens, an event is sent exactly when the state changes, but for verifying and reminders", () => {
  const act = fc.oneof(
    fc.constantFrom(...checkResult.options).map((result) => ({ result })),
    fc.integer({ min: 1, max: 40 * 24 }).map((hours) => ({ hours })),
  );
  fc.assert(fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
    let row = newDomain(ID, "a.dev", START).row, now = START;
    for (const act of acts) {
      const before = row;
      if ("hours" in act) now += act.hours * HOUR_MS;
      const step = "hours" in act ? elapsed(row, now) : checked(row, { result: act.result }, now);
      if (step === null || "refused" in step) continue;
      row = step.row;
      const changed = row.state !== before.state;
      if (step.event?.type === "reminder") assert.ok(!changed && row.reminders > before.reminders);
      else assert.equal(step.event !== null, changed && row.state !== "verifying");
      if (step.event !== null) catalogue.get(`domain.${step.event.type}`)!.data.parse(step.event.data);
      assert.ok(row.due === null || row.due > now || "result" in act, "what is due has been done");
      if (row.verified_at === null) assert.notEqual(row.state, "healthy");
    }
  }));
});

Deno.test("domain names are ASCII names of two labels or more", () => {
  const names = {
    "Mail.Acme.dev": "mail.acme.dev",
    "bücher.example": "xn--bcher-kva.example",
    "a.b-c.io": "a.b-c.io",
  };
  for (const [given, name] of Object.entries(names)) assert.equal(domainName(given), name);
  for (
    const bad of [
      "",
      "localhost",
      "a.dev.",
      "1.2.3.4",
      "0x7f.1",
      "a..dev",
      "-a.dev",
      "a.dev/x",
      "a@b.dev",
      "a.dev:80",
      "a b.dev",
      "a_b.dev",
      "[::1]",
      "a.123",
      "a%2e.dev",
      `${"a".repeat(64)}.dev`,
      `${"a.".repeat(130)}dev`,
    ]
  ) assert.equal(domainName(bad), null, bad);
});

async function added(w: World, name = "acme.dev") {
  const { row } = await addDomain(w, w.tenant.id, name);
  const owner: OwnerRef = { kind: "domain", tenant: w.tenant.id, id: row.id };
  return { row, owner };
}

const told = async (w: World) => (await w.envelopes()).map((e) => [e!.type, e!.sequence]);
const dueRows = async (w: World) => {
  const found = [];
  for await (const entry of w.kv.list({ prefix: keys.domainsDue() })) found.push(entry.key[1]);
  return found;
};
const refused = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;

Deno.test("O1: each change of a domain is one event with the next sequence", () =>
  world(async (w) => {
    const { owner } = await added(w);
    const check = (result: typeof checkResult.options[number]) =>
      checkDomain(w, owner, { result, issues: ISSUES });
    assert.equal((await check("verifying")).event, null);
    assert.equal((await check("healthy")).event!.type, "domain.verified");
    await check("degraded");
    await check("healthy");
    await checkDomain(w, owner, { result: "failing", fallback_active: true });
    const { row, event } = await removeDomain(w, owner, "requested");
    assert.equal(row.state, "removed");
    assert.equal(event!.sequence, 6);
    assert.deepEqual(await told(w), [
      ["domain.created", 1],
      ["domain.verified", 2],
      ["domain.degraded", 3],
      ["domain.recovered", 4],
      ["domain.failing", 5],
      ["domain.removed", 6],
    ]);
    const [, , , recovered, failing] = await w.envelopes();
    assert.equal(recovered!.identity_id, null);
    assert.deepEqual(failing!.data, { domain_id: owner.id, issues: [], fallback_active: true });
    assert.deepEqual(await dueRows(w), []);
    await assert.rejects(removeDomain(w, owner, "requested"), refused("invalid_state"));
    await assert.rejects(check("healthy"), refused("invalid_state"));
  }));

Deno.test("a tenant has a name once, and removal frees it", () =>
  world(async (w) => {
    const { owner } = await added(w, "acme.dev");
    await assert.rejects(added(w, "ACME.dev"), refused("already_exists"));
    await removeDomain(w, owner, "evicted");
    await added(w, "acme.dev");
    const both = await Promise.allSettled([added(w, "b.dev"), added(w, "b.dev")]);
    assert.deepEqual(both.map((r) => r.status).sort(), ["fulfilled", "rejected"]);
  }));

Deno.test("failing_14_days: a sweep suspends, after reminders at 24, 72 and 168 hours", () =>
  world(async (w) => {
    const { owner } = await added(w);
    await checkDomain(w, owner, { result: "healthy" });
    await checkDomain(w, owner, { result: "failing", issues: ISSUES });
    for (let day = 0; day < 15; day++) {
      w.clock.now += DAY_MS;
      await remindDomains(w);
      await remindDomains(w);
    }
    const events = (await w.envelopes()).slice(3);
    assert.deepEqual(events.map((e) => [e!.type, e!.data.hours_in_state ?? e!.data.reason]), [
      ["domain.reminder", 24],
      ["domain.reminder", 72],
      ["domain.reminder", 168],
      ["domain.suspended", "failing_14_days"],
      ["domain.reminder", 24],
    ]);
    assert.equal((await readDomain(w.kv, owner)).suspended_reason, "failing_14_days");
    assert.equal((await dueRows(w)).length, 1);
  }));

Deno.test("a domain never verified is given up after 30 days; a check that comes late meets what time did", () =>
  world(async (w) => {
    const { owner } = await added(w);
    w.clock.now += 29 * DAY_MS;
    await remindDomains(w);
    assert.deepEqual(
      (await w.envelopes()).map((e) => e!.data.hours_in_state),
      [undefined, 29 * 24],
      "missed reminders are one",
    );
    w.clock.now += DAY_MS;
    await assert.rejects(checkDomain(w, owner, { result: "healthy" }), refused("invalid_state"));
    await remindDomains(w);
    assert.deepEqual((await w.envelopes()).at(-1)!.data.reason, "unverified_expired");
    const { owner: failing } = await added(w, "b.dev");
    await checkDomain(w, failing, { result: "failing" });
    w.clock.now += 14 * DAY_MS;
    const late = await checkDomain(w, failing, { result: "healthy" });
    assert.equal(late.event!.type, "domain.recovered");
    assert.deepEqual((await w.envelopes()).slice(-2).map((e) => e!.type), [
      "domain.suspended",
      "domain.recovered",
    ]);
    assert.equal(await remindDomains(w), 0);
  }));

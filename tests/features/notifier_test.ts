/** The Notifier over the whole pipeline: what reaches it, what it tells, and that no delivery notices. */
import assert from "node:assert/strict";
import { eraseMessage } from "../../actors/mailbox/erase.ts";
import { createIdentity } from "../../actors/mailbox/identity.ts";
import {
  receiveMessage,
  releaseMessage,
  reprocessMessage,
  triageMessage,
} from "../../actors/mailbox/receive.ts";
import { setPreference } from "../../actors/notifier.ts";
import type { Id } from "../../lib/ids.ts";
import {
  keys,
  type NotificationPref,
  type NotificationRow,
  type OwnerRef,
  type TenantRow,
} from "../../lib/keys.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { LONGEST_WAIT_MS, TRIAGE_HOLD_MS } from "../../lib/notify.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import { mail } from "../mailbox/support.ts";
import { refused, withApi, world as apiWorld } from "../routes/support.ts";
import { type Isolate, type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const YES = { needs_reply: true, priority: "normal", category: null } as const;

/** A tenant with a mailbox and somebody who may follow it. */
async function mailbox(w: World) {
  const tenant = await w.tenant();
  const owner: OwnerRef = { kind: "mailbox", tenant: tenant.id, id: w.first.ids.next("identity") };
  const { owners } = w.first.system;
  await w.done(
    owners.run(owner, (tx) => createIdentity(tx, { display_name: "Noor", address: "noor@a.example" })),
  );
  return {
    tenant,
    user: w.first.ids.next("user"),
    async receive(change: Partial<ParsedMessage> = {}): Promise<Id<"message">> {
      const { state } = await w.done(owners.run(owner, (tx) => receiveMessage(tx, mail(change))));
      return state.id as Id<"message">;
    },
    run: <T>(command: Parameters<typeof owners.run<T>>[1]) => w.done(owners.run(owner, command)),
  };
}

const follow = (
  w: World,
  tenant: TenantRow,
  user: Id<"user">,
  change: Partial<NotificationPref> = {},
  at: Isolate = w.first,
) =>
  w.done(
    setPreference(at.tenancy, tenant, user, { kind: "new_mail", mode: "on", filter: "all", ...change }, null),
  );

/** Time passes with the sweep of every minute. */
async function pass(w: World, ms: number, at: Isolate = w.first): Promise<void> {
  for (let left = ms; left > 0; left -= MINUTE_MS) {
    await w.advance(Math.min(left, MINUTE_MS));
    await w.done(at.system.sweep());
  }
}

async function told(w: World, tenant: TenantRow): Promise<NotificationRow[]> {
  const rows: NotificationRow[] = [];
  for await (const { value } of w.store.list<NotificationRow>({ prefix: keys.notificationsOf(tenant.id) })) {
    rows.push(value);
  }
  return rows;
}

/** Rows of what is gathered. */
async function gathered(w: World): Promise<number> {
  let count = 0;
  for await (const { key } of w.store.list({ prefix: [] })) {
    if (/^notify(_due)?$/.test(String(key[0]))) count++;
  }
  return count;
}

Deno.test("notifier_handoff_never_blocks: only with a new_mail preference on", () =>
  world(async (w) => {
    const { tenant, user, receive } = await mailbox(w);
    await receive();
    await follow(w, tenant, user, { mode: "off" });
    await receive();
    await pass(w, LONGEST_WAIT_MS);
    assert.deepEqual([await gathered(w), await told(w, tenant)], [0, []]);
    await follow(w, tenant, user);
    await receive();
    await receive();
    assert.equal(await gathered(w), 2, "what is gathered, and its due row");
    await pass(w, 3 * MINUTE_MS);
    const [notification, ...more] = await told(w, tenant);
    assert.deepEqual(more, []);
    assert.deepEqual([notification!.count, notification!.user, notification!.messages.length], [2, user, 2]);
    assert.equal(await gathered(w), 0);
  }));

Deno.test("notifier_handoff_never_blocks: a re-parse is no new mail, and a release counts when it is released", () =>
  world(async (w) => {
    const { tenant, user, receive, run } = await mailbox(w);
    await follow(w, tenant, user);
    const old = await receive();
    const caught = await receive({ quarantine_reason: "spam" });
    await pass(w, 3 * MINUTE_MS);
    assert.deepEqual((await told(w, tenant)).map((row) => row.messages.map((m) => m.message)), [[old]]);
    await run((tx) => reprocessMessage(tx, old));
    await pass(w, 3 * MINUTE_MS);
    assert.equal((await told(w, tenant)).length, 1);
    await run((tx) => releaseMessage(tx, caught, { user }, null));
    await pass(w, 3 * MINUTE_MS);
    assert.deepEqual((await told(w, tenant))[1]!.messages.map((m) => m.message), [caught]);
  }));

Deno.test("notifier_handoff_never_blocks: a failing Notifier changes no delivery and is told by its event", () =>
  world(async (w) => {
    const { tenant, user, receive } = await mailbox(w);
    await w.endpoint(tenant, URL, { events: ["message.received"] });
    // Answers take a second, so that no result of a delivery shares the commit that fails.
    w.net.at(URL, () => w.later(1_000, 204));
    await follow(w, tenant, user);
    const own = (key: Deno.KvKey) => String(key[0]).startsWith("notif");
    w.first.kv.beforeRead = (key) => {
      if (own(key)) throw new Error("the Notifier's store is away");
    };
    await receive();
    await w.advance(2_000);
    assert.equal(w.net.to(URL).length, 1, "delivered all the same");
    assert.deepEqual(w.first.notHandedOff, [w.net.to(URL)[0]!.id]);
    // A store that never answers it: deliveries go on, nothing waits.
    w.first.kv.beforeRead = null;
    w.first.kv.beforeCommit = (touched) => {
      if (touched.some(own)) throw new Error("not committed");
    };
    await receive();
    await pass(w, 2_000);
    assert.equal(w.net.to(URL).length, 2);
    w.first.kv.beforeCommit = null;
    await receive();
    await pass(w, 3 * MINUTE_MS);
    assert.deepEqual(
      (await told(w, tenant)).map((row) => row.count),
      [1],
      "the lost ones alone are not counted",
    );
  }));

Deno.test("notifier: events of custom owners cost it nothing, a tenant without followers one read a minute", () =>
  world(async (w) => {
    const { tenant, receive } = await mailbox(w);
    const asked: string[] = [];
    w.first.kv.beforeRead = (key) => {
      if (String(key[0]).startsWith("notif")) asked.push(String(key[0]));
    };
    await w.append(tenant, 50);
    await w.settle();
    assert.deepEqual(asked, []);
    for (let i = 0; i < 20; i++) await receive();
    assert.deepEqual(asked, ["notify_pref"]);
    await w.advance(61 * SECOND_MS);
    await receive();
    assert.deepEqual(asked, ["notify_pref", "notify_pref"]);
  }));

Deno.test("notifier: PM_NOTIFICATIONS=off hands nothing over", () =>
  world(async (w) => {
    const { tenant, user, receive } = await mailbox(w);
    await follow(w, tenant, user);
    await receive();
    assert.equal(await gathered(w), 0);
  }, { notifications: false }));

Deno.test("O15: mail that was erased before the notification is made is not told of", () =>
  world(async (w) => {
    const { tenant, user, receive, run } = await mailbox(w);
    await follow(w, tenant, user);
    const [gone, kept] = [await receive(), await receive()];
    const archived = await receive({ flags: ["archived"] });
    await run((tx) => eraseMessage(tx, gone));
    await pass(w, 3 * MINUTE_MS);
    const [notification] = await told(w, tenant);
    assert.deepEqual(notification!.messages.map((m) => m.message), [kept]);
    assert.ok(![gone, archived].includes(notification!.messages[0]!.message));
    const last = await receive();
    await run((tx) => eraseMessage(tx, last));
    await pass(w, 3 * MINUTE_MS);
    assert.equal((await told(w, tenant)).length, 1, "nothing left to tell of");
    assert.equal(await gathered(w), 0);
  }));

Deno.test("O16: a needs_reply filter tells of mail whose triage came in time, with everyone's own count", () =>
  world(async (w) => {
    const { tenant, user, receive, run } = await mailbox(w);
    const other = w.first.ids.next("user");
    await follow(w, tenant, user, { filter: "needs_reply" });
    await follow(w, tenant, other);
    const [wanted, plain, late] = [await receive(), await receive(), await receive()];
    await w.advance(MINUTE_MS);
    await run((tx) => triageMessage(tx, wanted, YES));
    await run((tx) => triageMessage(tx, plain, { ...YES, needs_reply: false }));
    await pass(w, TRIAGE_HOLD_MS + MINUTE_MS);
    await run((tx) => triageMessage(tx, late, YES));
    await pass(w, LONGEST_WAIT_MS);
    const rows = await told(w, tenant);
    const of = (who: Id<"user">) =>
      rows.filter((row) => row.user === who).map((row) => [row.count, row.needs_reply_count]);
    assert.deepEqual(of(user), [[1, 1]]);
    assert.deepEqual(of(other), [[3, 1]]);
  }));

Deno.test("notifier: a preference set here counts at once, one set elsewhere within a minute", () =>
  world(async (w) => {
    const { tenant, user, receive } = await mailbox(w);
    const elsewhere = await w.isolate();
    await receive(); // cached: nobody follows
    await follow(w, tenant, user, {}, elsewhere);
    await receive();
    assert.equal(await gathered(w), 0);
    await w.advance(61 * SECOND_MS);
    await receive();
    assert.equal(await gathered(w), 2);
    await follow(w, tenant, user, { mode: "off" });
    await pass(w, 3 * MINUTE_MS);
    assert.deepEqual(
      [await told(w, tenant), await gathered(w)],
      [[], 0],
      "off means off, also for what is gathered",
    );
  }));

Deno.test("notifier: two isolates gather for the same user without losing a mail", () =>
  world(async (w) => {
    const { tenant, user } = await mailbox(w);
    const isolates = [w.first, await w.isolate()];
    await follow(w, tenant, user);
    const boxes: OwnerRef[] = [];
    for (let i = 0; i < 2; i++) {
      const owner: OwnerRef = { kind: "mailbox", tenant: tenant.id, id: w.first.ids.next("identity") };
      const create = { display_name: "N", address: `n${i}@a.example` };
      await w.done(w.first.system.owners.run(owner, (tx) => createIdentity(tx, create)));
      boxes.push(owner);
    }
    const all = isolates.flatMap(({ system }, i) =>
      Array.from({ length: 15 }, () => system.owners.run(boxes[i]!, (tx) => receiveMessage(tx, mail())))
    );
    await w.done(Promise.all(all));
    await w.advance(2 * MINUTE_MS + SECOND_MS);
    await w.done(Promise.all(isolates.map(({ system }) => system.sweep())));
    assert.deepEqual((await told(w, tenant)).map((row) => row.count), [30], "told once");
  }));

Deno.test("notifier: what a crash left gathered is told by another isolate", () =>
  world(async (w) => {
    const { tenant, user, receive } = await mailbox(w);
    await follow(w, tenant, user);
    await receive();
    w.first.crash();
    const other = await w.isolate();
    await pass(w, HOUR_MS / 12, other);
    assert.deepEqual((await told(w, tenant)).map((row) => row.count), [1]);
  }));

Deno.test(
  "notifications: the API sets preferences, lists them and what would be sent, each tenant's own alone",
  withApi(async (api) => {
    const { p, lone, loneKey, platform } = await apiWorld(api);
    const user = api.services.ids.next("user");
    const prefs = `/v1/tenants/${p.tenant}/notification-preferences`;
    const body = { kind: "new_mail", mode: "on" };
    const set = await api.call("PUT", `${prefs}/${user}`, { key: p.tenantKey, body });
    assert.equal(set.status, 200, set.text);
    assert.deepEqual([set.body.user_id, set.body.mode, set.body.filter], [user, "on", "all"]);
    const listed = await api.call("GET", prefs, { key: p.key });
    assert.deepEqual(listed.body.data, [set.body]);
    const id = api.services.ids.next("notification"), identity = api.services.ids.next("identity");
    const message = api.services.ids.next("message");
    const row: NotificationRow = {
      id,
      user,
      kind: "new_mail",
      count: 3,
      needs_reply_count: 1,
      messages: [{ identity, message }],
      created_at: api.now,
    };
    await api.kv.set(keys.notification(p.tenant, id), row);
    const path = `/v1/tenants/${p.tenant}/notifications`;
    const shown = await api.call("GET", path, { key: p.tenantKey });
    assert.deepEqual(shown.body.data.map((one: { id: string; count: number }) => [one.id, one.count]), [[
      id,
      3,
    ]]);
    for (const route of [prefs, path]) {
      refused(await api.call("GET", route, { key: loneKey }), 404, "tenant_not_found");
    }
    const none = await api.call("GET", `/v1/tenants/${lone}/notifications`, { key: platform });
    assert.deepEqual(none.body.data, []);
    for (const bad of [{ ...body, mode: "sometimes" }, { ...body, kind: "old_mail" }, { mode: "on" }]) {
      refused(
        await api.call("PUT", `${prefs}/${user}`, { key: p.tenantKey, body: bad }),
        400,
        "invalid_request",
      );
    }
    refused(await api.call("PUT", `${prefs}/msg_1`, { key: p.tenantKey, body }), 400, "invalid_request");
  }),
);

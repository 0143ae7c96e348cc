/** Erasure and export over real mailboxes: what goes, what stays, and that a crash anywhere loses nothing. */
import assert from "node:assert/strict";
import {
  advanceJob,
  type ErasureRequest,
  jobOwner,
  readJob,
  requestErasure,
  requestExport,
  runDueJobs,
} from "../../actors/job_runner.ts";
import { eventsIn } from "../../actors/event_index.ts";
import { createIdentity } from "../../actors/mailbox/identity.ts";
import { receiveMessage, triageMessage } from "../../actors/mailbox/receive.ts";
import { ApiError } from "../../lib/errors.ts";
import type { Id, IdentityId } from "../../lib/ids.ts";
import { keys, type OwnerRef } from "../../lib/keys.ts";
import { JOB_RETRY_MS, MAX_JOB_THROWS, VISIBILITY_MS } from "../../lib/limits.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import type { ErasureRow } from "../../lib/payloads/job_rows.ts";
import { events } from "../support/rows.ts";
import { type World, world } from "./bench_owner.ts";

const mail = (n: number, change: Partial<ParsedMessage> = {}): ParsedMessage => ({
  from: { address: "canary@example.com", name: null },
  to: [{ address: "agent@acme.dev", name: null }],
  cc: [],
  delivered_to: "agent@acme.dev",
  subject: `canary ${n}`,
  sent_at: null,
  message_id: `<${n}@example.com>`,
  in_reply_to: null,
  references: [],
  kind: "mail",
  trust: { verdict: "trusted", spf: "pass", dkim: "pass", dmarc: "pass" },
  quarantine_reason: null,
  labels: [],
  flags: [],
  text: "canary text",
  attachments: [],
  ...change,
});

async function identity(w: World, name = "Agent"): Promise<OwnerRef> {
  const owner: OwnerRef = { kind: "mailbox", tenant: w.tenant.id, id: w.ids.next("identity") };
  await w.owners.run(owner, (tx) => createIdentity(tx, { display_name: name, address: `${name}@acme.dev` }));
  return owner;
}

const receive = (w: World, owner: OwnerRef, n: number, change: Partial<ParsedMessage> = {}) =>
  w.owners.run(owner, (tx) => receiveMessage(tx, mail(n, change))).then((done) => done.state);
const triage = (w: World, owner: OwnerRef, message: string) =>
  w.owners.run(
    owner,
    (tx) =>
      triageMessage(tx, message as Id<"message">, { needs_reply: true, priority: "low", category: null }),
  );

const erase = (w: World, request: ErasureRequest) => requestErasure(w, w.tenant, request, null);

/** Keys under a prefix. */
async function under(kv: Kv, prefix: Deno.KvKey): Promise<number> {
  let count = 0;
  for await (const _ of kv.list({ prefix })) count++;
  return count;
}
/** Whether any event still holds this text. */
const holdsText = async (w: World, text: string) =>
  (await w.texts()).some((envelope) => envelope?.includes(text));
const code = (wanted: string) => (error: unknown) => error instanceof ApiError && error.code === wanted;

Deno.test("erasure of a message takes its state and its events' payloads, and nothing else", () =>
  world(async (w) => {
    const owner = await identity(w);
    const gone = await receive(w, owner, 1, { text: "x".repeat(70_000) });
    const kept = await receive(w, owner, 2);
    await triage(w, owner, gone.id);
    const job = await erase(w, {
      scope: "message",
      message_id: gone.id as Id<"message">,
      reason: "asked",
    });
    const row = await advanceJob(w, job) as ErasureRow;
    assert.equal(row.status, "completed");
    assert.deepEqual([row.messages, row.events], [1, 2]);
    const envelopes = await w.envelopes();
    assert.deepEqual(envelopes.map((e) => e?.type), [
      "identity.created",
      undefined,
      "message.received",
      undefined,
      "erasure.completed",
    ]);
    assert.equal(await holdsText(w, "canary 1"), false);
    assert.equal(await holdsText(w, "canary 2"), true);
    const told = envelopes.at(-1)!;
    assert.deepEqual([told.sequence, told.identity_id], [1, null]);
    const request = told.data.erasure_request as Record<string, unknown>;
    assert.deepEqual(request.receipt, { messages: 1, events: 2, completed_at: told.occurred_at });
    assert.equal(JSON.stringify(told).includes("asked"), false);
    for (const part of ["message", "header", "text"]) {
      assert.equal(await under(w.kv, keys.ownerState(owner, part, gone.id)), 0, part);
    }
    assert.equal(await under(w.kv, keys.eventsOfMessage(gone.id)), 0);
    assert.notEqual(await under(w.kv, keys.eventsOfMessage(kept.id)), 0);
    assert.equal(await under(w.kv, keys.jobsDue()), 0);
    await assert.rejects(triage(w, owner, gone.id), code("message_not_found"));
  }));

Deno.test("erasure takes the chunks of a large payload", () =>
  world(async (w) => {
    w.tenant.policy.webhook_text_bytes = 65_536;
    await w.kv.set(keys.tenant(w.tenant.id), w.tenant);
    const owner = await identity(w);
    const gone = await receive(w, owner, 1, { text: "x".repeat(65_536) });
    const chunks = async () => {
      let found = 0;
      for await (const { key } of eventsIn(w.kv, keys.eventsOfTenant(w.tenant.id))) {
        for (let i = 0; i < 5; i++) if ((await w.kv.get(keys.eventChunk(key, i))).value !== null) found++;
      }
      return found;
    };
    assert.equal(await chunks(), 2);
    await advanceJob(
      w,
      await erase(w, {
        scope: "message",
        identity_id: owner.id as IdentityId,
        message_id: gone.id as Id<"message">,
        reason: "asked",
      }),
    );
    assert.equal(await chunks(), 0);
  }));

Deno.test("erasure of a thread takes all its messages", () =>
  world(async (w) => {
    const owner = await identity(w);
    const first = await receive(w, owner, 1);
    for (let n = 2; n <= 45; n++) await receive(w, owner, n, { in_reply_to: "<1@example.com>" });
    await receive(w, owner, 100);
    const job = await erase(w, {
      scope: "thread",
      identity_id: owner.id as IdentityId,
      thread_id: first.thread_id as Id<"thread">,
      reason: "asked",
    });
    const row = await advanceJob(w, job, 1_000) as ErasureRow;
    assert.deepEqual([row.status, row.messages, row.events], ["completed", 45, 45]);
    assert.equal(await under(w.kv, keys.ownerState(owner, "message")), 1);
    assert.equal(await holdsText(w, "canary 45"), false);
    assert.equal(await holdsText(w, "canary 100"), true);
  }));

async function busyIdentity(w: World, messages = 25) {
  const owner = await identity(w, "gone"), other = await identity(w, "kept");
  for (let n = 1; n <= messages; n++) await triage(w, owner, (await receive(w, owner, n)).id);
  await receive(w, other, 1000);
  return { owner, other };
}

async function assertGone(w: World, owner: OwnerRef, other: OwnerRef, row: ErasureRow, messages = 25) {
  assert.deepEqual([row.status, row.messages, row.events], ["completed", messages, 2 * messages + 1]);
  assert.equal(await under(w.kv, keys.ownerStates(owner)), 0);
  assert.equal((await w.kv.get(keys.ownerOf(owner.id))).value, null);
  assert.equal((await w.kv.get(keys.ownerMeta(owner))).value, 2 * messages + 1, "O2: the sequence stays");
  assert.notEqual(await under(w.kv, keys.ownerStates(other)), 0);
  const envelopes = await w.envelopes();
  const mine = envelopes.filter((e) => e?.identity_id === owner.id);
  assert.deepEqual(mine.map((e) => e!.type), ["identity.deleted"]);
  assert.deepEqual(mine[0]!.data, { identity_id: owner.id, erasure_request_id: row.id });
  const last = envelopes.slice(-2);
  assert.deepEqual(last.map((e) => [e!.type, e!.sequence]), [["identity.deleted", 1], [
    "erasure.completed",
    2,
  ]]);
  assert.equal(await holdsText(w, "gone@"), false);
  assert.equal(await holdsText(w, "kept@"), true);
}

Deno.test("identity.deleted: the mailbox goes, then the event with the job's sequence and the identity's id", () =>
  world(async (w) => {
    const { owner, other } = await busyIdentity(w);
    const request = { scope: "identity", identity_id: owner.id as IdentityId, reason: "closed" } as const;
    const job = await erase(w, request);
    assert.deepEqual(await erase(w, request), job, "twice is one job");
    await assert.rejects(receive(w, owner, 99), code("invalid_state"));
    await assertGone(w, owner, other, await advanceJob(w, job, 1_000) as ErasureRow);
  }));

/** Commits one small erasure takes; a crash after each of them is a case. */
const COMMITS = 20;

for (let crash = 1; crash <= COMMITS; crash++) {
  Deno.test(`an erasure that crashes after its commit ${crash} goes on at the next sweep and counts nothing twice`, () =>
    world(async (w) => {
      const { owner, other } = await busyIdentity(w, 3);
      const identity_id = owner.id as IdentityId;
      const job = await erase(w, { scope: "identity", identity_id, reason: "closed" });
      let calls = 0;
      const run = async (o: OwnerRef, command: never) => {
        if (calls > crash) throw new Error("the process is gone");
        const result = await w.owners.run(o, command);
        // Written but never told: the worst moment. Nothing runs in this process any more, error handling included.
        if (++calls > crash) throw new Error("crash");
        return result;
      };
      await runDueJobs({ ...w, owners: { ...w.owners, run } as never }).catch(() => {});
      w.clock.now += VISIBILITY_MS;
      await runDueJobs(w);
      await assertGone(w, owner, other, await readJob(w.kv, job) as ErasureRow, 3);
      if (crash === COMMITS) assert.ok(calls <= COMMITS, "every commit was a case");
    }));
}

Deno.test("two runners never do the same step twice", () =>
  world(async (w) => {
    const { owner, other } = await busyIdentity(w);
    const job = await erase(w, {
      scope: "identity",
      identity_id: owner.id as IdentityId,
      reason: "closed",
    });
    await Promise.all([advanceJob(w, job, 1_000), advanceJob(w, job, 1_000), runDueJobs(w)]);
    await assertGone(w, owner, other, await readJob(w.kv, job) as ErasureRow);
    assert.equal(await runDueJobs(w), 0);
  }));

Deno.test("erasure.failed: after thirteen throws in a row the job gives up and says where", () =>
  world(async (w) => {
    const owner = await identity(w);
    const message = await receive(w, owner, 1);
    const job = await erase(w, {
      scope: "message",
      message_id: message.id as Id<"message">,
      reason: "asked",
    });
    const broken = {
      ...w,
      owners: {
        ...w.owners,
        run: (o: OwnerRef, command: never) =>
          o.kind === "mailbox" ? Promise.reject(new Error("disk canary")) : w.owners.run(o, command),
      },
    };
    let sweeps = 0;
    for (; (await readJob(w.kv, job)).due !== null; sweeps++) {
      await runDueJobs(broken as never);
      assert.equal(await runDueJobs(w), 0, "not before 30 s");
      w.clock.now += JOB_RETRY_MS;
    }
    assert.equal(sweeps, MAX_JOB_THROWS);
    const last = (await w.envelopes()).at(-1)!;
    assert.equal(last.type, "erasure.failed");
    assert.deepEqual(last.data, {
      erasure_request_id: (await readJob(w.kv, job)).id,
      step: "messages",
      error: "store_failed",
    });
  }));

Deno.test("an erasure request's ids fit its scope", () =>
  world(async (w) => {
    const owner = await identity(w), message = await receive(w, owner, 1);
    const ask = (request: object) => erase(w, { reason: "asked", ...request } as never);
    const identity_id = owner.id, message_id = message.id, thread_id = message.thread_id;
    await assert.rejects(ask({ scope: "message" }), code("invalid_request"));
    await assert.rejects(ask({ scope: "thread", thread_id }), code("invalid_request"));
    await assert.rejects(
      ask({ scope: "message", identity_id, message_id, thread_id }),
      code("invalid_request"),
    );
    await assert.rejects(ask({ scope: "identity", identity_id, message_id }), code("invalid_request"));
    await assert.rejects(
      ask({ scope: "message", message_id: w.ids.next("message") }),
      code("message_not_found"),
    );
    await assert.rejects(
      ask({ scope: "identity", identity_id: w.ids.next("identity") }),
      code("identity_not_found"),
    );
    const stranger = { ...w.tenant, id: w.ids.next("tenant") };
    await w.kv.set(keys.tenant(stranger.id), stranger);
    await assert.rejects(
      requestErasure(w, stranger, {
        scope: "message",
        message_id: message_id as Id<"message">,
        reason: "x",
      }, null),
      code("message_not_found"),
    );
    assert.equal(await under(w.kv, keys.jobsDue()), 0);
  }));

Deno.test("an export counts the events up to its request and says when it expires", () =>
  world(async (w) => {
    const owner = await identity(w), other = await identity(w, "Other");
    await receive(w, owner, 1);
    await receive(w, other, 2);
    const all = await requestExport(w, w.tenant, null, null);
    const one = await requestExport(w, w.tenant, owner.id as IdentityId, null);
    w.clock.now += 1;
    await receive(w, owner, 3);
    assert.equal(await runDueJobs(w), 2);
    assert.deepEqual([(await readJob(w.kv, all)).events, (await readJob(w.kv, one)).events], [4, 2]);
    const told = (await w.envelopes()).at(-1)!;
    assert.equal(told.type, "export.completed");
    assert.equal(told.sequence, 1);
    assert.equal(await runDueJobs(w), 0);
  }));

Deno.test("a tombstone keeps its index and holds no content", () =>
  world(async (w) => {
    const owner = await identity(w), message = await receive(w, owner, 1);
    await advanceJob(
      w,
      await erase(w, {
        scope: "message",
        message_id: message.id as Id<"message">,
        reason: "r",
      }),
    );
    const [tombstone] = (await events(w.kv)).map(({ row }) => row).filter((row) => row.erased);
    assert.deepEqual([tombstone!.type, tombstone!.seq, tombstone!.kind], ["message.received", 2, "mailbox"]);
    assert.equal(tombstone!.body, null);
    assert.equal(jobOwner(w.tenant.id, "era_X").id, "job_X");
  }));

/** What must hold at the end of every world, whatever happened in it (ARCHITECTURE.md, "Invariants"). */
import assert from "node:assert/strict";
import { entriesOf } from "../../actors/event_index.ts";
import { loadEvents } from "../../actors/event_store.ts";
import type { EventKey } from "../../lib/ids.ts";
import { deliverJob, type EventIndex, fanoutJob, keys } from "../../lib/keys.ts";
import { inScope } from "../../lib/match.ts";
import { parseSecret, signV1 } from "../../lib/signing.ts";
import { allAttempts, deadLetters, endpoints, events, jobs, parked, states } from "./rows.ts";
import type { World } from "./world.ts";

export async function checkInvariants(w: World): Promise<void> {
  await d1OneRowAnAttempt(w);
  await j1SomeRowAnswers(w);
  await o3SameBytesAndSigned(w);
  await s1Scope(w);
  await p1PointersOnly(w);
  await o1IndexedOnce(w);
}

/** Each event is named once by the index of its tenant and of its partner, as its row has it. */
async function o1IndexedOnce(w: World): Promise<void> {
  const named = new Set<string>();
  for (const family of [keys.eventsOfTenant, keys.eventsOfPartner]) {
    const prefix = family("" as never).slice(0, 1);
    for await (const { key: row, value } of w.store.list<EventIndex>({ prefix })) {
      for (const entry of entriesOf(row[2] as EventKey, value)) {
        const name = `${row.slice(0, 2).join(" ")} ${JSON.stringify(entry)}`;
        assert.ok(!named.has(name), `O1: named twice: ${name}`);
        named.add(name);
      }
    }
  }
  for (const { key, row: { type, identity, owner, tenant, partner } } of await events(w.store)) {
    const entry = JSON.stringify({ key, type, identity, owner });
    for (const family of [keys.eventsOfTenant(tenant!), keys.eventsOfPartner(partner!)]) {
      if (family[1] === null) continue;
      assert.ok(named.delete(`${family.join(" ")} ${entry}`), `O1: ${family.join(" ")} misses ${entry}`);
    }
  }
}

/** At most one row for (endpoint, event, attempt), and the pair state tells of exactly those rows. */
async function d1OneRowAnAttempt(w: World): Promise<void> {
  const byPair = new Map<string, Map<number, string>>();
  for (const { endpoint, value } of await allAttempts(w)) {
    const name = `${endpoint} ${value.event}`;
    const rows = byPair.get(name) ?? new Map<number, string>();
    assert.ok(!rows.has(value.attempt), `D1: two rows for attempt ${value.attempt} of ${name}`);
    byPair.set(name, rows.set(value.attempt, value.id));
  }
  const ended = await states(w);
  for (const name of new Set([...byPair.keys(), ...ended.keys()])) {
    const rows = byPair.get(name) ?? new Map(), state = ended.get(name);
    assert.ok(state !== undefined, `D1: nothing tells of the rows of ${name}`);
    assert.equal(state.attempt, rows.size, "D1: attempts are numbered without a gap");
    assert.deepEqual(state.ids, [...rows].sort((a, b) => a[0] - b[0]).map(([, id]) => id), "D1");
  }
}

/** A pair whose last attempt failed, and a replay not yet tried, have a job row; so has what a Fanout job still holds. */
async function j1SomeRowAnswers(w: World): Promise<void> {
  const answered = new Set<string>(), fanouts = new Set<string>();
  const rows = [...(await jobs(w)).map(({ job }) => job), ...await parked(w)];
  for (const job of [...rows, ...(await deadLetters(w)).map((letter) => letter.job)]) {
    if (job.kind === "fanout") { for (const event of job.events) fanouts.add(event); }
    else for (const item of job.items) answered.add(`${job.endpoint} ${item.event} ${item.attempt}`);
  }
  const gone = new Set(
    (await endpoints(w)).filter((row) => row.value.deleted_at !== null).map((r) => r.key[1]),
  );
  const tests = new Set(
    (await allAttempts(w)).filter((r) => r.value.event_type === "webhook.test").map((r) => r.value.event),
  );
  for (const [name, value] of await states(w)) {
    const [endpoint, event] = name.split(" ") as [string, EventKey];
    if (tests.has(event)) continue; // a test is one attempt, whatever comes of it
    const terminal = value.status === "succeeded" || value.status === "dead";
    if ((terminal && value.attempt >= value.first) || gone.has(endpoint)) continue;
    const wanted = `${name} ${value.attempt + 1}`;
    assert.ok(answered.has(wanted) || fanouts.has(event), `J1: nothing answers for ${wanted}`);
  }
}

/** Every request carries the stored bytes, under a signature of its own moment. */
async function o3SameBytesAndSigned(w: World): Promise<void> {
  const urls = new Map((await endpoints(w)).map((row) => [row.value.url, row.value.id]));
  const bodies = new Map<string, string>();
  for (const request of w.net.received) {
    const name = request.id;
    assert.equal(bodies.get(name) ?? request.body, request.body, `O3: ${name} was sent with other bytes`);
    bodies.set(name, request.body);
    assert.equal(request.timestamp, Math.floor(request.at / 1_000), "signed at the attempt");
    const secret = w.secrets.get(urls.get(request.url) ?? "");
    if (secret === undefined) continue;
    const body = new TextEncoder().encode(request.body);
    const wanted = signV1(parseSecret(secret)!, request.id, request.timestamp, body);
    assert.ok(request.signature.split(" ").includes(wanted), "signed with the endpoint's own secret");
  }
}

/** No endpoint received an event outside its scope. */
async function s1Scope(w: World): Promise<void> {
  const rows = new Map((await endpoints(w)).map((row) => [row.value.id as string, row.value]));
  const wanted = (await allAttempts(w)).map(({ endpoint, value }) => [endpoint, value.event] as const);
  const events = await loadEvents(w.store, [...new Set(wanted.map(([, event]) => event))]);
  for (const [endpoint, key] of wanted) {
    const event = events.get(key as EventKey);
    if (event === undefined || event.type === "webhook.test") continue;
    assert.ok(inScope(event, rows.get(endpoint)!), `S1: ${endpoint} got ${event.id}`);
    assert.notEqual(event.about, endpoint, "S1: about itself");
  }
}

/** Job rows hold pointers of the known shape and nothing else. */
async function p1PointersOnly(w: World): Promise<void> {
  for (const { job } of await jobs(w)) (job.kind === "fanout" ? fanoutJob : deliverJob).strict().parse(job);
  for await (const row of w.store.list({ prefix: keys.parkedAll() })) deliverJob.strict().parse(row.value);
}

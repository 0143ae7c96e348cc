/**
 * Every release's snapshot (`tests/support/snapshots`, made by its `make.ts`) opened by this code: it migrates, each row has the shape
 * its family declares, and what the store owed anybody is delivered once, as it would have been then.
 */
import assert from "node:assert/strict";
import { updatePartner } from "../../actors/tenancy.ts";
import { keyMatches, parseKey } from "../../lib/edge/api_keys.ts";
import { realTimers } from "../../lib/edge/ports.ts";
import { eventRowOf } from "../../lib/event_row.ts";
import type { EndpointId, EventId, EventKey, Id, PartnerId } from "../../lib/ids.ts";
import * as rows from "../../lib/keys.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/limits.ts";
import { parseSecret, signV1 } from "../../lib/signing.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { migrate } from "../../migrations/runner.ts";
import { checkInvariants } from "../support/invariants.ts";
import { attempts, deadLetters, endpoints, jobs, parked } from "../support/rows.ts";
import { load } from "../support/snapshots/dump.ts";
import type { Facts } from "../support/snapshots/facts.ts";
import { World } from "../support/world.ts";
import type { Received } from "../support/network.ts";

const HERE = new URL("../support/snapshots/", import.meta.url);
const RELEASES = [...Deno.readDirSync(HERE)].flatMap(({ name }) => /^(.+)\.jsonl$/.exec(name)?.[1] ?? [])
  .sort();

/** Opens a snapshot as this release does at its start. */
async function opened(release: string, body: (kv: Deno.Kv, facts: Facts) => Promise<void>): Promise<void> {
  const facts: Facts = JSON.parse(await Deno.readTextFile(new URL(`${release}.facts.json`, HERE)));
  const kv = await Deno.openKv(":memory:");
  try {
    await load(kv, await Deno.readTextFile(new URL(`${release}.jsonl`, HERE)));
    await migrate(MIGRATIONS, { kv, now: () => facts.now, timers: realTimers, instance: "upgrade" });
    await body(kv, facts);
  } finally {
    kv.close();
  }
}

const SHAPES = {
  seq: rows.ownerMeta,
  ev: rows.eventRow,
  ev_alias: rows.eventAlias,
  ev_tenant: rows.eventIndex,
  ev_partner: rows.eventIndex,
  job: rows.job,
  parked: rows.deliverJob,
  dlq: rows.deadLetter,
  instance: rows.heartbeat,
  endpoint: rows.endpointRow,
  health: rows.healthRow,
  attempt: rows.storedAttempt,
  pair: rows.pairRow,
  partner: rows.partnerRow,
  tenant: rows.tenantRow,
  event_type: rows.eventTypeRow,
  key: rows.keyRow,
  audit: rows.auditRow,
  schema: rows.schemaRow,
};

Deno.test("upgrade: there is a snapshot of a release, with its facts", () => assert.ok(RELEASES.length > 0));

for (const release of RELEASES) {
  Deno.test(`upgrade from ${release}: every row has the shape its family declares`, () =>
    opened(release, async (kv) => {
      const seen = new Set<string>();
      for await (const { key, value } of kv.list({ prefix: [] })) {
        const family = String(key[0]),
          shape = Object.hasOwn(SHAPES, family) && SHAPES[family as keyof typeof SHAPES];
        if (!shape) continue;
        const result = shape.safeParse(family === "ev" ? eventRowOf(key[1] as EventKey, value) : value);
        assert.ok(result.success, `${key.join(" ")}: ${result.error}`);
        seen.add(family);
      }
      assert.deepEqual(Object.keys(SHAPES).filter((family) => !seen.has(family)), []);
    }));

  Deno.test(`upgrade from ${release}: O2, counters go on and an event seen before is a duplicate; keys still open`, () =>
    opened(release, async (kv, facts) => {
      const w = new World(kv, 1);
      w.time.now = facts.now + MINUTE_MS;
      await w.isolate();
      const { tenant, id, sequence } = facts.owner;
      const { value } = await kv.get<rows.TenantRow>(rows.keys.tenant(tenant as rows.TenantRow["id"]));
      const again = await w.done(w.append(value!, [{ event_id: facts.seen.id as EventId }, {}], id));
      assert.deepEqual(again.map((event) => [event.duplicate, event.sequence]), [
        [true, facts.seen.sequence],
        [false, sequence + 1],
      ]);
      assert.equal(again[0]!.id, facts.seen.id);

      const { lookup } = parseKey(facts.apiKey.text)!;
      const { value: key } = await kv.get<rows.KeyRow>(rows.keys.apiKey(lookup));
      const pepper = Uint8Array.fromBase64(facts.apiKey.pepper);
      assert.ok(keyMatches(facts.apiKey.text, key!.hash, pepper));
    }));

  Deno.test(`upgrade from ${release}: what was owed is delivered once, signed under the secrets kept, and nothing else`, () =>
    opened(release, async (kv, facts) => {
      const w = new World(kv, 1);
      w.time.now = facts.now;
      await w.isolate();
      const received: Record<string, string[]> = {};
      const take = () => {
        for (const request of w.net.received.splice(0)) {
          looksAsOwed(request, facts);
          (received[request.url] ??= []).push(request.id);
        }
      };
      await w.advance(5 * MINUTE_MS);
      take();
      const held = new Set(facts.held), isHeld = (id: string) => held.has(id);
      const wanted = mapped(facts.owed, (ids) => ids.filter((id) => !isHeld(id)));
      assert.deepEqual(sorted(received), sorted(wanted));
      assert.equal((await parked(w)).length, facts.held.length);

      await w.done(updatePartner(w.first.tenancy, facts.partner as PartnerId, { status: "active" }, null));
      await w.done(w.first.system.deliveries.unpark(facts.partner as PartnerId));
      await w.advance(SECOND_MS);
      take();
      assert.deepEqual(sorted(received), sorted(facts.owed), "held deliveries, each once");

      const { id, url, event } = facts.deadLetter;
      assert.notEqual(await w.done(w.first.system.deliveries.redrive(id as Id<"deadLetter">)), null);
      await w.advance(SECOND_MS);
      take();
      received[url]!.splice(received[url]!.lastIndexOf(event), 1);
      assert.deepEqual(sorted(received), sorted(facts.owed), "what was given up on, once");

      const ofUrl = new Map((await endpoints(w)).map((row) => [row.value.url, row.key[1] as EndpointId]));
      for (const { url, event, attempt } of facts.retried) {
        const its = (await attempts(w, ofUrl.get(url)!)).filter((row) => row.event_id === event);
        assert.equal(
          its.find((row) => row.attempt === attempt)?.status,
          "succeeded",
          `attempt ${attempt} of ${event}`,
        );
      }
      assert.deepEqual([await jobs(w), await parked(w), await deadLetters(w)], [[], [], []]);
      assert.deepEqual(w.first.failures, []);
      await checkInvariants(w);
    }));
}

function looksAsOwed(request: Received, facts: Facts): void {
  const { url, id, timestamp, body } = request;
  if (facts.bodies[id]) assert.equal(body, facts.bodies[id], "O3: the bytes of the first attempt");
  assert.equal(JSON.parse(body).id, id);
  const wanted = facts.secrets[url]!.map((secret) =>
    signV1(parseSecret(secret)!, id, timestamp, new TextEncoder().encode(body))
  );
  assert.deepEqual(request.signature.split(" ").filter((part) => part.startsWith("v1,")), wanted);
  for (const [name, value] of Object.entries(facts.headers[url] ?? {})) {
    assert.equal(request.headers[name], value);
  }
}

const mapped = <A, B>(of: Record<string, A>, change: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(of).map(([name, value]) => [name, change(value)]));

/** The order in which deliveries arrive is nobody's promise. */
const sorted = (of: Record<string, string[]>): [string, string[]][] =>
  Object.entries(of).filter(([, ids]) => ids.length > 0).map((
    [url, ids],
  ): [string, string[]] => [url, ids.toSorted()])
    .sort(([a], [b]) => a < b ? -1 : 1);

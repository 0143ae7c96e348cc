/**
 * `deno run --allow-all tests/support/snapshots/make.ts`: makes the snapshot of this release, `{version}.jsonl` and its facts. Run it
 * once for a release, before the next one changes how anything is stored, and commit both; old ones are never made anew.
 *
 * The store is that of a service killed at a bad moment: one event fanned out by nobody, one in flight, one to be retried, some held
 * for a suspended partner, one given up on, an endpoint amid a rotation, all sealed under the tests' own master key.
 */
import assert from "node:assert/strict";
import { makeEventTypes } from "../../../actors/event_types.ts";
import { rotateSecret } from "../../../actors/endpoints.ts";
import { createKey } from "../../../actors/key_admin.ts";
import { createIdentity } from "../../../actors/mailbox/identity.ts";
import { receiveMessage } from "../../../actors/mailbox/receive.ts";
import { readState } from "../../../actors/pair_state.ts";
import { updatePartner } from "../../../actors/tenancy.ts";
import type { Appended } from "../../../actors/owner.ts";
import { realTimers } from "../../../lib/edge/ports.ts";
import type { EventId, IdentityId } from "../../../lib/ids.ts";
import { type DeadLetter, type EndpointRow, keys, type OwnerRef, type TenantRow } from "../../../lib/keys.ts";
import { SECOND_MS } from "../../../lib/limits.ts";
import { filtered } from "../../../lib/match.ts";
import { MIGRATIONS } from "../../../migrations/list.ts";
import { migrate } from "../../../migrations/runner.ts";
import release from "../../../deno.json" with { type: "json" };
import { mail, NOOR } from "../../mailbox/support.ts";
import { events, jobs, parked } from "../rows.ts";
import { World } from "../world.ts";
import { dump } from "./dump.ts";
import type { Facts } from "./facts.ts";

const FINE = "https://fine.example.com/in", FAILING = "https://failing.example.com/in";
const HELD = "https://held.example.com/in", OPS = "https://ops.example.com/in";
const SEED = 20_261_001;

export async function makeSnapshot(): Promise<{ rows: string; facts: Facts }> {
  const kv = await Deno.openKv(":memory:");
  try {
    const w = new World(kv, SEED);
    await migrate(MIGRATIONS, { kv, now: w.now, timers: realTimers, instance: "snapshot" });
    await w.isolate();
    return { facts: await fill(w), rows: await dump(kv) };
  } finally {
    kv.close();
  }
}

async function fill(w: World): Promise<Facts> {
  const partner = await w.done(w.partner());
  const tenant = await w.done(w.tenant()), held = await w.done(w.tenant(partner));
  await w.done(
    makeEventTypes(w.first.tenancy).put(tenant.id, {
      name: "order.paid",
      description: "An order was paid.",
      schema: { type: "object" },
      example: { n: 1 },
    }),
  );
  const shapes = { headers: { "x-token": "t-1" }, signature_versions: ["v1", "v1a"] as ["v1", "v1a"] };
  const endpoints: Record<string, EndpointRow> = {
    [OPS]: await w.done(w.endpoint(null, OPS)),
    [FINE]: await w.done(w.endpoint(tenant, FINE, shapes)),
    [FAILING]: await w.done(w.endpoint(tenant, FAILING, { events: ["order.paid"] })),
    [HELD]: await w.done(w.endpoint(held, HELD)),
  };
  const secrets = Object.fromEntries(
    Object.entries(endpoints).map(([url, { id }]) => [url, [w.secrets.get(id)!]]),
  );
  const apiKey = await keyOf(w, tenant);

  // Delivered everywhere but to one, which is to be tried again. A mail whose event takes more than one row is among it.
  w.net.at(FAILING, 500);
  const seen = `evt_${w.first.ids.ulid()}` as EventId;
  const [first] = await w.done(w.append(tenant, [{ event_id: seen }]));
  const box: OwnerRef & { id: IdentityId } = {
    kind: "mailbox",
    tenant: tenant.id,
    id: w.first.ids.next("identity"),
  };
  const { owners } = w.first.system;
  await w.done(owners.run(box, (tx) => createIdentity(tx, { display_name: "Noor Aziz", address: NOOR })));
  await w.done(owners.run(box, (tx) => receiveMessage(tx, mail())));
  await w.done(w.append(tenant, [{ data: { text: "x".repeat(70_000) } }]));
  await w.advance(5 * SECOND_MS);

  const { secret } = await w.done(rotateSecret(w.first.endpoints, endpoints[FINE]!.id, 168, null));
  secrets[FINE] = [secret, ...secrets[FINE]!];

  await w.done(updatePartner(w.first.tenancy, partner, { status: "suspended" }, null));
  const heldEvents = await w.done(w.append(held, 2, "held"));
  await w.advance(SECOND_MS);
  assert.equal((await parked(w)).length, 2);
  const letter = await giveUpOn(w, endpoints[OPS]!, first!);

  // The last thing: killed while one attempt is open, and before another event has been told to anybody.
  w.net.at(FINE, "hang");
  await w.done(w.append(tenant));
  w.first.kv.afterCommit = () => w.first.crash();
  const unseen = w.append(tenant);
  unseen.catch(() => {});
  await w.settle();
  assert.ok((await jobs(w)).length >= 3, "a job for each that waits");
  return {
    release: release.version,
    now: w.time.now,
    secrets,
    headers: { [FINE]: shapes.headers },
    apiKey,
    partner,
    tenant: tenant.id,
    owner: { kind: "custom", tenant: tenant.id, id: "owner", sequence: 4 },
    seen: { id: seen, sequence: 1 },
    ...await whoHasWhat(w, endpoints, heldEvents.map((event) => event.id)),
    deadLetter: { id: letter, url: OPS, event: first!.id },
    bodies: Object.fromEntries(w.net.received.map(({ id, body }) => [id, body.length > 1_000 ? "" : body])),
  };
}

/** Which endpoint has had which event, by the rows of the store itself. */
async function whoHasWhat(w: World, endpoints: Record<string, EndpointRow>, held: string[]) {
  const facts: Pick<Facts, "owed" | "held" | "had" | "retried"> = { owed: {}, held, had: {}, retried: [] };
  for (const { key: at, row } of await events(w.store)) {
    const id = row.id ?? `evt_${at}`;
    for (const [url, endpoint] of Object.entries(endpoints)) {
      if (filtered({ ...row, about: null }, endpoint) !== null) continue;
      const { row: pair } = await readState(w.store, endpoint.id, at);
      ((pair?.succeeded ? facts.had : facts.owed)[url] ??= []).push(id);
      if (pair?.status === "failed") facts.retried.push({ url, event: id, attempt: pair.attempt + 1 });
    }
  }
  return facts;
}

async function keyOf(w: World, tenant: TenantRow): Promise<Facts["apiKey"]> {
  const { kv, tenancy, endpoints, ids } = w.first, pepper = new Uint8Array(32).fill(9);
  const { committer } = tenancy, { random } = endpoints;
  const { secret } = await w.done(
    createKey({ kv, committer, now: w.now, ids, random, pepper, mode: "live" }, {
      name: "Snapshot",
      level: "tenant",
      tenant_id: tenant.id,
      permissions: ["webhooks:read"],
      expires_at: null,
    }, null),
  );
  return { text: secret, pepper: pepper.toBase64() };
}

/** A replay to an endpoint that was given up on, as a job whose processing threw too often leaves one. */
async function giveUpOn(w: World, endpoint: EndpointRow, event: Appended): Promise<string> {
  const id = w.first.ids.next("deadLetter");
  const item = { event: event.key, id: event.id, type: event.type, attempt: 2, first: 2, replay: true };
  const job = { v: 1 as const, kind: "deliver" as const, endpoint: endpoint.id, items: [item], throws: 13 };
  await w.store.set(
    keys.deadLetter(id),
    { id, job, error: "Error", created_at: w.time.now } satisfies DeadLetter,
  );
  return id;
}

if (import.meta.main) {
  const { rows, facts } = await makeSnapshot();
  const at = (name: string) => new URL(`./${facts.release}.${name}`, import.meta.url);
  await Deno.writeTextFile(at("jsonl"), rows);
  await Deno.writeTextFile(at("facts.json"), JSON.stringify(facts, null, 2) + "\n");
  console.log(`${facts.release}: ${rows.split("\n").length - 1} rows, ${rows.length} bytes`);
}

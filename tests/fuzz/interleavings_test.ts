/** The owner actor and the committer under every order in which a KV may answer, several isolates over one store. */
import fc from "fast-check";
import assert from "node:assert/strict";
import { makeOwners, type Owners } from "../../actors/owner.ts";
import { makeCommitter, type Settled } from "../../lib/edge/committer.ts";
import { ApiError } from "../../lib/errors.ts";
import { type EventId, makeIds, type TenantId, ulidFrom } from "../../lib/ids.ts";
import { type EventRow, keys, type OwnerRef, type TenantRow } from "../../lib/keys.ts";
import { seeded, START } from "../support/manual_time.ts";
import { events } from "../support/rows.ts";
import { runs } from "./runs.ts";
import { type Fate, scheduledKv } from "./scheduled_kv.ts";

const TENANT = `ten_${ulidFrom(START, new Uint8Array(10))}` as TenantId;
const ROW: TenantRow = {
  id: TENANT,
  partner_id: null,
  slug: "t",
  name: "t",
  policy: { webhook_text_bytes: 16_384, retention: { events_days: 30 } },
  created_at: START,
  updated_at: START,
};
const ownerOf = (n: number): OwnerRef => ({ kind: "custom", tenant: TENANT, id: `owner-${n}` });
/** The same deterministic id by number; a command may give one that was given before. */
const eventId = (n: number) => `evt_${ulidFrom(START, new Uint8Array(10).fill(n))}` as EventId;

/** One command: it notes its name in the owner's state, and appends events that carry the name. */
interface Command {
  owner: number;
  isolate: number;
  events: number;
  /** Gives its first event a deterministic id. */
  twin: number | null;
  refuses: boolean;
  /** In the same tick as the one before, or after it has ended. */
  waits: boolean;
}
const command: fc.Arbitrary<Command> = fc.record({
  owner: fc.nat(1),
  isolate: fc.nat(1),
  events: fc.integer({ min: 1, max: 2 }),
  twin: fc.option(fc.nat(1), { nil: null, freq: 3 }),
  refuses: fc.boolean(),
  waits: fc.boolean(),
});
const fates = fc.array(
  fc.oneof({ weight: 5, arbitrary: fc.constant<Fate>("made") }, fc.constantFrom<Fate>("lost", "unknown")),
  { maxLength: 12 },
);

interface Log {
  /** Names of the commands whose change is in the store, in order. */
  done: string[];
}

async function run(owners: Owners, name: string, c: Command): Promise<number[]> {
  const owner = ownerOf(c.owner);
  return await owners.run(owner, async (tx) => {
    const at = keys.ownerState(owner, "log");
    const log = await tx.get<Log>(at) ?? { done: [] };
    tx.set(at, { done: [...log.done, name] });
    const sequences: number[] = [];
    for (let i = 0; i < c.events; i++) {
      const twin = i === 0 && c.twin !== null ? { event_id: eventId(c.twin) } : {};
      const { sequence, duplicate } = await tx.append({ type: "order.paid", data: { by: name }, ...twin });
      if (!duplicate) sequences.push(sequence);
    }
    if (c.refuses) throw new ApiError("invalid_state", "Cannot: it refuses.", "Do not ask.");
    return sequences;
  });
}

async function eventsOf(kv: Deno.Kv, owner: OwnerRef): Promise<EventRow[]> {
  const rows = (await events(kv)).map(({ row }) => row).filter((row) => row.owner === owner.id);
  return rows.sort((a, b) => a.seq! - b.seq!);
}
const byOf = (row: EventRow): string => JSON.parse(new TextDecoder().decode(row.body as Uint8Array)).data.by;

Deno.test("O1, O2: whatever order a store answers in, and whatever commits it loses, events and state agree", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(command, { minLength: 1, maxLength: 10 }),
      fates,
      async (s, commands, fates) => {
        const kv = await Deno.openKv(":memory:");
        try {
          await kv.set(keys.tenant(TENANT), ROW);
          let commits = 0;
          const fate = () => fates[commits++] ?? "made";
          const isolates = [0, 1].map((n) => {
            const store = scheduledKv(kv, s, `isolate ${n}`, fate);
            const committer = makeCommitter(store, { maxInFlight: 1 + n });
            const ids = makeIds(() => START, seeded(n + 1));
            return makeOwners({ kv: store, committer, now: () => START, ids });
          });
          const ends: PromiseSettledResult<number[]>[] = [];
          const all = (async () => {
            let batch: Promise<number[]>[] = [];
            for (const [i, c] of commands.entries()) {
              if (c.waits) ends.push(...await Promise.allSettled(batch.splice(0)));
              batch.push(run(isolates[c.isolate]!, `c${i}`, c));
            }
            ends.push(...await Promise.allSettled(batch));
            batch = [];
          })();
          await s.waitFor(all);
          await check(kv, commands, ends);
        } finally {
          kv.close();
        }
      },
    ),
    runs(150),
  );
});

async function check(
  kv: Deno.Kv,
  commands: Command[],
  ends: PromiseSettledResult<number[]>[],
): Promise<void> {
  for (const n of [0, 1]) {
    const owner = ownerOf(n), events = await eventsOf(kv, owner);
    const done = (await kv.get<Log>(keys.ownerState(owner, "log"))).value?.done ?? [];
    // O2: given out once each, in order, none spent on what was not written.
    assert.deepEqual(events.map((row) => row.seq), events.map((_, i) => i + 1));
    assert.equal((await kv.get<number>(keys.ownerMeta(owner))).value ?? 0, events.length);
    assert.equal(new Set(done).size, done.length, "a command was written twice");
    // O1: in the order of the state, every change has its events and every event its change.
    const twins = new Set<number>();
    const wanted = done.flatMap((name) => {
      const c = commands[Number(name.slice(1))]!;
      const again = c.twin !== null && twins.has(c.twin);
      if (c.twin !== null) twins.add(c.twin);
      return Array(c.events - (again ? 1 : 0)).fill(name);
    });
    assert.deepEqual(events.map(byOf), wanted);
    for (const [i, c] of commands.entries()) {
      const end = ends[i]!, name = `c${i}`;
      if (c.owner !== n) continue;
      if (end.status === "fulfilled") {
        assert.ok(done.includes(name), `${name} was acknowledged`);
        const its = events.filter((row) => byOf(row) === name).map((row) => row.seq);
        assert.deepEqual(end.value, its, `${name} was told its own sequences`);
      } else if (end.reason instanceof ApiError && end.reason.code !== "unavailable") {
        assert.ok(!done.includes(name), `${name} was refused`);
      }
    }
  }
}

/** A unit over four keys: some must not be there, some are set or deleted. */
interface Step {
  absent: number[];
  sets: number[];
  deletes: number[];
}
const key = fc.nat(3);
const step: fc.Arbitrary<Step> = fc.record({
  absent: fc.uniqueArray(key, { maxLength: 2 }),
  sets: fc.uniqueArray(key, { minLength: 1, maxLength: 2 }),
  deletes: fc.uniqueArray(key, { maxLength: 1 }),
}).map((one) => ({ ...one, deletes: one.deletes.filter((k) => !one.sets.includes(k)) }));

Deno.test("committer: whatever order a store answers in, units end as if they had run one by one in their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(step, { minLength: 1, maxLength: 14 }),
      fc.constantFrom(1, 3),
      fc.boolean(),
      async (s, steps, maxInFlight, carries) => {
        const kv = await Deno.openKv(":memory:");
        try {
          const store = scheduledKv(kv, s, "only", () => "made");
          const written: unknown[] = [];
          const combine = (carried: unknown[]) => ({
            writes: [{ op: "set" as const, key: ["carried", String(carried[0])], value: carried }],
            settled: (stamp: string | null) => void (stamp !== null && written.push(...carried)),
          });
          const committer = makeCommitter(store, carries ? { maxInFlight, combine } : { maxInFlight });
          const model = new Map<number, number>();
          const wanted = steps.map((one, i) => {
            if (one.absent.some((k) => model.has(k))) return false;
            one.sets.forEach((k) => model.set(k, i));
            one.deletes.forEach((k) => model.delete(k));
            return true;
          });
          const units = steps.map((one, i) =>
            committer.commit({
              checks: one.absent.map((k) => ({ key: ["k", k], versionstamp: null })),
              writes: [
                ...one.sets.map((k) => ({ op: "set" as const, key: ["k", k], value: i })),
                ...one.deletes.map((k) => ({ op: "delete" as const, key: ["k", k] })),
              ],
              carry: [i],
            })
          );
          const settled: Settled[] = [];
          await s.waitFor(Promise.all(units).then((all) => settled.push(...all)));
          assert.deepEqual(settled.map(({ ok }) => ok), wanted);
          for (const k of [0, 1, 2, 3]) {
            assert.equal((await kv.get(["k", k])).value, model.get(k) ?? null);
          }
          if (!carries) return;
          // What rides along lands with its units and never without them.
          const stored: unknown[] = [];
          for await (const row of kv.list<unknown[]>({ prefix: ["carried"] })) stored.push(...row.value);
          const done = wanted.flatMap((ok, i) => ok ? [i] : []);
          assert.deepEqual(new Set(stored), new Set(done));
          assert.deepEqual(written.toSorted(), done.toSorted());
        } finally {
          kv.close();
        }
      },
    ),
    runs(200),
  );
});

/** Random weather: receivers, crashes, lost answers of the store, replays, switches. What must hold holds at the end. */
import assert from "node:assert/strict";
import { updateEndpoint } from "../../actors/endpoints.ts";
import { updatePartner } from "../../actors/tenancy.ts";
import { loadEvent } from "../../actors/event_store.ts";
import type { Appended } from "../../actors/owner.ts";
import { jobs, parked, states } from "../support/rows.ts";
import { type Isolate, type World, world } from "../support/world.ts";

/** Runs; each is 40 steps. */
const SEEDS = 12;
const urls = Array.from({ length: 4 }, (_, i) => `https://hooks${i}.example.com/in`);

interface Weather {
  w: World;
  endpoints: Awaited<ReturnType<World["endpoint"]>>[];
  events: Appended[];
  /** Whether endpoints are switched off on the way; else every matching one must get every event. */
  switches: boolean;
  pick<T>(from: readonly T[]): T;
  some(): Isolate;
  /** Waits for a request, whose outcome plays no part. */
  ask(promise: Promise<unknown>): Promise<unknown>;
}

const answers = (w: World, switches: boolean) => [
  200,
  switches ? 410 : 200,
  500,
  "hang" as const,
  () => w.later(1_000 + w.unit() * 4_000, 200),
  () => w.later(w.unit() * 3_000, 503),
];

async function step(
  { w, endpoints, events, switches, pick, some, ask }: Weather,
  tenants: Parameters<World["append"]>[0][],
) {
  const dice = w.unit();
  const endpoint = pick(endpoints);
  if (dice < 0.35) {
    const running = w.append(pick(tenants), 1 + Math.floor(w.unit() * 5), pick(["a", "b"]), some());
    await ask(running.then((appended) => events.push(...appended)));
  } else if (dice < 0.5) w.net.at(pick(urls), pick(answers(w, switches)));
  else if (dice < 0.58 && events.length > 0) {
    await ask(
      some().system.deliveries.replay(endpoint.id, { event_ids: [pick(events).id, pick(events).id] }),
    );
  } else if (dice < 0.64) {
    if (switches) await ask(updateEndpoint(some().endpoints, endpoint.id, { enabled: w.unit() < 0.7 }, null));
  } else if (dice < 0.68) {
    const status = w.unit() < 0.5 ? "suspended" : "active", partner = tenants[0]!.partner_id!;
    await ask(updatePartner(some().tenancy, partner, { status }, null));
    if (status === "active") await ask(some().system.deliveries.unpark(partner));
  } else if (dice < 0.74) {
    const { kv } = some();
    const fail = () => {
      kv.beforeCommit = kv.afterCommit = null;
      throw new Error("connection lost");
    };
    if (w.unit() < 0.5) kv.beforeCommit = fail;
    else kv.afterCommit = fail;
  } else if (dice < 0.78) {
    some().crash();
    await w.isolate({ maxPerEndpoint: 3, maxInFlight: 8 });
  } else if (dice < 0.8) await ask(some().system.sweep());
  else if (dice < 0.82) {
    const leaving = some();
    await w.isolate({ maxPerEndpoint: 3, maxInFlight: 8 });
    const stopping = ask(leaving.system.stop(1_000));
    await w.advance(1_500);
    await stopping;
    leaving.crash();
  }
  await w.advance(Math.floor(w.unit() ** 2 * 4_000));
}

Deno.test("invariants hold in any weather, and every delivery ends", async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await world(async (w) => {
      w.expects = ({ error }) => /connection lost/.test(String(error));
      await w.isolate({ maxPerEndpoint: 3, maxInFlight: 8 });
      const tenants = [await w.tenant(await w.partner()), await w.tenant()];
      const endpoints = [
        await w.endpoint(tenants[0]!, urls[0]!),
        await w.endpoint(tenants[0]!.partner_id, urls[1]!),
        await w.endpoint(tenants[1]!, urls[2]!),
        await w.endpoint(null, urls[3]!),
      ];
      const events: Appended[] = [];
      const alive = () => w.isolates.filter(({ crashed }) => !crashed);
      const pick = <T>(from: readonly T[]): T => from[Math.floor(w.unit() * from.length)]!;
      const weather = {
        w,
        endpoints,
        events,
        switches: seed % 2 === 0,
        pick,
        some: () => pick(alive()),
        ask: async (promise: Promise<unknown>) => {
          await Promise.race([promise.catch(() => {}), w.settle()]);
        },
      };
      for (let i = 0; i < 40; i++) await step(weather, tenants);
      // The weather clears.
      for (const url of urls) w.net.at(url, 200);
      for (const { kv } of alive()) kv.beforeCommit = kv.afterCommit = null;
      const [last] = alive();
      for (const { id } of endpoints) {
        await w.done(updateEndpoint(last!.endpoints, id, { enabled: true }, null));
      }
      await w.done(updatePartner(last!.tenancy, tenants[0]!.partner_id!, { status: "active" }, null));
      for (let i = 0; i < 200 && [...await jobs(w), ...await parked(w)].length > 0; i++) {
        await (i < 8 ? w.advance(10_000) : w.jump(3_600_000));
        await w.done(last!.system.sweep());
      }
      assert.deepEqual([await jobs(w), await parked(w)], [[], []], `seed ${seed}: something is left`);
      const ended = await states(w);
      for (const state of ended.values()) {
        assert.ok(state.status === "succeeded" || state.status === "dead", `seed ${seed}: ${state.status}`);
      }
      if (weather.switches) return;
      for (const { key } of events) {
        const { tenant } = (await loadEvent(w.store, key))!;
        for (const { id, tenant_id, partner_id } of endpoints) {
          const matches = tenant_id === tenant ||
            tenant_id === null && (partner_id === null || tenant === tenants[0]!.id);
          assert.equal(
            ended.get(`${id} ${key}`)?.succeeded,
            matches || undefined,
            `seed ${seed}: ${id} ${key}`,
          );
        }
      }
    }, { seed, maxPerEndpoint: 3, maxInFlight: 8 });
  }
});

/** `webhook.disabled` has a deterministic id: whatever becomes of the commit that disables, there is one event of it. */
import assert from "node:assert/strict";
import { loadEvents } from "../../actors/event_store.ts";
import { webhookDisabledId } from "../../lib/envelope.ts";
import type { EventKey } from "../../lib/ids.ts";
import { keys } from "../../lib/keys.ts";
import { VISIBILITY_MS } from "../../lib/limits.ts";
import { attempts, pendingPlatform } from "../support/rows.ts";
import { type World, world } from "../support/world.ts";

const URL = "https://hooks.example.com/in";
const OPS = "https://ops.example.com/in";
const HASH_KEY = new Uint8Array(32).fill(7);

async function disabledEvents(w: World) {
  const found: EventKey[] = [];
  for await (const { key } of w.store.list({ prefix: keys.events() })) found.push(key[1] as EventKey);
  return [...(await loadEvents(w.store, found)).values()].filter(({ type }) => type === "webhook.disabled");
}

for (const lost of ["before it was made", "after it was made"] as const) {
  Deno.test(`webhook.disabled: when the commit that disables is lost ${lost}, there is one event, named by its trigger`, () =>
    world(async (w) => {
      const tenant = await w.tenant();
      const { id } = await w.endpoint(tenant, URL);
      await w.endpoint(null, OPS, { events: ["webhook.disabled"] });
      w.net.at(URL, 410);
      w.expected.add("record");
      let faults = 1;
      const fault = (touched: Deno.KvKey[]) => {
        if (touched.some(([family]) => family === "attempt") && faults-- > 0) throw new Error("lost");
      };
      if (lost === "before it was made") w.first.kv.beforeCommit = fault;
      else w.first.kv.afterCommit = (_, touched) => fault(touched);
      await w.append(tenant);
      await w.settle();
      await w.advance(VISIBILITY_MS + 5_000);
      await w.done(w.first.system.sweep());
      await w.advance(2 * VISIBILITY_MS);
      const events = await disabledEvents(w);
      const [trigger, ...more] = await attempts(w, id);
      assert.deepEqual([events.length, trigger!.error], [1, "status_410"]);
      assert.ok(more.every((row) => row.error === "endpoint_disabled"));
      const named = webhookDisabledId(HASH_KEY, trigger!.created_at, id, trigger!.event_id, trigger!.attempt);
      assert.deepEqual([events[0]!.id, events[0]!.at], [named, trigger!.created_at]);
      assert.deepEqual(
        w.net.to(OPS).map((request) => request.id),
        [named],
        "told once, by the sweep if by nobody else",
      );
      assert.deepEqual(await pendingPlatform(w), []);
    }));
}

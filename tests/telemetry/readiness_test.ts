/** `/ready` says in words what is wrong, whatever the store does. */
import assert from "node:assert/strict";
import { type Check, readiness } from "../../lib/edge/readiness.ts";
import type { Kv } from "../../lib/edge/kv.ts";
import { realTimers } from "../../lib/edge/ports.ts";
import { keys } from "../../lib/keys.ts";
import { ManualTime } from "../support/manual_time.ts";

const NOW = 1_796_097_801_469;
const wrong = (checks: Check[]) => checks.filter(({ ok }) => !ok).map(({ message }) => message);

function ask(kv: Kv, more: { working?: boolean; now?: number } = {}, timers = realTimers) {
  return readiness({
    kv,
    now: () => more.now ?? NOW,
    timers,
    instance: "one",
    working: () => more.working ?? true,
  });
}

Deno.test("ready: a fresh heartbeat of this very instance, and it works", async () => {
  using kv = await Deno.openKv(":memory:");
  assert.deepEqual(wrong(await ask(kv)), [
    "There is no sign of life: the instance is starting or has ended.",
  ]);
  await kv.set(keys.heartbeat("one"), { at: NOW - 1_000 });
  assert.deepEqual(wrong(await ask(kv)), []);
  assert.deepEqual(wrong(await ask(kv, { working: false })), ["The instance is starting or stopping."]);
  assert.deepEqual(wrong(await ask(kv, { now: NOW + 8_000 })), [
    "The last sign of life is 9 s old: the store takes no writes, or the process is starved.",
  ]);
});

Deno.test("ready: a store that refuses or hangs is told of, and nothing waits for it", async () => {
  const refusing = { get: () => Promise.reject(new TypeError("canary")) } as unknown as Kv;
  assert.deepEqual(wrong(await ask(refusing)), [
    "The store refuses to be read (TypeError).",
    "The sign of life cannot be read.",
  ]);
  const hanging = { get: () => new Promise(() => {}) } as unknown as Kv;
  const time = new ManualTime();
  const asked = ask(hanging, {}, time.group().timers);
  time.jump(time.now + 2_000);
  assert.equal(wrong(await asked)[0], "The store has not answered within 2 s.");
});

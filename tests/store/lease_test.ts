import assert from "node:assert/strict";
import { takeLease } from "../../lib/edge/lease.ts";

async function world(
  body: (
    take: (who: string) => ReturnType<typeof takeLease>,
    kv: Deno.Kv,
    clock: { now: number },
  ) => Promise<void>,
) {
  const kv = await Deno.openKv(":memory:");
  const clock = { now: 1_000 };
  try {
    await body((instance) => takeLease("work", 100, { kv, now: () => clock.now, instance }), kv, clock);
  } finally {
    kv.close();
  }
}

Deno.test("lease: one holder at a time, also when many ask at once", () =>
  world(async (take) => {
    const taken = await Promise.all(["a", "b", "c", "d"].map(take));
    assert.equal(taken.filter((lease) => lease !== null).length, 1);
    assert.equal(await take("e"), null);
  }));

Deno.test("lease: free again once released or run out, kept by renewing", () =>
  world(async (take, _kv, clock) => {
    const first = await take("a");
    assert.ok(first);
    clock.now = 1_090;
    assert.ok(await first.renew());
    assert.equal(first.until, 1_190);
    clock.now = 1_150;
    assert.equal(await take("b"), null);
    await first.release();
    assert.ok(await take("b"));
    clock.now = 1_250;
    assert.ok(await take("c"));
  }));

Deno.test("lease: who lost it can neither renew, nor release the new holder's, nor commit under it", () =>
  world(async (take, kv, clock) => {
    const lost = await take("a");
    assert.ok(lost);
    clock.now = 1_100;
    const held = await take("b");
    assert.ok(held);
    assert.equal(await lost.renew(), false);
    await lost.release();
    assert.equal((await kv.atomic().check(lost.check()).set(["x"], 1).commit()).ok, false);
    assert.equal((await kv.atomic().check(held.check()).set(["x"], 1).commit()).ok, true);
  }));

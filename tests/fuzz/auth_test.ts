/** Who calls: the cache of key rows, the buckets of failed authentications, expiry and permissions (reference §2). */
import assert from "node:assert/strict";
import { hashKey, mintKey } from "../../lib/edge/api_keys.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { ApiError } from "../../lib/errors.ts";
import type { Id } from "../../lib/ids.ts";
import { type KeyRow, keys, permission } from "../../lib/keys.ts";
import { KEY_CACHE_MS } from "../../lib/limits.ts";
import { authenticate, demand, makeKeyCache } from "../../routes/auth.ts";
import { watch } from "../support/watched_kv.ts";

const PEPPER = new Uint8Array(32).fill(3), NOW = 1_800_000_000_000;
const rowOf = (text: string, change: Partial<KeyRow> = {}): KeyRow => ({
  id: "key_1" as Id<"key">,
  hash: hashKey(text, PEPPER),
  name: "n",
  level: "platform",
  partner_id: null,
  tenant_id: null,
  identity_id: null,
  permissions: [],
  expires_at: null,
  revoked_at: null,
  created_at: NOW,
  ...change,
});

async function withCache(body: (c: Awaited<ReturnType<typeof bench>>) => Promise<void>): Promise<void> {
  const store = await Deno.openKv(":memory:");
  try {
    await body(await bench(store));
  } finally {
    store.close();
  }
}
function bench(store: Deno.Kv) {
  const clock = { now: NOW }, kv = watch(store), now = () => clock.now;
  const cache = makeKeyCache({ kv, now }), counted: string[] = [];
  const limiter = {
    take(bucket: string, id: string) {
      counted.push(`${bucket} ${id}`);
      return { limit: 1, remaining: 1 };
    },
  };
  const deps = { now, keyCache: cache, keyPepper: PEPPER, limiter };
  return Promise.resolve({
    store,
    kv,
    clock,
    cache,
    counted,
    ask: (text: string | null, client = "192.0.2.1") =>
      authenticate(new Headers(text === null ? {} : { authorization: text }), client, deps).then(
        (row) => row.id as string,
        (error) => error instanceof ApiError ? error.code : Promise.reject(error),
      ),
  });
}

Deno.test("keys: a row is kept for five seconds, a missing one not at all, and a forgotten one is read again", () =>
  withCache(async (c) => {
    const reads = async (lookup: string) => {
      const before = c.kv.reads;
      await c.cache.get(lookup);
      return c.kv.reads - before;
    };
    await c.store.set(keys.apiKey("a"), rowOf("a"));
    assert.deepEqual([await reads("a"), await reads("a"), await reads("b"), await reads("b")], [1, 0, 1, 1]);
    c.clock.now += KEY_CACHE_MS - 1;
    assert.equal(await reads("a"), 0);
    c.clock.now += 1;
    assert.deepEqual([await reads("a"), await reads("a")], [1, 0]);
    c.cache.forget("a");
    assert.deepEqual([await reads("a"), await reads("a")], [1, 0]);
  }));

Deno.test("keys: a read that was under way while its key was written does not put the old row back", () =>
  withCache(async (c) => {
    await c.store.set(keys.apiKey("a"), rowOf("a"));
    const gate = Promise.withResolvers<void>();
    c.kv.beforeRead = () => gate.promise;
    const slow = c.cache.get("a");
    c.cache.forget("a");
    gate.resolve();
    await slow;
    c.kv.beforeRead = null;
    const before = c.kv.reads;
    await c.cache.get("a");
    assert.equal(c.kv.reads, before + 1);
  }));

Deno.test("keys: at most 10,000 rows are kept, and the oldest makes room", () =>
  withCache(async (c) => {
    for (let from = 0; from <= 10_000; from += 500) {
      const operation = c.store.atomic();
      for (let i = from; i < from + 500; i++) operation.set(keys.apiKey(`k${i}`), { id: i });
      await operation.commit();
    }
    const get = (i: number) => c.cache.get(`k${i}`);
    await get(0); // the oldest; the others come as they are read
    for (let i = 0; i < 10_000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => get(i + j)));
    let before = c.kv.reads;
    for (const i of [0, 1, 9_999]) await get(i);
    assert.equal(c.kv.reads, before, "ten thousand fit");
    await get(10_000);
    before = c.kv.reads;
    for (const i of [1, 9_999, 10_000]) await get(i);
    assert.equal(c.kv.reads, before, "one made room");
    await get(0);
    assert.equal(c.kv.reads, before + 1, "the oldest");
  }));

Deno.test("failed authentications: counted per IPv4 address, per /64 of IPv6 in any spelling, and not when they succeed", () =>
  withCache(async (c) => {
    const table: [client: string, bucket: string][] = [
      ["192.0.2.1", "192.0.2.1"],
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
      ["2001:db8:1:2::", "2001:db8:1:2"],
      ["2001:db8:1:2::9", "2001:db8:1:2"],
      ["2001:db8:1:2:3::9", "2001:db8:1:2"],
      ["2001:db8::9", "2001:db8:0:0"],
      ["2001::1:2:3:4:5", "2001:0:0:1"],
      ["2001:db8::", "2001:db8:0:0"],
      ["::1", "0:0:0:0"],
      ["::", "0:0:0:0"],
      ["fe80::1%eth0", "fe80:0:0:0"],
      // A dual-stack socket's name for an IPv4 client: not all of them are one.
      ["::ffff:192.0.2.1", "192.0.2.1"],
      ["::ffff:192.0.2.2", "192.0.2.2"],
      ["::FFFF:192.0.2.2", "192.0.2.2"],
      ["", ""],
    ];
    for (const [client, bucket] of table) {
      c.counted.length = 0;
      assert.equal(await c.ask("Bearer pmk_test_guess", client), "unauthenticated");
      assert.deepEqual(c.counted, [`failed_auth ${bucket}`], client);
    }
    const { text, lookup } = mintKey("test", realRandom);
    await c.store.set(keys.apiKey(lookup), rowOf(text));
    c.counted.length = 0;
    assert.equal(await c.ask(`Bearer ${text}`), "key_1");
    assert.deepEqual(c.counted, []);
  }));

Deno.test("authenticate: the scheme in any case, spaces around the key, and nothing else; a malformed key reads no row", () =>
  withCache(async (c) => {
    const { text, lookup } = mintKey("test", realRandom);
    await c.store.set(keys.apiKey(lookup), rowOf(text));
    for (const good of [`Bearer ${text}`, `bearer ${text}`, `BEARER   ${text}`]) {
      assert.equal(await c.ask(good), "key_1");
    }
    const before = c.kv.reads;
    for (
      const bad of [
        null,
        "",
        text,
        `Bearer${text}`,
        `Basic ${text}`,
        `Bearer ${text} x`,
        "Bearer ",
        `Bearer ${text}x`,
      ]
    ) {
      assert.equal(await c.ask(bad), "unauthenticated", String(bad));
    }
    assert.equal(c.kv.reads, before);
    // Another's row under the look-up part of this key.
    await c.store.set(keys.apiKey(lookup), rowOf(mintKey("test", realRandom).text));
    c.cache.forget(lookup);
    assert.equal(await c.ask(`Bearer ${text}`), "unauthenticated");
  }));

Deno.test("authenticate: a key is good up to the moment it expires, and revoked is said before expired", () =>
  withCache(async (c) => {
    const table: [Partial<KeyRow>, string][] = [
      [{ expires_at: NOW + 1 }, "key_1"],
      [{ expires_at: NOW }, "key_expired"],
      [{ expires_at: 0 }, "key_expired"],
      [{ revoked_at: NOW + 5 }, "key_revoked"],
      [{ revoked_at: 0, expires_at: 0 }, "key_revoked"],
    ];
    for (const [change, wanted] of table) {
      const { text, lookup } = mintKey("test", realRandom);
      await c.store.set(keys.apiKey(lookup), rowOf(text, change));
      assert.equal(await c.ask(`Bearer ${text}`), wanted, JSON.stringify(change));
    }
  }));

Deno.test("demand: what a key lacks is named", () => {
  for (const needed of permission.options) {
    demand(rowOf("x", { permissions: [needed] }), needed);
    assert.throws(
      () =>
        demand(
          rowOf("x", {
            permissions: permission.options.filter((p) => p !== needed && p !== "webhooks:manage"),
          }),
          needed,
        ),
      (error) =>
        error instanceof ApiError && error.code === "permission_denied" && error.details?.required === needed,
    );
  }
});

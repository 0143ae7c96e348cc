/** `pmail secrets rotate-master`: everything opens under the next key alone, whatever happens on the way. */
import assert from "node:assert/strict";
import { createEndpoint, deleteEndpoint, type EndpointDeps, rotateSecret } from "../../actors/endpoints.ts";
import { rotateMaster } from "../../actors/rotate_master.ts";
import { SEALED_COLUMNS, secretAad } from "../../actors/secrets.ts";
import { makeCommitter } from "../../lib/edge/committer.ts";
import { realIds, realRandom } from "../../lib/edge/ports.ts";
import { kidOf, makeSealer, type Sealer } from "../../lib/edge/seal.ts";
import { type EndpointRow, keys } from "../../lib/keys.ts";
import { watch } from "../support/watched_kv.ts";

const OLD = new Uint8Array(32).fill(1), NEXT = new Uint8Array(32).fill(2);
const before = () => makeSealer(OLD, null, realRandom);
const during = () => makeSealer(OLD, NEXT, realRandom);
const afterwards = () => makeSealer(NEXT, null, realRandom);
const NOW = 1_780_000_000_000;

interface Setting {
  kv: Deno.Kv;
  endpoints(sealer: Sealer): EndpointDeps;
  rotate(more?: Partial<Parameters<typeof rotateMaster>[0]>): ReturnType<typeof rotateMaster>;
  make(count: number, sealer?: Sealer): Promise<EndpointRow[]>;
}

async function setting(body: (s: Setting) => Promise<void>): Promise<void> {
  const kv = await Deno.openKv(":memory:"), ids = realIds(), now = () => NOW;
  const committer = makeCommitter(kv, { maxInFlight: 1 });
  const endpoints = (sealer: Sealer): EndpointDeps => ({
    kv,
    committer,
    now,
    ids,
    random: realRandom,
    sealer,
    guard: { check: (url) => Promise.resolve({ ok: true, url: new URL(url), resolved: "public" }) },
  });
  try {
    await body({
      kv,
      endpoints,
      rotate: (more) => rotateMaster({ kv, committer, now, ids, sealer: during(), ...more }),
      async make(count, sealer = before()) {
        const rows: EndpointRow[] = [];
        for (let i = 0; i < count; i++) {
          const tenant = ids.next("tenant");
          const input = {
            url: "https://hooks.example.com/in",
            events: ["*"],
            headers: { "x-key": "canary" },
            signature_versions: ["v1", "v1a"] as const,
          };
          const { row } = await createEndpoint(endpoints(sealer), { level: "tenant", tenant }, input, null);
          rows.push((await rotateSecret(endpoints(sealer), row.id, 24, null)).row);
        }
        return rows;
      },
    });
  } finally {
    kv.close();
  }
}

/** Every sealed value of a row, opened. */
async function opened(kv: Deno.Kv, id: EndpointRow["id"], sealer: Sealer): Promise<Record<string, string>> {
  const row = (await kv.get<EndpointRow>(keys.endpoint(id))).value!;
  const values: Record<string, string> = {};
  for (const column of SEALED_COLUMNS) {
    const sealed = row[column];
    if (typeof sealed === "string") {
      values[column] = btoa(String.fromCharCode(...await sealer.open(sealed, secretAad(column, id))));
    }
  }
  return values;
}

Deno.test("rotate_master: every sealed column of every endpoint opens under the next key alone, its content the same", async () => {
  await setting(async ({ kv, make, rotate }) => {
    const rows = await make(23), plain = await Promise.all(rows.map((row) => opened(kv, row.id, before())));
    assert.deepEqual(Object.keys(plain[0]!).sort(), [...SEALED_COLUMNS].sort(), "all of them are in use");
    const revision = (await kv.get(keys.endpointsRevision())).versionstamp!;
    const done = await rotate();
    assert.deepEqual([done.endpoints, done.resealed, done.unopenable], [23, 23 * SEALED_COLUMNS.length, []]);
    for (const [i, row] of rows.entries()) assert.deepEqual(await opened(kv, row.id, afterwards()), plain[i]);
    assert.ok((await kv.get(keys.endpointsRevision())).versionstamp! > revision, "caches hear of it");
    assert.equal((await kv.get(keys.masterRotation())).value, null, "nothing is left to resume");
    assert.equal((await rotate()).resealed, 0, "again, there is nothing to do");
  });
});

Deno.test("rotate_master: a run that was killed half-way goes on where it was", async () => {
  await setting(async ({ kv, make, rotate }) => {
    const rows = await make(30);
    class Killed extends Error {}
    let resealed = 0;
    const progress = (done: { endpoints: number; resealed: number }) => {
      resealed = done.resealed;
      if (done.endpoints === 20) throw new Killed();
    };
    await assert.rejects(() => rotate({ progress }), Killed);
    for (const row of rows) {
      assert.ok(await opened(kv, row.id, during()), "half done, all of it opens under both keys");
    }
    const stamps = (await kv.getMany(rows.slice(0, 10).map((row) => keys.endpoint(row.id)))).map((entry) =>
      entry.versionstamp
    );

    const done = await rotate();
    assert.equal(done.resumedAfter, rows[19]!.id);
    assert.equal(resealed + done.resealed, 30 * SEALED_COLUMNS.length, "nothing was sealed twice");
    const again = await kv.getMany(rows.slice(0, 10).map((row) => keys.endpoint(row.id)));
    assert.deepEqual(again.map((entry) => entry.versionstamp), stamps);
    for (const row of rows) await opened(kv, row.id, afterwards());
  });
});

Deno.test("rotate_master: a cursor of another key's rotation is none of this one's", async () => {
  await setting(async ({ kv, make, rotate }) => {
    const rows = await make(3);
    await kv.set(keys.masterRotation(), { kid: kidOf(new Uint8Array(32)), after: rows[2]!.id });
    const done = await rotate();
    assert.deepEqual([done.resumedAfter, done.endpoints], [null, 3]);
    for (const row of rows) await opened(kv, row.id, afterwards());
  });
});

Deno.test("rotate_master: what a service changes meanwhile is neither lost nor left under the old key", async () => {
  await setting(async ({ kv, make, rotate, endpoints }) => {
    const rows = await make(12), watched = watch(kv);
    let meddled = 0;
    // Between its read and its commit: a service without the next key rotates one secret; later another endpoint is made.
    watched.beforeCommit = async () => {
      if (meddled++ > 0) return;
      await rotateSecret(endpoints(before()), rows[0]!.id, 0, null);
      await make(1);
    };
    const committer = makeCommitter(watched, { maxInFlight: 1 });
    const done = await rotate({ kv: watched, committer });
    assert.ok(meddled > 1);
    assert.equal(done.endpoints, 13, "the new one was caught");
    for await (const { key } of kv.list<EndpointRow>({ prefix: keys.endpoints() })) {
      await opened(kv, key[1] as EndpointRow["id"], afterwards());
    }
    const row = (await kv.get<EndpointRow>(keys.endpoint(rows[0]!.id))).value!;
    assert.equal(row.prev_secret_enc, null, "the service's own change stands");
  });
});

Deno.test("rotate_master: a value that nobody can open is named and holds up no other; a deleted endpoint's is nobody's", async () => {
  await setting(async ({ kv, make, rotate, endpoints }) => {
    const rows = await make(4);
    const foreign = makeSealer(new Uint8Array(32).fill(9), null, realRandom);
    for (const row of rows.slice(0, 2)) {
      const secret_enc = await foreign.seal(new Uint8Array(32), secretAad("secret_enc", row.id));
      await kv.set(keys.endpoint(row.id), { ...row, secret_enc });
    }
    await deleteEndpoint(endpoints(before()), rows[1]!.id, null);
    const done = await rotate();
    assert.deepEqual(done.unopenable, [{ endpoint: rows[0]!.id, column: "secret_enc", code: "unknown_key" }]);
    for (const row of rows.slice(2)) await opened(kv, row.id, afterwards());
  });
});

Deno.test("rotate_master: a service that keeps sealing under the old key is told of, not waited for", async () => {
  await setting(async ({ make, rotate }) => {
    await make(1);
    const sealer = { ...during(), isCurrent: () => false };
    let passes = 0;
    await assert.rejects(() => rotate({ sealer, progress: () => void passes++ }), /keep appearing.*/);
    assert.equal(passes, 6);
  });
});

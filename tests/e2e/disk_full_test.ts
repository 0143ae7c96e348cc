/**
 * D4: a store that takes no writes for a while, because its disk is full or another process keeps its file, is our fault: callers
 * are told to come again, nothing is written by half, no attempt is charged to an endpoint, and all goes on by itself.
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { makeApi, TYPE } from "./support/api.ts";
import { eventually, makePlace, platformKey, startService, statusOf } from "./support/process.ts";
import {
  checkAll,
  makeTenants,
  type Publishers,
  startPublishers,
  undelivered,
} from "./support/publishers.ts";
import { type Receiver, startReceiver } from "./support/receiver.ts";
import { mountSmallDisk, whyNoDisk } from "./support/small_disk.ts";
import { jobRows } from "./support/store.ts";
import { allAttemptsOf } from "../support/rows.ts";

const DRAIN_MS = 30_000;
const DISK_MIB = 16;
const FULL_MS = 3_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until all is delivered and recorded, and checks that everything was charged to nobody. */
async function checkDrained(publishers: Publishers, receiver: Receiver, path: string) {
  await eventually("everything arrives", () => undelivered(publishers, receiver).length === 0, DRAIN_MS)
    .catch(() => {});
  using kv = await Deno.openKv(path);
  await eventually("J2: no job row is left", async () => await jobRows(kv) === 0, DRAIN_MS);
  const tally = checkAll(publishers, receiver);
  let attempts = 0;
  for (const { value } of await allAttemptsOf(kv)) {
    attempts++;
    assert.deepEqual(
      [value.status, value.attempt],
      ["succeeded", 1],
      "D4: nothing is charged to the endpoint",
    );
  }
  assert.equal(attempts, tally.deliveries - tally.duplicates);
  return { acknowledged: publishers.acknowledged.length, ...tally };
}

const noDisk = await whyNoDisk();
if (noDisk !== null) console.log(`disk_full: not run, no disk of its own can be mounted here: ${noDisk}`);

Deno.test({
  name: "D4: a full disk answers 503, leaves nothing half-written, and all goes on once there is space",
  ignore: noDisk !== null,
  async fn() {
    await using receiver = startReceiver();
    await using disk = await mountSmallDisk(DISK_MIB);
    await using place = await makePlace({
      PM_ALLOWED_TARGETS: receiver.target,
      PM_KV_PATH: `${disk.folder}/pm.db`,
    });
    const key = await platformKey(place.env), call = makeApi(place.env.PM_PORT!, key);
    await using service = await startService(place.env);
    const tenants = await makeTenants(call, receiver);
    const publishers = await startPublishers(call, tenants, [place.env.PM_PORT!], 16, 50);
    await eventually("events are acknowledged", () => publishers.acknowledged.length > 100);
    await disk.fill();
    await eventually("publishers are turned away", () => publishers.cutOff.size > 8);
    const events = `/v1/tenants/${tenants[0]!.id}/owners/o/events`;
    const refused = await call("POST", events, { type: TYPE, data: { n: "refused" } });
    assert.equal(refused.status, 503, refused.text);
    assert.deepEqual([refused.body.error.code, refused.body.error.retryable], ["unavailable", true]);
    await pause(FULL_MS);
    assert.ok(!service.ended, service.output);
    const base = `http://127.0.0.1:${place.env.PM_PORT}`;
    assert.equal(await statusOf(`${base}/health`), 200, "it lives");
    const before = publishers.acknowledged.length;
    await disk.empty();
    await eventually("events are acknowledged again", () => publishers.acknowledged.length > before + 50);
    await publishers.stop();
    const tally = await checkDrained(publishers, receiver, place.env.PM_KV_PATH!);
    assert.equal(tally.unknown, 0, "O1: of what was refused nothing exists");
    console.log({ ...tally, faults: service.output.split("\n").length - 1 });
    await disk.fill();
    const at = performance.now();
    assert.equal((await service.end("SIGTERM")).code, 0, service.output);
    assert.ok(performance.now() - at < 10_000, "it stops on a full disk, too");
  },
});

/** Longer than a commit waits: the test of it runs with `STORM=full`. */
const LOCKS = Deno.env.get("STORM") === "full" ? [2_000, 14_000] : [2_000];

for (const lockMs of LOCKS) {
  const turnsAway = lockMs > 10_000, says = turnsAway ? "answers 503" : "is waited for";
  Deno.test(`D4: a store file that another process keeps for ${lockMs / 1_000} s ${says}, and nothing is lost`, async () => {
    await using receiver = startReceiver();
    await using place = await makePlace({ PM_ALLOWED_TARGETS: receiver.target });
    const key = await platformKey(place.env), call = makeApi(place.env.PM_PORT!, key);
    await using service = await startService(place.env);
    const publishers = await startPublishers(
      call,
      await makeTenants(call, receiver),
      [place.env.PM_PORT!],
      16,
      50,
    );
    await eventually("events are acknowledged", () => publishers.acknowledged.length > 100);
    const db = new DatabaseSync(place.env.PM_KV_PATH!);
    db.exec("PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE");
    const cutOff = publishers.cutOff.size;
    await pause(lockMs);
    db.exec("ROLLBACK");
    db.close();
    const turnedAway = publishers.cutOff.size - cutOff;
    assert.equal(turnedAway > 0, turnsAway, `${turnedAway} were turned away`);
    const before = publishers.acknowledged.length;
    await eventually("events are acknowledged again", () => publishers.acknowledged.length > before + 50);
    await publishers.stop();
    const tally = await checkDrained(publishers, receiver, place.env.PM_KV_PATH!);
    console.log({ ...tally, turned_away: turnedAway, faults: service.output.split("\n").length - 1 });
    assert.equal((await service.end("SIGTERM")).code, 0, service.output);
  });
}

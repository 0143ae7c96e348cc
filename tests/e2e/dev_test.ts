/** The first minutes: `deno task dev`, the curl it prints run as it is printed, and the delivery seen verified. */
import assert from "node:assert/strict";
import { type Env, eventually, makePlace, type Process, spawn } from "./support/process.ts";

/** Starts `deno task dev` and waits for what it prints. */
async function startDev(env: Env): Promise<{ process: Process; curl: string; receiver: string }> {
  const process = spawn("dev", env);
  const found = await eventually("it greets", () => {
    assert.ok(!process.ended, process.output);
    const curl = /^curl .*$/m.exec(process.output)?.[0];
    const receiver = /verified, at (\S+)/.exec(process.output)?.[1];
    return curl !== undefined && receiver !== undefined && { process, curl, receiver };
  }).catch(async (error) => {
    await process.end("SIGKILL");
    throw new Error(`${error.message}\n${process.output}`);
  });
  return found;
}

/** Runs the printed line in a shell, verbatim; answers the id of the event it caused. */
async function runCurl(line: string): Promise<string> {
  const command = new Deno.Command("sh", { args: ["-c", line], stdout: "piped", stderr: "piped" });
  const { code, stdout } = await command.output();
  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, text);
  return JSON.parse(text).event.id;
}

async function receivedAt(receiver: string, id: string) {
  return await eventually(`${id} is at the receiver`, async () => {
    const response = await fetch(receiver, { headers: { accept: "application/json" } });
    const { data } = await response.json();
    return data.find((row: { webhook_id: string }) => row.webhook_id === id);
  }, 10_000);
}

Deno.test("dev: the printed curl causes a delivery that the receiver shows verified, on this start and the next", async () => {
  await using place = await makePlace();
  const first = await startDev({ ...place.env, PM_LOG: "info" });
  try {
    assert.match(first.process.output, /key {7}pmk_test_/);
    const row = await receivedAt(first.receiver, await runCurl(first.curl));
    assert.deepEqual([row.verified, row.error], [true, null]);
    assert.match(row.body, /"amount":42\.50/, "numbers keep their text");
    const page = await (await fetch(first.receiver)).text();
    assert.match(page, /✓ verified/);
  } finally {
    const { code } = await first.process.end("SIGINT");
    assert.equal(code, 0, first.process.output);
  }
  const notes = `${place.env.PM_KV_PATH}.dev.json`;
  assert.equal(
    (await Deno.stat(notes)).mode! & 0o777,
    0o600,
    "the key and the secret are for this user alone",
  );

  // Another port, or any free one: the endpoint follows, and the key stays.
  for (const PM_PORT of ["0", place.env.PM_PORT!]) {
    const { process, curl, receiver } = await startDev({ ...place.env, PM_PORT });
    try {
      assert.equal(/Bearer (\S+)'/.exec(curl)![1], /Bearer (\S+)'/.exec(first.curl)![1]);
      assert.equal((await receivedAt(receiver, await runCurl(curl))).verified, true);
    } finally {
      await process.end("SIGINT");
    }
  }

  // The notes are gone, or the store is: both are made anew.
  for (const gone of [notes, place.env.PM_KV_PATH!]) {
    await Deno.remove(gone);
    const { process, curl, receiver } = await startDev(place.env);
    try {
      assert.equal((await receivedAt(receiver, await runCurl(curl))).verified, true);
    } finally {
      await process.end("SIGINT");
    }
  }
});

Deno.test("dev: refuses to run in production", async () => {
  await using place = await makePlace();
  const key = (fill: number) => btoa(String.fromCharCode(...new Uint8Array(32).fill(fill)));
  const secrets = { PM_MASTER_KEY: key(1), PM_KEY_PEPPER: key(2), PM_HASH_KEY: key(3) };
  await using process = spawn("dev", { ...place.env, ...secrets, PM_ENV: "production" });
  assert.equal((await process.status).code, 1);
  assert.match(await process.stderr, /^Cannot start: deno task dev is for PM_ENV=local/);
});

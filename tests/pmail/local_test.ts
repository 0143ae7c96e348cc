/** The commands that need no store and no service, and how any command line is answered. */
import assert from "node:assert/strict";
import { sign } from "../../mod.ts";
import { eventually, makePlace, spawn } from "../e2e/support/process.ts";
import { json, pmail } from "./support.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const BODY = '{"type":"order.paid","data":{"n":1}}';
const AT = new Date("2026-10-09T12:00:00Z");

Deno.test("verify: a captured request is valid, or says why not and what nearly fits", async () => {
  await using place = await makePlace();
  const file = async (
    name: string,
    text: string,
  ) => (await Deno.writeTextFile(`${place.folder}/${name}`, text), `${place.folder}/${name}`);
  const signed = sign(SECRET, { id: "evt_1", body: BODY, at: AT });
  const lines = Object.entries(signed).map(([name, value]) => `${name.toUpperCase()}: ${value}`).join("\r\n");
  const headers = await file("headers.txt", `POST /in HTTP/1.1\r\nhost: x\r\n${lines}\r\n\r\n`);
  const object = await file("headers.json", JSON.stringify(signed));
  const body = await file("body.json", BODY),
    saved = await file("saved.json", BODY + "\n"),
    other = await file("other.json", "{}");
  const secret = await file("secret.txt", SECRET + "\n");
  const at = ["--at", AT.toISOString()];
  const verify = (code: number, ...args: string[]) => json({}, ["verify", ...args], code);

  assert.deepEqual(await verify(0, "--secret", SECRET, "--headers", headers, "--body", body, ...at), {
    valid: true,
    id: "evt_1",
    timestamp: AT.getTime() / 1_000,
    scheme: "v1",
  });
  assert.ok(
    (await verify(0, "--secret", OTHER, "--secret", `@${secret}`, "--headers", object, "--body", body, ...at))
      .valid,
  );
  const cases: [string[], string, RegExp | null][] = [
    [["--secret", SECRET, "--headers", headers, "--body", body], "too_(old|new)", /only its time does not/],
    [["--secret", OTHER, "--headers", headers, "--body", body, ...at], "signature_mismatch", null],
    [
      ["--secret", SECRET, "--headers", headers, "--body", saved, ...at],
      "signature_mismatch",
      /last newline/,
    ],
    [["--secret", SECRET, "--headers", headers, "--body", other, ...at], "signature_mismatch", null],
    [["--secret", SECRET, "--headers", other, "--body", body, ...at], "missing_header", null],
    [["--secret", "nonsense", "--headers", headers, "--body", body, ...at], "malformed_secret", null],
  ];
  for (const [args, fault, hint] of cases) {
    const answer = await verify(1, ...args);
    assert.match(answer.fault, new RegExp(`^${fault}$`));
    if (hint === null) assert.equal(answer.hint, null);
    else assert.match(answer.hint, hint);
  }
  assert.equal(
    (await pmail({}, "verify", "--secret", SECRET, "--headers", headers, "--body", "/nowhere")).code,
    1,
  );
});

Deno.test("listen: verifies what comes, hands on what verifies, answers as the application does", async () => {
  const handed: { headers: Headers; body: string }[] = [];
  const application = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    handed.push({ headers: request.headers, body: await request.text() });
    return new Response("private words", { status: 202 });
  });
  try {
    await using listener = spawn("pmail", {}, [
      ...["listen", "--secret", SECRET, "--port", "0", "--count", "4", "--json"],
      ...["--forward", `http://127.0.0.1:${application.addr.port}/hook`],
    ]);
    const url = await eventually("it listens", () => /http:\/\/127\.0\.0\.1:\d+/.exec(listener.output)?.[0]);
    const post = async (headers: Record<string, string>, body = BODY) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body,
      });
      return [response.status, await response.text()];
    };
    const good = { ...sign(SECRET, { id: "evt_1", body: BODY }), authorization: "Bearer canary" };
    assert.deepEqual(await post(good), [202, ""], "the status of the application, not its words");
    assert.deepEqual(await post(good, "{}"), [400, ""]);
    assert.deepEqual(await post({}), [400, ""]);
    assert.deepEqual(await post({ ...sign(OTHER, { id: "evt_1", body: BODY }) }), [400, ""]);
    assert.equal((await listener.status).code, 0);
    assert.equal(handed.length, 1, "only what verifies goes on");
    assert.equal(handed[0]!.body, BODY);
    assert.equal(handed[0]!.headers.get("webhook-id"), "evt_1");
    assert.equal(handed[0]!.headers.get("authorization"), null, "only what a delivery has of its own");
    const shown = (await listener.stdout).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(shown.map(({ valid, fault, type, answered }) => [valid, fault, type, answered]), [
      [true, null, "order.paid", 202],
      [false, "signature_mismatch", null, 400],
      [false, "missing_header", "order.paid", 400],
      [false, "signature_mismatch", "order.paid", 400],
    ]);
  } finally {
    await application.shutdown();
  }
});

Deno.test("pmail: a wrong command line exits 2 and says what is right, on one JSON line if asked", async () => {
  const cases: [string[], RegExp][] = [
    [["webhook", "list"], /no command "webhook list"; the nearest is "webhooks list"/],
    [["keys", "create"], /--level is needed/],
    [["keys", "create", "--level", "root"], /must be one of platform/],
    [["keys", "create", "--level", "platform", "--permissions", "all"], /must be among webhooks:read/],
    [["keys", "create", "--levle", "platform"], /--levle/],
    [["keys", "create", "--level", "tenant", "--tenant", "acme"], /must be the id of a tenant/],
    [["backup"], /takes FILE/],
    [["events", "tail"], /--tenant is needed/],
    [["verify"], /--secret is needed/],
    [["completion", "tcsh"], /SHELL must be one of bash, zsh, fish/],
  ];
  await Promise.all(cases.map(async ([args, says]) => {
    const { code, stdout, stderr } = await pmail({}, ...args, "--json");
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(JSON.parse(stderr).error.message, says);
  }));
});

Deno.test("pmail: help names every command, and each has options, an example and the exit codes", async () => {
  const { code, stdout } = await pmail({});
  assert.equal(code, 0);
  const names = [...stdout.matchAll(/^ {2}((?:[a-z-]+ ?)+?)(?: [A-Z_]+)? {2,}/gm)].map((match) =>
    match[1]!.trim()
  );
  assert.ok(names.length > 18 && names.includes("secrets rotate-master"), names.join());
  for (const name of ["keys create", "restore", "listen"]) {
    const help = await pmail({}, ...name.split(" "), "--help");
    assert.equal(help.code, 0);
    for (const part of [/--json/, /Examples:\n +.*pmail/, /Exit codes: 0 done/]) {
      assert.match(help.stdout, part, name);
    }
  }
});

Deno.test("completion: bash offers commands, their options and an option's values; zsh and fish get all of them", async () => {
  const script = (await pmail({}, "completion", "bash")).stdout;
  const cases: [string[], string, string[]][] = [
    [["pmail", "web"], "", ["webhooks"]],
    [["pmail", "webhooks", ""], "", ["create", "list", "test", "replay", "rotate"]],
    [["pmail", "webhooks", "rotate", "--o"], "", ["--overlap-hours"]],
    [["pmail", "webhooks", "rotate", "whk_1", "--o"], "", ["--overlap-hours"]],
    [["pmail", "backup", "file.db", "--js"], "", ["--json"]],
    [["pmail", "keys", "create", "--level", "p"], "", ["platform", "partner"]],
    [["pmail", "completion", ""], "", ["bash", "zsh", "fish", "--json", "--help"]],
  ];
  for (const [words, , wanted] of cases) {
    const typed = words.map((word) => `'${word}'`).join(" ");
    const { stdout, success } = await new Deno.Command("bash", {
      args: [
        "-c",
        `${script}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _pmail; echo "\${COMPREPLY[@]}"`,
      ],
    }).output();
    assert.ok(success);
    assert.deepEqual(new TextDecoder().decode(stdout).trim().split(" "), wanted, words.join(" "));
  }
  for (const shell of ["zsh", "fish"]) {
    const { stdout } = await pmail({}, "completion", shell);
    for (const word of ["rotate-master", "redrive", "overlap-hours"]) assert.ok(stdout.includes(word), shell);
  }
});

/** `pmail verify`: is a captured request one that the secret's holder signed? Says what is wrong, and what nearly fits. */
import { Buffer } from "node:buffer";
import { realNow } from "../../lib/edge/ports.ts";
import { TOLERANCE_S, type Verdict, verifySigned } from "../../lib/verify.ts";
import { type Command, CommandLineError, type Line, Refused } from "./command.ts";

export const SECRET = {
  value: "S|@FILE",
  about: "whsec_… or, for v1a, whpk_…; @FILE reads it from a file (needed)",
  many: true,
};

/** The secrets of the line. @throws CommandLineError without any. */
export async function secretsOf(line: Line): Promise<string[]> {
  const given = line.all("secret");
  if (given.length === 0) throw new CommandLineError("--secret is needed");
  const texts = given.map(async (text) =>
    text.startsWith("@") ? decode(await read(text.slice(1))).trim() : text
  );
  return await Promise.all(texts);
}

/** Header lines as `curl -i` and proxies show them, or one JSON object. The last of a name counts. */
export function headersOf(text: string): Headers {
  const headers = new Headers();
  const set = (name: string, value: unknown) => {
    try {
      headers.set(name, [value].flat().join(", "));
    } catch {
      throw new CommandLineError("--headers holds a line that is no header");
    }
  };
  if (text.trimStart().startsWith("{")) {
    let object: unknown;
    try {
      object = JSON.parse(text);
    } catch {
      throw new CommandLineError("--headers is neither header lines nor a JSON object");
    }
    for (const [name, value] of Object.entries(object as object)) set(name, value);
    return headers;
  }
  for (const line of text.split(/\r?\n/)) {
    const colon = line.replace(/^[<>] /, "").indexOf(":");
    const plain = line.replace(/^[<>] /, "");
    if (colon > 0 && !/\s/.test(plain.slice(0, colon))) {
      set(plain.slice(0, colon), plain.slice(colon + 1).trim());
    }
  }
  return headers;
}

export const verifyCommand: Command = {
  name: "verify",
  kind: "local",
  summary: "check a captured request: exit 0 when its signature holds, 1 with the reason when not",
  options: {
    secret: SECRET,
    headers: { value: "FILE", about: "its headers: lines or a JSON object (needed)" },
    body: { value: "FILE", about: "its body, byte for byte; - is standard input (needed)" },
    at: { value: "TIME", about: "judge its time as of then (default now)" },
    tolerance: { value: "S", about: `seconds its time may be off (default ${TOLERANCE_S})` },
  },
  examples: [
    "pmail verify --secret whsec_… --headers headers.txt --body body.json",
    "pmail verify --secret @secret.txt --headers headers.txt --body - --at 2026-10-09T12:00:00Z < body.json",
  ],
  async run(line) {
    const secrets = await secretsOf(line);
    const headers = headersOf(decode(await read(line.need("headers"))));
    const body = await read(line.need("body"));
    const nowS = Math.floor((line.time("at") ?? realNow()) / 1_000);
    const tolerance = line.whole("tolerance", 0, 999_999_999) ?? TOLERANCE_S;
    const judge = (bytes: Uint8Array, seconds: number) =>
      verifySigned(secrets, { header: (name) => headers.get(name), body: bytes }, nowS, seconds);
    const verdict = judge(body, tolerance);
    if (verdict.ok) {
      const { id, timestamp, scheme } = verdict;
      line.answer({ valid: true, id, timestamp, scheme }, `valid: ${id}, signed with ${scheme}`);
      return 0;
    }
    const { fault, message } = verdict, hint = hintOf(verdict, body, judge);
    line.answer(
      { valid: false, fault, message, hint },
      `invalid: ${fault}: ${message}${hint ? `\n${hint}` : ""}`,
    );
    return 1;
  },
};

/** What would make it valid, if that is known: the two mistakes people make with captured requests. */
function hintOf(
  verdict: Verdict & { ok: false },
  body: Uint8Array,
  judge: (body: Uint8Array, tolerance: number) => Verdict,
): string | null {
  if (verdict.fault === "too_old" || verdict.fault === "too_new") {
    return judge(body, Infinity).ok
      ? "Its signature holds; only its time does not. A capture is judged as of its own time with --at."
      : "Its signature does not hold either.";
  }
  if (verdict.fault !== "signature_mismatch") return null;
  const bare = decode(body).replace(/\r?\n$/, "");
  return judge(Buffer.from(bare), Infinity).ok
    ? "It holds without the last newline of the body file, which whatever saved it may have added."
    : null;
}

async function read(path: string): Promise<Uint8Array> {
  try {
    if (path !== "-") return await Deno.readFile(path);
    return new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer());
  } catch (error) {
    throw new Refused("unreadable", `Cannot read ${path}: ${(error as Error).message}.`, "Check the path.");
  }
}

const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

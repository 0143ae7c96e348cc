/** `pmail listen`: a receiver on this machine that verifies what comes, prints it and may hand it on to an application. */
import { Buffer } from "node:buffer";
import { realNow } from "../../lib/edge/ports.ts";
import { DEADLINE_MS, MAX_BODY_BYTES } from "../../lib/limits.ts";
import { verifySigned } from "../../lib/verify.ts";
import { type Command, CommandLineError, type Line } from "./command.ts";
import { SECRET, secretsOf } from "./verify.ts";

/** Headers an application gets with a forwarded request: all that a delivery has of its own. */
const FORWARDED = /^(webhook-.*|content-type|user-agent)$/;
const PORT = 9_000;

export const listenCommand: Command = {
  name: "listen",
  kind: "local",
  summary: "receive deliveries on 127.0.0.1, verify and print them, hand them on",
  options: {
    secret: SECRET,
    port: { value: "PORT", about: `where to listen, 0 for any free one (default ${PORT})` },
    forward: { value: "URL", about: "send what verifies on to this application, and answer as it does" },
    status: { value: "N", about: "what to answer without --forward (default 204)" },
    count: { value: "N", about: "stop after this many requests" },
  },
  examples: [
    "pmail listen --secret whsec_…",
    "pmail listen --secret @secret.txt --forward http://127.0.0.1:3000/hook --json",
    "PM_ALLOWED_TARGETS=127.0.0.1:9000 deno task start   # lets a development service deliver here",
  ],
  async run(line) {
    const secrets = await secretsOf(line);
    const forward = line.text("forward");
    if (forward !== undefined && !/^https?:\/\//.test(URL.parse(forward)?.href ?? "")) {
      throw new CommandLineError("--forward must be an http or https URL");
    }
    const status = line.whole("status", 200, 599) ?? 204;
    let left = line.whole("count", 1, 1_000_000) ?? Infinity;
    const done = Promise.withResolvers<void>();
    const server = Deno.serve({
      hostname: "127.0.0.1",
      port: line.whole("port", 0, 65_535) ?? PORT,
      onListen: ({ port }) => console.error(`listening on http://127.0.0.1:${port}; Ctrl-C ends it`),
    }, async (request) => {
      const answer = await receive(request, secrets, forward, status, line);
      if (--left <= 0) done.resolve();
      return answer;
    });
    Deno.addSignalListener("SIGINT", done.resolve);
    Deno.addSignalListener("SIGTERM", done.resolve);
    await done.promise;
    await server.shutdown();
  },
};

async function receive(
  request: Request,
  secrets: readonly string[],
  forward: string | undefined,
  status: number,
  line: Line,
): Promise<Response> {
  if (request.method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST" } });
  if (Number(request.headers.get("content-length") ?? 0) > MAX_BODY_BYTES) {
    return new Response(null, { status: 413 });
  }
  const body = Buffer.from(await request.arrayBuffer());
  const header = (name: string) => request.headers.get(name);
  const verdict = verifySigned(secrets, { header, body }, Math.floor(realNow() / 1_000));
  const shown = {
    at: new Date(realNow()).toISOString(),
    path: new URL(request.url).pathname,
    id: header("webhook-id"),
    type: typeOf(body),
    bytes: body.length,
    valid: verdict.ok,
    fault: verdict.ok ? null : verdict.fault,
  };
  const answered = !verdict.ok
    ? { status: 400, error: null }
    : forward === undefined
    ? { status, error: null }
    : await handOn(forward, request.headers, body);
  const text = body.toString();
  const what = verdict.ok ? "✓ verified" : `✗ ${verdict.fault}: ${verdict.message}`;
  const next = answered.error ?? `answered ${answered.status}`;
  line.answer(
    { ...shown, answered: answered.status, error: answered.error, body: text },
    `${shown.at} ${shown.id ?? "-"} ${shown.type ?? "-"} ${what}; ${next}\n${text}`,
  );
  // The application's words stay here: its status is all the sender needs.
  return new Response(null, { status: answered.status });
}

async function handOn(url: string, from: Headers, body: Uint8Array<ArrayBuffer>) {
  const headers = new Headers([...from].filter(([name]) => FORWARDED.test(name)));
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const response = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
    await response.body?.cancel();
    return { status: response.status, error: null };
  } catch (error) {
    return { status: 502, error: `cannot forward to ${url}: ${(error as Error).message}` };
  }
}

function typeOf(body: Uint8Array): string | null {
  try {
    const { type } = JSON.parse(new TextDecoder().decode(body));
    return typeof type === "string" ? type : null;
  } catch {
    return null;
  }
}

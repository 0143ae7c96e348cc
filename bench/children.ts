/** Starts the bench's processes, reads their answers, and ends every one of them, also on failure. */
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const running = new Set<Deno.ChildProcess>();

export interface Spawn {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
  uid?: number;
  gid?: number;
}

/** A child with its standard output piped; ended by `stop` or `stopAll` at the latest. */
export function spawn({ command, args, env, cwd, uid, gid }: Spawn): Deno.ChildProcess {
  const child = new Deno.Command(command, {
    args,
    cwd: cwd ?? ROOT,
    env: { DENO_NO_UPDATE_CHECK: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  }).spawn();
  running.add(child);
  void child.status.then(() => running.delete(child));
  return child;
}

/** A file of the project under this Deno, all permissions. */
export const deno = (
  file: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Deno.ChildProcess =>
  spawn({ command: Deno.execPath(), args: ["run", "-A", "--frozen", `${ROOT}${file}`, ...args], env });

/** Resolves with the match as soon as a line matches; the rest of the output is read and dropped. */
export async function lineOf(child: Deno.ChildProcess, wanted: RegExp): Promise<RegExpExecArray> {
  const found = Promise.withResolvers<RegExpExecArray>();
  void (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text = (text + chunk).slice(-4_096);
      const match = wanted.exec(text);
      if (match !== null) found.resolve(match);
    }
    const { code } = await child.status;
    found.reject(new Error(`Cannot go on: a process ended with code ${code} after: ${text}`));
  })().catch(found.reject);
  return await found.promise;
}

/** Runs to the end; the last line of the output is its answer. */
export async function answerOf<T>(child: Deno.ChildProcess): Promise<T> {
  const text = await new Response(child.stdout).text();
  const { code } = await child.status;
  const last = text.trim().split("\n").at(-1) ?? "";
  if (code !== 0 || !last.startsWith("{")) {
    throw new Error(`Cannot go on: a process ended with code ${code} after: ${text.slice(-2_000)}`);
  }
  return JSON.parse(last);
}

/** Ends a child by its own id, at once with SIGKILL or by its own stop; harder after 10 s. */
export async function stop(child: Deno.ChildProcess, signal: Deno.Signal = "SIGTERM"): Promise<void> {
  if (!running.has(child)) return;
  child.kill(signal);
  const timer = setTimeout(() => running.has(child) && child.kill("SIGKILL"), 10_000);
  await child.status;
  clearTimeout(timer);
  await child.stdout.cancel().catch(() => {});
}

export async function stopAll(signal: Deno.Signal = "SIGKILL"): Promise<void> {
  await Promise.all([...running].map((child) => stop(child, signal)));
}

/** The receiver, in its own process: where it listens. */
export async function startReceiver(): Promise<{ origin: string; child: Deno.ChildProcess }> {
  const child = deno("bench/receiver.ts");
  const [, port] = await lineOf(child, /READY (\d+)/);
  return { origin: `http://127.0.0.1:${port}`, child };
}

/**
 * The service and its tools as real processes, started with the very command of their task in deno.json, so that its
 * permissions are tested too. Every process is ended by its id, and nothing outlives its test.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import config from "../../../deno.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const START_DEADLINE_MS = 30_000;
const POLL_MS = 20;

export type Env = Record<string, string>;

/** Polls until `look` gives something; fails with `what` after `deadlineMs`. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  deadlineMs = START_DEADLINE_MS,
): Promise<T> {
  const until = performance.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    assert.ok(performance.now() < until, `not within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Program and arguments of a task, quotes resolved. */
function commandOf(task: keyof typeof config.tasks, args: readonly string[]): [string, string[]] {
  const words = [...config.tasks[task].matchAll(/'([^']*)'|(\S+)/g)].map((word) => word[1] ?? word[2]!);
  assert.equal(words[0], "deno", `the task ${task} starts deno`);
  return [Deno.execPath(), [...words.slice(1), ...args]];
}

export class Process implements AsyncDisposable {
  /** All it has written so far, both streams. */
  output = "";
  readonly stdout: Promise<string>;
  readonly stderr: Promise<string>;
  readonly status: Promise<Deno.CommandStatus>;
  #ended = false;

  constructor(readonly child: Deno.ChildProcess) {
    this.stdout = this.#collect(child.stdout);
    this.stderr = this.#collect(child.stderr);
    this.status = child.status.then((status) => (this.#ended = true, status));
  }

  get ended(): boolean {
    return this.#ended;
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of stream) {
      const part = decoder.decode(bytes, { stream: true });
      text += part;
      this.output += part;
    }
    return text;
  }

  /** Sends a signal and waits for the end. */
  async end(signal: Deno.Signal): Promise<Deno.CommandStatus> {
    if (!this.#ended) this.child.kill(signal);
    const status = await this.status;
    await Promise.all([this.stdout, this.stderr]);
    return status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** Starts a task with an environment of its own: of this process's, only what finds programs and caches. */
export function spawn(task: keyof typeof config.tasks, env: Env, args: readonly string[] = []): Process {
  const [program, words] = commandOf(task, args);
  const inherited: Env = {};
  for (const name of ["PATH", "HOME", "DENO_DIR", "TMPDIR"]) {
    const value = Deno.env.get(name);
    if (value !== undefined) inherited[name] = value;
  }
  const command = new Deno.Command(program, {
    args: words,
    cwd: ROOT,
    clearEnv: true,
    env: { ...inherited, NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  return new Process(command.spawn());
}

/** Runs a task to its end. */
export async function run(task: keyof typeof config.tasks, env: Env, args: readonly string[] = []) {
  await using process = spawn(task, env, args);
  const { code } = await process.status;
  return { code, stdout: await process.stdout, stderr: await process.stderr };
}

/** The service, once `/ready` answers 200. `env` names `PM_PORT`. */
export async function startService(env: Env): Promise<Process> {
  const process = spawn("start", env);
  try {
    await eventually("the service is ready", async () => {
      assert.ok(!process.ended, `the service ended:\n${process.output}`);
      return await statusOf(`http://127.0.0.1:${env.PM_PORT}/ready`) === 200;
    });
  } catch (error) {
    await process.end("SIGKILL");
    throw new Error(`${(error as Error).message}\n${process.output}`);
  }
  return process;
}

/** The status of a GET, or null when nobody answers. */
export async function statusOf(url: string): Promise<number | null> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}

/**
 * A port to start on again and again: outside the range the system hands out by itself, so that nothing, above all no client
 * that keeps trying to connect to it, gets it while the service is down.
 */
export function freePort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** A folder that is gone afterwards, and the environment of a service that keeps its store there. */
export interface Place extends AsyncDisposable {
  folder: string;
  env: Env;
}

export async function makePlace(more: Env = {}): Promise<Place> {
  const folder = await Deno.makeTempDir({ prefix: "pm-e2e-" });
  return {
    folder,
    env: { PM_PORT: String(freePort()), PM_KV_PATH: `${folder}/pm.db`, PM_LOG: "warn", ...more },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** A platform key, made by the `pmail` command. */
export async function platformKey(env: Env): Promise<string> {
  const { code, stdout, stderr } = await run("pmail", env, [
    "keys",
    "create",
    "--level",
    "platform",
    "--json",
  ]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).secret;
}

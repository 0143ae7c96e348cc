/** The whole service in this process, with a receiver of ours and everything it says kept. */
import { createKey } from "../../actors/key_admin.ts";
import { type Config, parseConfig } from "../../lib/edge/config.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { permission } from "../../lib/keys.ts";
import { startServer } from "../../main.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

export interface Said {
  method: string;
  path: string;
  status: number;
  text: string;
  body: Json;
}

export type Service = Awaited<ReturnType<typeof startService>>;

/** @param answer what the receiver does with a path */
export async function startService(answer: (path: string) => Response) {
  const received: { path: string; body: string; headers: Headers }[] = [];
  const receiver = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const path = new URL(request.url).pathname;
    received.push({ path, body: await request.text(), headers: request.headers });
    return answer(path);
  });
  const target = `127.0.0.1:${receiver.addr.port}`;
  const secret = () => realRandom.bytes(32).toBase64();
  const secrets = { PM_MASTER_KEY: secret(), PM_KEY_PEPPER: secret(), PM_HASH_KEY: secret() };
  const config = parseConfig({
    PM_ENV: "test",
    PM_HOST: "127.0.0.1",
    PM_PORT: "0",
    PM_KV_PATH: ":memory:",
    PM_LOG: "debug",
    PM_RETRY_SCALE: "0.0001",
    PM_ALLOWED_TARGETS: target,
    ...secrets,
  }) as Config;
  let stopped = false;
  const lines: string[] = [], said: Said[] = [];
  const server = await startServer(config, { write: (line) => void lines.push(line) });
  const { services } = server;
  const { secret: key } = await createKey(
    { ...services, pepper: services.config.keyPepper, mode: "test" },
    { name: "Operations", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  async function ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Said> {
    const isText = typeof body === "string";
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get("content-type")?.startsWith("application/json");
    const one = {
      method,
      path,
      status: response.status,
      text,
      body: json && text !== "" ? JSON.parse(text) : undefined,
    };
    said.push(one);
    return one;
  }
  return {
    server,
    services,
    lines,
    said,
    received,
    key,
    /** What nobody but the process may know. */
    secrets: Object.values(secrets),
    url: (path: string) => `http://${target}${path}`,
    ask,
    async make(
      method: string,
      path: string,
      body?: unknown,
      headers?: Record<string, string>,
    ): Promise<Json> {
      const one = await ask(method, path, body, headers);
      if (one.status >= 300) throw new Error(`${method} ${path}: ${one.status} ${one.text}`);
      return one.body;
    },
    /** Ends everything; the service may have been stopped already. */
    async end() {
      if (!stopped) await this.stop();
      await receiver.shutdown();
    },
    async stop() {
      stopped = true;
      await server.stop();
    },
  };
}

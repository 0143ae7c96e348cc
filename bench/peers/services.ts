/** Redis and PostgreSQL of the peers' own, on free ports of 127.0.0.1 and in a temporary folder; ended by their pid. */
import { lineOf, spawn, stop } from "../children.ts";
import { sleep } from "../payload.ts";
import type { Installed } from "./install.ts";

export interface Service {
  /** Told to the peer's processes. */
  env: Record<string, string>;
  /** How durable it is and what was set. */
  settings: string;
  stop(): Promise<void>;
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

export async function startRedis(installed: Installed, appendfsync: "everysec" | "always"): Promise<Service> {
  const dir = Deno.makeTempDirSync({ prefix: "pylota-redis-" }), port = String(freePort());
  const set = [
    "--appendonly",
    "yes",
    "--appendfsync",
    appendfsync,
    "--save",
    "",
    "--maxmemory-policy",
    "noeviction",
  ];
  const child = spawn({
    command: installed.redis,
    args: ["--port", port, "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no", ...set],
  });
  await lineOf(child, /Ready to accept connections/);
  return {
    env: { REDIS_PORT: port },
    settings: `redis ${installed.versions.redis}, appendonly yes, appendfsync ${appendfsync}, save off`,
    async stop() {
      await stop(child);
      await Deno.remove(dir, { recursive: true });
    },
  };
}

/** PostgreSQL refuses to run as root: as `postgres` then. */
export async function startPostgres(installed: Installed): Promise<Service> {
  const dir = Deno.makeTempDirSync({ prefix: "pylota-postgres-" }), port = String(freePort());
  const owner = Deno.uid() === 0 ? await postgresUser() : undefined;
  if (owner !== undefined) Deno.chownSync(dir, owner.uid, owner.gid);
  const data = `${dir}/data`;
  const made = await new Deno.Command(`${installed.postgres}/initdb`, {
    args: ["-D", data, "-A", "trust", "-E", "UTF8", "-U", "postgres"],
    cwd: dir,
    ...owner,
    stdout: "null",
  }).output();
  if (!made.success) throw new Error(`Cannot start PostgreSQL: ${new TextDecoder().decode(made.stderr)}`);
  const set = ["shared_buffers=256MB", "max_wal_size=4GB", "fsync=on", "synchronous_commit=on"];
  const child = spawn({
    command: `${installed.postgres}/postgres`,
    args: [
      ...["-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${dir}`],
      ...["-c", "log_min_messages=fatal", ...set.flatMap((setting) => ["-c", setting])],
    ],
    cwd: dir,
    ...owner,
  });
  for (let tries = 0;; tries++) {
    const asked = await new Deno.Command(`${installed.postgres}/pg_isready`, {
      args: ["-h", "127.0.0.1", "-p", port, "-U", "postgres"],
      stdout: "null",
    }).output();
    if (asked.success) break;
    if (tries > 100) throw new Error("Cannot start PostgreSQL: it does not answer");
    await sleep(100);
  }
  return {
    env: { PG_URL: `postgres://postgres@127.0.0.1:${port}/postgres` },
    settings: `postgres ${installed.versions.postgres}, ${set.join(", ")}`,
    async stop() {
      await stop(child, "SIGINT"); // its fast shutdown
      await Deno.remove(dir, { recursive: true });
    },
  };
}

async function postgresUser(): Promise<{ uid: number; gid: number }> {
  const line = (await Deno.readTextFile("/etc/passwd")).split("\n").find((entry) =>
    entry.startsWith("postgres:")
  );
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined || gid === undefined) {
    throw new Error("Cannot start PostgreSQL: there is no user postgres");
  }
  return { uid: Number(uid), gid: Number(gid) };
}

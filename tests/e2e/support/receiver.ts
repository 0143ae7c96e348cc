/** A customer's receiver on 127.0.0.1: verifies every request with the `standardwebhooks` package and keeps what came. */
import { Webhook } from "standardwebhooks";

export interface Arrival {
  /** The path it came to, which names the endpoint. */
  path: string;
  /** `webhook-id`. */
  id: string;
  body: string;
  headers: Record<string, string>;
  /** Why the signature did not verify, or null. */
  error: string | null;
  /** What was answered. */
  status: number;
}

export interface Receiver extends AsyncDisposable {
  /** `127.0.0.1:port`, for `PM_ALLOWED_TARGETS`. */
  readonly target: string;
  readonly arrivals: Arrival[];
  /** Secret of each path. A request to a path without one does not verify. */
  readonly secrets: Map<string, string>;
  url(path: string): string;
  /** Arrivals answered 2xx. */
  accepted(path?: string): Arrival[];
}

/** @param answer the status for an arrival; default 204. */
export function startReceiver(answer: (arrival: Arrival) => number | Promise<number> = () => 204): Receiver {
  const arrivals: Arrival[] = [];
  const secrets = new Map<string, string>();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const path = new URL(request.url).pathname;
      const body = await request.text();
      const headers = Object.fromEntries(request.headers);
      const id = headers["webhook-id"] ?? "";
      const arrival: Arrival = {
        path,
        id,
        body,
        headers,
        error: verify(secrets.get(path), body, headers),
        status: 0,
      };
      arrival.status = await answer(arrival);
      arrivals.push(arrival);
      return new Response(null, { status: arrival.status });
    },
  );
  const target = `127.0.0.1:${server.addr.port}`;
  return {
    target,
    arrivals,
    secrets,
    url: (path) => `http://${target}${path}`,
    accepted: (path) =>
      arrivals.filter((arrival) => arrival.status < 300 && (path === undefined || arrival.path === path)),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function verify(secret: string | undefined, body: string, headers: Record<string, string>): string | null {
  try {
    new Webhook(secret ?? "").verify(body, headers);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A raw HTTP/1.1 receiver that answers exactly the bytes a test says, a manual clock, and a dialler on both. */
import net from "node:net";
import tls from "node:tls";
import { makeDialer } from "../../lib/edge/dialer.ts";
import {
  type Dialer,
  type DialRequest,
  realTimers,
  type TimerId,
  type Timers,
} from "../../lib/edge/ports.ts";

export interface Received {
  head: string;
  body: string;
  /** Which connection it came in on, from 1. */
  connection: number;
  /** The address the socket was accepted on, and the name asked for in the TLS handshake. */
  localAddress: string;
  servername: string | false | undefined;
}

export interface Receiver extends AsyncDisposable {
  port: number;
  requests: Received[];
  connections(): number;
  /** Resolves once `count` requests have arrived. */
  arrived(count: number): Promise<void>;
  /** Resolves once `count` connections have been closed. */
  closed(count: number): Promise<void>;
}

type Respond = (socket: net.Socket, request: Received) => void;

export const reply = (text: string): Respond => (socket) => socket.write(text);
export const OK = "HTTP/1.1 204 No Content\r\n\r\n";

export async function receiver(
  respond: Respond,
  options: {
    host?: string;
    tls?: { key: string; cert: string };
    onConnection?: (socket: net.Socket) => void;
  } = {},
): Promise<Receiver> {
  const requests: Received[] = [];
  const sockets = new Set<net.Socket>();
  let connections = 0;
  let closed = 0;
  const waiting: { until: () => boolean; go: () => void }[] = [];
  const changed = () => waiting.splice(0).forEach((w) => w.until() ? w.go() : waiting.push(w));
  const when = (until: () => boolean) =>
    new Promise<void>((go) => {
      waiting.push({ until, go });
      changed();
    });

  const accept = (socket: net.Socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on("error", () => {}); // clients hang up on purpose here
    socket.on("close", () => {
      sockets.delete(socket);
      closed++;
      changed();
    });
    options.onConnection?.(socket);
    let seen = "";
    socket.on("data", (data: Uint8Array) => {
      seen += String.fromCharCode(...data);
      for (let end; (end = seen.indexOf("\r\n\r\n")) >= 0;) {
        const head = seen.slice(0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (seen.length < end + 4 + length) return;
        const body = seen.slice(end + 4, end + 4 + length);
        seen = seen.slice(end + 4 + length);
        const { localAddress = "", servername } = socket as net.Socket & { servername?: string | false };
        requests.push({
          head,
          body,
          connection,
          localAddress,
          servername,
        });
        respond(socket, requests.at(-1)!);
        changed();
      }
    });
  };
  const server = options.tls ? tls.createServer(options.tls, accept) : net.createServer(accept);
  server.on("tlsClientError", () => {}); // a refused certificate, on purpose
  await new Promise<void>((ready) => server.listen(0, options.host ?? "127.0.0.1", () => ready()));
  return {
    port: (server.address() as net.AddressInfo).port,
    requests,
    connections: () => connections,
    arrived: (count) => when(() => requests.length >= count),
    closed: (count) => when(() => closed >= count),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}

/** Time that moves when the test says so. */
export class ManualTimers implements Timers {
  now = 1_000;
  #next = 1;
  readonly #due = new Map<number, { at: number; run: () => void }>();
  after(ms: number, run: () => void): TimerId {
    const id = this.#next++;
    this.#due.set(id, { at: this.now + ms, run });
    return id as unknown as TimerId;
  }
  cancel(id: TimerId): void {
    this.#due.delete(id as unknown as number);
  }
  get pending(): number {
    return this.#due.size;
  }
  advance(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = [...this.#due].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!next) break;
      this.#due.delete(next[0]);
      this.now = Math.max(this.now, next[1].at);
      next[1].run();
    }
    this.now = end;
  }
}

export function testDialer(
  options: {
    timers?: ManualTimers;
    permits?: (url: URL, address: string) => boolean;
    ca?: string;
    maxPools?: number;
  } = {},
): Dialer & AsyncDisposable {
  const { timers, permits = () => true, ...rest } = options;
  const dialer = makeDialer({
    timers: timers ?? realTimers,
    clock: timers ? () => timers.now : () => performance.now(),
    permits,
    ...rest,
  });
  return { ...dialer, [Symbol.asyncDispose]: () => dialer.close() };
}

/** A POST to a receiver on this machine under a public name: the name is in the URL, the address beside it. */
export function request(
  port: number,
  more: Partial<DialRequest> & { path?: string; scheme?: string } = {},
): DialRequest {
  const { path = "/hook?a=1", scheme = "http", ...rest } = more;
  return {
    url: new URL(`${scheme}://hooks.example.com:${port}${path}`),
    address: "127.0.0.1",
    headers: { "content-type": "application/json", "webhook-id": "evt_1" },
    body: new TextEncoder().encode('{"a":1}'),
    timeoutMs: 15_000,
    ...rest,
  };
}

export const cert = (name: string): string =>
  Deno.readTextFileSync(new URL(`./certs/${name}.pem`, import.meta.url));

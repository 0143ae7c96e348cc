/** The outermost edge, scripted: what DNS answers and what receivers do. Everything between it and the system is real. */
import type { Addresses, Dialer, DialRequest, DialResult, Resolver, Timers } from "../../lib/edge/ports.ts";

/** A request as a receiver saw it. */
export interface Received {
  url: string;
  address: string;
  id: string;
  timestamp: number;
  signature: string;
  headers: Record<string, string>;
  body: string;
  at: number;
  /** Name of the isolate that sent it. */
  from: string;
}

/** What a receiver does: a status, a result, or either later. `hang`: nothing until the deadline. */
export type Answer = number | DialResult | "hang" | Promise<number | DialResult>;
export type Script = (request: Received, nth: number) => Answer;

export class Network {
  readonly received: Received[] = [];
  /** Look-ups under way. */
  lookUps = 0;
  /** Dials under way. */
  open = 0;
  maxOpen = 0;
  #scripts = new Map<string, Script>();
  #names = new Map<string, () => Addresses | Promise<Addresses>>();
  #counts = new Map<string, number>();
  #openAt = new Map<string, number>();
  readonly maxOpenAt = new Map<string, number>();

  constructor(readonly now: () => number) {}

  /** What the receiver at a URL does from now on; 200 without a script. */
  at(url: string, script: Script | Answer): void {
    this.#scripts.set(url, typeof script === "function" ? script : () => script);
  }

  /** What DNS says of a host from now on: addresses, at once or in time, or a throw. */
  name(host: string, answer: () => Addresses | Promise<Addresses>): void {
    this.#names.set(host, answer);
  }

  /** What arrived at a URL, in order. */
  to(url: string): Received[] {
    return this.received.filter((request) => request.url === url);
  }

  get resolver(): Resolver {
    const answer = (host: string) => this.#names.get(host)?.() ?? { a: ["93.184.216.34"], aaaa: [] };
    return {
      resolve: async (host) => {
        this.lookUps++;
        try {
          return await answer(host);
        } finally {
          this.lookUps--;
        }
      },
    };
  }

  dialer(from: string, timers: Timers): Dialer {
    return { dial: (request) => this.#dial(request, from, timers), close: () => Promise.resolve() };
  }

  async #dial(request: DialRequest, from: string, timers: Timers): Promise<DialResult> {
    const url = request.url.href;
    const received: Received = {
      url,
      address: request.address,
      id: request.headers["webhook-id"]!,
      timestamp: Number(request.headers["webhook-timestamp"]),
      signature: request.headers["webhook-signature"]!,
      headers: request.headers,
      body: new TextDecoder().decode(request.body),
      at: this.now(),
      from,
    };
    this.received.push(received);
    const nth = (this.#counts.get(url) ?? 0) + 1;
    this.#counts.set(url, nth);
    this.#enter(url, 1);
    const deadline = new Promise<DialResult>((resolve) => {
      const answer = this.#scripts.get(url)?.(received, nth) ?? 200;
      if (answer === "hang") {
        const late: DialResult = { kind: "failed", error: "timeout", detail: "deadline" };
        timers.after(request.timeoutMs, () => resolve(late));
      } else Promise.resolve(answer).then((value) => resolve(asResult(value)));
    });
    const result = await deadline;
    this.#enter(url, -1);
    return result;
  }

  #enter(url: string, by: number): void {
    this.open += by;
    this.maxOpen = Math.max(this.maxOpen, this.open);
    const here = (this.#openAt.get(url) ?? 0) + by;
    this.#openAt.set(url, here);
    this.maxOpenAt.set(url, Math.max(this.maxOpenAt.get(url) ?? 0, here));
  }
}

const asResult = (answer: number | DialResult): DialResult =>
  typeof answer === "number" ? response(answer) : answer;

export const response = (status: number, retryAfter: string | null = null): DialResult => ({
  kind: "response",
  status,
  retryAfter,
  body: new Uint8Array(),
});

export const refused: DialResult = { kind: "failed", error: "connect", detail: "ECONNREFUSED" };

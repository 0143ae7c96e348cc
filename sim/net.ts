/**
 * The simulated network: DNS and receivers, each with a mood drawn from the seed. It records every request it receives and
 * every answer it gives: what the model holds the log against (D4, O3, S1).
 */
import type { AttemptError } from "../lib/keys.ts";
import type { Addresses, Dialer, DialRequest, DialResult, Resolver, Timers } from "../lib/edge/ports.ts";
import { DnsFailure } from "../lib/edge/resolver.ts";
import { type Act, CHARGED, type Mood, MOODS } from "./acts.ts";
import type { Rng } from "./rng.ts";
import type { Tally } from "./tally.ts";

export interface Receipt {
  host: string;
  webhookId: string;
  timestamp: number;
  signature: string;
  body: Uint8Array;
}

export interface NetDeps {
  timers: Timers;
  rng: Rng;
  tally: Tally;
  /** A request arrived, whatever becomes of it. */
  received(receipt: Receipt): void;
  /** An answer was given that the endpoint may be charged with. */
  answered(host: string, error: AttemptError | "succeeded", webhookId: string): void;
  /** An answer of 429 or 503 asks for a pause, s; 0: it does not. */
  asked(host: string, webhookId: string, seconds: number): void;
  /** Broke a rule of the edge. */
  violated(rule: string, what: string): void;
}

const OKS = [200, 201, 202, 204];
const REDIRECTS = [301, 302, 304, 307, 308];
const REFUSALS = [400, 401, 403, 404, 409, 413, 422];
const BREAKS = [500, 502, 504, 599];

export class SimNet {
  #moods = new Map<string, Mood>();
  /** What the present attempt at a host comes to: drawn at its look-up, when there is one. */
  #planned = new Map<string, Act[]>();
  /** Public answers given for a host: what a dial may go to (D3). */
  #answers = new Map<string, Set<string>>();
  #together: (() => void)[] = [];
  #requests = 0;

  constructor(readonly d: NetDeps) {}

  mood(host: string, mood: Mood): void {
    this.#moods.set(host, mood);
    this.#planned.delete(host);
  }

  readonly resolver: Resolver = {
    resolve: (host) => {
      const act = this.#draw(host);
      if (act === "no_name") return this.#later(0, 40, () => (this.#charge(host, act), { a: [], aaaa: [] }));
      if (act === "name_fault") {
        return this.#later(0, 40, () => {
          this.#charge(host, act);
          throw new DnsFailure("name", "SERVFAIL");
        });
      }
      if (act === "our_dns") {
        return this.#later(0, 40, () => {
          throw new DnsFailure("ours", "no resolver answers");
        });
      }
      if (act === "dns_hangs") {
        this.#charge(host, act);
        return new Promise(() => {});
      }
      if (act === "rebound") {
        const bad = this.d.rng.pick([
          "10.0.0.7",
          "127.0.0.1",
          "169.254.169.254",
          "192.168.1.1",
          "100.64.3.2",
        ]);
        const good = this.d.rng.chance(0.5) ? [this.#address(host)] : [];
        return this.#later(0, 40, () => (this.#charge(host, act), { a: [...good, bad], aaaa: [] }));
      }
      const planned = this.#planned.get(host) ?? [];
      planned.push(act);
      this.#planned.set(host, planned);
      const answer: Addresses = { a: [this.#address(host)], aaaa: [] };
      return this.#later(0, 40, () => answer);
    },
  };

  readonly dialer: Dialer = {
    dial: (request) => this.#dial(request),
    close: () => Promise.resolve(),
  };

  #dial(request: DialRequest): Promise<DialResult> {
    const { rng } = this.d;
    const host = request.url.hostname;
    if (request.timeoutMs <= 0) return Promise.resolve(failed("timeout", "deadline"));
    const act = this.#planned.get(host)?.shift() ?? this.#draw(host);
    if (!this.#answers.get(host)?.has(request.address)) {
      this.d.violated("D3", `${host} at ${request.address}`);
    }
    if (act === "our_socket") return this.#later(0, 5, () => failed("connect", "EMFILE"));
    if (act === "tls" || act === "connect") {
      const code = act === "tls" ? "CERT_HAS_EXPIRED" : "ECONNREFUSED";
      return this.#later(1, 30, () => (this.#charge(host, act), failed(act, code)));
    }
    return new Promise((settle) => {
      this.d.timers.after(rng.between(1, 20), () => {
        this.#receive(host, request);
        void this.#answer(host, act, request).then(settle);
      });
    });
  }

  #receive(host: string, { headers, body }: DialRequest): void {
    this.#requests++;
    this.d.received({
      host,
      webhookId: headers["webhook-id"] ?? "",
      timestamp: Number(headers["webhook-timestamp"]),
      signature: headers["webhook-signature"] ?? "",
      body,
    });
  }

  #answer(host: string, act: Act, request: DialRequest): Promise<DialResult> {
    const { rng } = this.d, { timeoutMs } = request;
    const respond = (act: Act, status: number, retryAfter: string | null = null): DialResult => {
      if (status < 300) this.d.answered(host, "succeeded", request.headers["webhook-id"]!);
      else this.#charge(host, act);
      if (status === 429 || status === 503) {
        this.d.asked(host, request.headers["webhook-id"]!, Number(retryAfter ?? 0));
      }
      return { kind: "response", status, retryAfter, body: new Uint8Array(0) };
    };
    switch (act) {
      case "slow_ok":
        return this.#later(
          100,
          Math.min(rng.pick([1_500, 3_500, 13_000]), timeoutMs - 1),
          () => respond(act, rng.pick(OKS)),
        );
      case "redirect":
        return this.#later(1, 60, () => respond(act, rng.pick(REDIRECTS)));
      case "gone":
        return this.#later(1, 60, () => respond(act, 410));
      case "refused":
        return this.#later(1, 60, () => respond(act, rng.pick(REFUSALS)));
      case "throttled":
        return this.#later(1, 60, () => respond(act, 429, String(rng.between(1, 600))));
      case "broken":
        return this.#later(1, 60, () => respond(act, rng.pick(BREAKS)));
      case "unavailable":
        return this.#later(1, 60, () => respond(act, 503, rng.chance(0.5) ? "120" : null));
      case "timeout":
        return this.#later(
          timeoutMs,
          timeoutMs,
          () => (this.#charge(host, act), failed("timeout", "deadline")),
        );
      case "reset_after":
        return this.#later(1, 500, () => (this.#charge(host, act), failed("connect", "ECONNRESET")));
      default: {
        const ok = () => respond("ok", rng.pick(OKS));
        return rng.chance(0.6) ? this.#withOthers(ok) : this.#later(1, 60, ok);
      }
    }
  }

  #charge(host: string, act: Act): void {
    const error = CHARGED[act];
    if (error !== undefined) this.d.answered(host, error, "");
  }

  #draw(host: string): Act {
    const mood = this.#moods.get(host) ?? MOODS.healthy;
    const act = this.d.rng.weighted(mood as Record<Act, number>);
    this.d.tally.count(`net_${act}`);
    return act;
  }

  #address(host: string): string {
    const address = `93.184.${this.d.rng.int(4)}.${this.d.rng.between(1, 250)}`;
    const known = this.#answers.get(host) ?? new Set();
    this.#answers.set(host, known.add(address));
    return address;
  }

  /** Answers that come at one moment, as from receivers that work in batches: what is recorded together. */
  #withOthers<T>(run: () => T): Promise<T> {
    return new Promise((resolve) => {
      if (this.#together.push(() => resolve(run())) > 1) return;
      this.d.timers.after(this.d.rng.between(20, 120), () => {
        for (const answer of this.#together.splice(0)) answer();
      });
    });
  }

  #later<T>(low: number, high: number, run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.d.timers.after(this.d.rng.between(low, Math.max(low, high)), () => {
        try {
          resolve(run());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  get requests(): number {
    return this.#requests;
  }
}

const failed = (error: "timeout" | "tls" | "connect", detail: string): DialResult => ({
  kind: "failed",
  error,
  detail,
});

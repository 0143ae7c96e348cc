/**
 * The delivery client: one POST to one judged address (DESIGN "Outbound HTTP", reference §6 request rules). In: a
 * `DialRequest`; out: a `DialResult`, never a rejection. Keeps D3: the socket goes to the address it was given.
 *
 * - Sent once. Nothing here sends a request twice: undici has no retry of its own and a non-idempotent request that
 *   loses its connection fails. A pooled connection the far side closes is noticed before the write if the close has
 *   arrived by then (undici yields to the poll phase first); in the round trip that remains the attempt fails as `connect`,
 *   because nobody can know whether the receiver got the event, and the retry schedule sends it again. We close idle
 *   connections after 4 s, earlier if the answer's `Keep-Alive` says so, so that it is mostly we who close first.
 * - The status line decides. The body is kept up to 4 KB for people; if it drips, breaks off or runs on, the status stands
 *   and the connection is dropped.
 * - The deadline is ours: undici does not notice an abort before it has connected.
 */
import type { Client, Dispatcher } from "undici";
import { MAX_RESPONSE_BYTES } from "../limits.ts";
import { failure, fromError } from "./dial_result.ts";
import { type Deadlined, Deadlines } from "./deadlines.ts";
import { type Lane, partsOf, type PoolOptions, Pools } from "./pools.ts";
import type { Dialer, DialRequest, DialResult, Timers } from "./ports.ts";

export interface DialerOptions extends PoolOptions {
  timers: Timers;
}

/** The real `Dialer`. `close()` ends what is in flight as `shutdown`, which is charged to nobody (D4). */
export function makeDialer(options: DialerOptions): Dialer {
  const pools = new Pools(options);
  const deadlines = new Deadlines(options.timers, options.clock);
  let closed = false;
  return {
    dial(request) {
      if (closed) return Promise.resolve(failure("connect", "shutdown"));
      if (request.timeoutMs <= 0) return Promise.resolve(failure("timeout", "deadline"));
      const now = options.clock();
      const lane = pools.get(request.url, request.address, now);
      if (!lane) return Promise.resolve(failure("ssrf_blocked", "ssrf_blocked"));
      return new Promise((settle) => {
        const attempt = new Attempt(settle, deadlines, now + request.timeoutMs, lane);
        deadlines.add(attempt);
        attempt.client.dispatch(dispatchOptions(request), attempt);
      });
    },
    async close() {
      closed = true;
      for (const open of deadlines.open) (open as Attempt).end(failure("connect", "shutdown"));
      deadlines.close();
      await pools.destroy();
    },
  };
}

const dispatchOptions = ({ url, headers, body }: DialRequest): Dispatcher.DispatchOptions => ({
  method: "POST",
  path: partsOf(url).path,
  headers,
  body,
  idempotent: false,
});

/**
 * What undici tells about one request, in its raw handler form: the newer one parses every header and wraps every call,
 * and all we want is the status and one header of two statuses.
 */
class Attempt implements Deadlined, Dispatcher.DispatchHandler {
  readonly client: Client;
  #settle: ((result: DialResult) => void) | null;
  #status = 0;
  #retryAfter: string | null = null;
  #body: Uint8Array = NOTHING;

  constructor(
    settle: (result: DialResult) => void,
    readonly deadlines: Deadlines,
    readonly deadline: number,
    readonly lane: Lane,
  ) {
    this.#settle = settle;
    this.client = lane.take();
  }

  /** The connection is there and the request is about to be written: unless it is too late, then nothing is sent. */
  onConnect(abort: (error?: Error) => void): void {
    if (this.#settle === null) abort();
  }

  onHeaders(status: number, headers: Uint8Array[]): boolean {
    if (status < 200) return true; // 103 and the like: the answer is still to come
    this.#status = status;
    if (status === 429 || status === 503) this.#retryAfter = header(headers, "retry-after");
    return true;
  }

  onData(chunk: Uint8Array): boolean {
    const room = MAX_RESPONSE_BYTES - this.#body.length;
    if (room > 0) this.#body = append(this.#body, chunk.subarray(0, room));
    if (chunk.length <= room) return true;
    this.end(this.#answer());
    return false; // and no more is parsed: `end` has had the connection destroyed
  }

  onComplete(): void {
    this.end(this.#answer(), true);
  }

  /** Also called after the end, by our own abort and by late errors of the socket. */
  onError(error: unknown): void {
    this.end(this.#status > 0 ? this.#answer() : fromError(error));
  }

  expire(): void {
    this.end(this.#status > 0 ? this.#answer() : failure("timeout", "deadline"));
  }

  /** Settles once. Unless the answer is complete (`clean`) the connection goes with it, also one not yet made. */
  end(result: DialResult, clean = false): void {
    const settle = this.#settle;
    if (settle === null) return;
    this.#settle = null;
    this.deadlines.delete(this);
    this.lane.release(this.client, clean);
    settle(result);
  }

  #answer(): DialResult {
    return { kind: "response", status: this.#status, retryAfter: this.#retryAfter, body: this.#body };
  }
}

const NOTHING = new Uint8Array(0);
const latin1 = new TextDecoder("latin1");

/** Copies: the chunk is a view of a buffer that undici uses again. */
function append(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const joined = new Uint8Array(head.length + tail.length);
  joined.set(head);
  joined.set(tail, head.length);
  return joined;
}

/** The first header of that name, in any case. Header bytes need not be ASCII. */
function header(raw: Uint8Array[], name: string): string | null {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.length === name.length && latin1.decode(raw[i]!).toLowerCase() === name) {
      return latin1.decode(raw[i + 1]!);
    }
  }
  return null;
}

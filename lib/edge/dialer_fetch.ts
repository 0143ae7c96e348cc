/**
 * The fallback `Dialer` (`PM_HTTP_TRANSPORT=fetch`) for platforms that refuse raw sockets. The same results, with two
 * weaknesses the `/health` page must admit: the platform resolves the name again, so the socket is not pinned to the judged
 * address (D3 holds only as far as DNS does not change in between), and a reset pooled connection may send a POST twice.
 */
import { MAX_RESPONSE_BYTES } from "../limits.ts";
import { failure, fromError } from "./dial_result.ts";
import type { Dialer, DialRequest, DialResult, Timers } from "./ports.ts";

export interface FetchDialerOptions {
  fetch: typeof globalThis.fetch;
  timers: Timers;
  permits: (url: URL, address: string) => boolean;
}

export function makeFetchDialer(options: FetchDialerOptions): Dialer {
  const open = new Set<AbortController>();
  let closed = false;
  return {
    async dial(request) {
      if (closed) return failure("connect", "shutdown");
      if (request.timeoutMs <= 0) return failure("timeout", "deadline");
      if (!options.permits(request.url, request.address)) return failure("ssrf_blocked", "ssrf_blocked");
      const stop = new AbortController();
      open.add(stop);
      const timer = options.timers.after(request.timeoutMs, () => stop.abort());
      try {
        return await post(request, options.fetch, stop.signal);
      } catch (error) {
        if (closed) return failure("connect", "shutdown");
        return stop.signal.aborted ? failure("timeout", "deadline") : fromFetchError(error);
      } finally {
        options.timers.cancel(timer);
        open.delete(stop);
      }
    },
    close() {
      closed = true;
      for (const stop of open) stop.abort();
      return Promise.resolve();
    },
  };
}

async function post(request: DialRequest, fetch: typeof globalThis.fetch, signal: AbortSignal) {
  const response = await fetch(request.url, {
    method: "POST",
    headers: request.headers,
    body: request.body as Uint8Array<ArrayBuffer>,
    redirect: "manual",
    credentials: "omit",
    signal,
  });
  const { status, headers } = response;
  const body = await readCapped(response.body);
  return { kind: "response", status, retryAfter: headers.get("retry-after"), body } satisfies DialResult;
}

/** At most 4 KB. Once the status is known a body that breaks off or outlasts the deadline changes nothing. */
async function readCapped(stream: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const kept = new Uint8Array(MAX_RESPONSE_BYTES);
  let size = 0;
  if (!stream) return kept.subarray(0, 0);
  const reader = stream.getReader();
  try {
    while (size < kept.length) {
      const { done, value } = await reader.read();
      if (done) break;
      const part = value.subarray(0, kept.length - size);
      kept.set(part, size);
      size += part.length;
    }
  } catch {
    // What was read is what there is.
  }
  await reader.cancel().catch(() => {}); // of an errored stream: nothing left to cancel
  return kept.slice(0, size);
}

/** `fetch` has no codes: the message of its cause alone tells TLS from the rest. The text goes no further than here. */
function fromFetchError(error: unknown): DialResult {
  if (!(error instanceof TypeError)) return fromError(error);
  const text = `${error.message} ${error.cause instanceof Error ? error.cause.message : ""}`;
  return /certificate|\bTLS\b|\bSSL\b|handshake/i.test(text)
    ? failure("tls", "fetch")
    : failure("connect", "fetch");
}

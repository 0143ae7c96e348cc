/**
 * The real `Resolver`: A and AAAA of a name, asked anew every time (reference §6: no cache of answers). What goes wrong is
 * sorted by whose fault it is (D4): the name's own servers (`name`: charged to the endpoint as `dns`), or our resolver
 * being out of reach (`ours`: charged to nobody).
 */
import { DNS_PROBE_MS, DNS_TIMEOUT_MS } from "../limits.ts";
import type { Addresses, Resolver, Timers } from "./ports.ts";

/** Why a look-up failed. */
export class DnsFailure extends Error {
  constructor(readonly fault: "name" | "ours", message: string) {
    super(message);
  }
}

export interface ResolverOptions {
  resolveDns: typeof Deno.resolveDns;
  timers: Timers;
  /** Absent: the system's resolvers. */
  nameServer?: { ipAddr: string; port?: number };
}

type Query = (name: string, type: "A" | "AAAA" | "NS", ms: number) => Promise<string[]>;

/**
 * The platform says NotFound when a resolver answers without records, whatever its code: no such name, no such records, or
 * SERVFAIL for that name. All of them are two empty lists, which the guard refuses. What never answers throws or hangs:
 * then the resolver itself is asked for the root's servers, and any answer at all puts the fault on the name.
 */
export function makeResolver(options: ResolverOptions): Resolver {
  const query = makeQuery(options);
  let probing: Promise<boolean> | null = null;
  /** One question for all look-ups that fail together. */
  const resolverAnswers = () =>
    probing ??= query(".", "NS", DNS_PROBE_MS).then(() => true, () => false).finally(() => probing = null);

  return {
    async resolve(host): Promise<Addresses> {
      // Rooted, so that no search domain of this machine is tried in its place.
      const name = host.endsWith(".") ? host : host + ".";
      const both = [query(name, "A", DNS_TIMEOUT_MS), query(name, "AAAA", DNS_TIMEOUT_MS)] as const;
      try {
        const [a, aaaa] = await Promise.all(both);
        return { a, aaaa };
      } catch (error) {
        await Promise.allSettled(both);
        if (error instanceof Deno.errors.NotCapable) throw new DnsFailure("ours", "no permission for DNS");
        const fault = await resolverAnswers() ? "name" : "ours";
        throw new DnsFailure(
          fault,
          fault === "name" ? "the name's servers do not answer" : "no resolver answers",
        );
      }
    },
  };
}

function makeQuery({ resolveDns, timers, nameServer }: ResolverOptions): Query {
  return async (name, type, ms) => {
    const stop = new AbortController();
    const timer = timers.after(ms, () => stop.abort());
    try {
      const answer = await resolveDns(name, type as "A", {
        signal: stop.signal,
        ...(nameServer ? { nameServer } : {}),
      });
      return [...new Set(answer)];
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    } finally {
      timers.cancel(timer);
    }
  };
}

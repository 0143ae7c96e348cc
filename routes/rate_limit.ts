/**
 * Token buckets in memory (reference §2): requests a minute per key and per tenant, failed authentications per client
 * address. The maps are bounded, and an address is only ever a map key: it is never logged or labelled.
 */
import { ApiError } from "../lib/errors.ts";
import {
  FAILED_AUTH_PER_MINUTE,
  MINUTE_MS,
  RATE_PER_MINUTE_KEY,
  RATE_PER_MINUTE_TENANT,
} from "../lib/limits.ts";

const MAX_BUCKETS = 20_000;

export type BucketName = "key" | "tenant" | "failed_auth";

const PER_MINUTE: Record<BucketName, number> = {
  key: RATE_PER_MINUTE_KEY,
  tenant: RATE_PER_MINUTE_TENANT,
  failed_auth: FAILED_AUTH_PER_MINUTE,
};

/** What is left of a bucket after a request, for the `RateLimit-*` headers. */
export interface Left {
  limit: number;
  remaining: number;
}

export interface RateLimiter {
  /** Takes one token. Throws `rate_limited` (429) with `Retry-After` when there is none. */
  take(bucket: BucketName, id: string): Left;
}

/** @param counted called with the bucket's name whenever a request is refused. */
export function makeRateLimiter(now: () => number, counted: (bucket: BucketName) => void): RateLimiter {
  const maps: Record<BucketName, Map<string, { tokens: number; at: number }>> = {
    key: new Map(),
    tenant: new Map(),
    failed_auth: new Map(),
  };

  function bucketOf(name: BucketName, id: string) {
    const map = maps[name], limit = PER_MINUTE[name], at = now();
    let bucket = map.get(id);
    if (bucket === undefined) {
      // The one unused longest goes: it has refilled most.
      if (map.size >= MAX_BUCKETS) map.delete(map.keys().next().value!);
      bucket = { tokens: limit, at };
    } else {
      map.delete(id); // set again below, so that the map's order is the order of use
      const refill = Math.max(0, at - bucket.at) * limit / MINUTE_MS;
      bucket.tokens = Math.min(limit, bucket.tokens + refill);
      bucket.at = at;
    }
    map.set(id, bucket);
    return bucket;
  }

  function refuse(name: BucketName, tokens: number): never {
    counted(name);
    const limit = PER_MINUTE[name];
    const retryS = Math.max(1, Math.ceil((1 - tokens) * MINUTE_MS / limit / 1000));
    const what = name === "failed_auth" ? "failed authentications from here" : `requests of this ${name}`;
    throw new ApiError(
      "rate_limited",
      `Cannot answer now: over ${limit} ${what} a minute.`,
      `Send again in ${retryS} s.`,
      { bucket: name, limit },
      { "retry-after": String(retryS), "ratelimit-limit": String(limit), "ratelimit-remaining": "0" },
    );
  }

  return {
    take(name, id) {
      const bucket = bucketOf(name, id);
      if (bucket.tokens < 1) refuse(name, bucket.tokens);
      bucket.tokens -= 1;
      return { limit: PER_MINUTE[name], remaining: Math.floor(bucket.tokens) };
    },
  };
}

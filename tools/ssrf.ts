/**
 * `deno run --allow-read tools/ssrf.ts FILE`: judges every row of a file of URL cases with the guard that deliveries go
 * through, the row's addresses standing for the DNS answer. Prints each mismatch and a count; exits 1 on any, 2 on bad input.
 *
 * The file is tab-separated with a header line: `url` (JSON-escaped without its quotes), `resolved_addresses` (comma-separated,
 * `-` for none), `expected` (`allow` or `refuse`), `reason`. Lines that start with `#` are comments.
 */
import { makeGuardedHttp, permits } from "../lib/edge/http.ts";
import { type Addresses, type Dialer, realNow, realTimers } from "../lib/edge/ports.ts";
import type { UrlRules } from "../lib/ssrf/url.ts";

export interface Case {
  line: number;
  url: string;
  addresses: string[];
  expected: "allow" | "refuse";
  reason: string;
}

/** The cases of a file. Throws on a line that is none, naming it. */
export function parseCases(text: string): Case[] {
  const cases: Case[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "" || line.startsWith("#") || line.startsWith("url\tresolved_addresses\t")) continue;
    const [url, addresses, expected, reason] = line.replace(/\r$/, "").split("\t");
    if (url === undefined || addresses === undefined || (expected !== "allow" && expected !== "refuse")) {
      throw new Error(`line ${index + 1} is not a case: it needs url, addresses, allow or refuse, reason`);
    }
    cases.push({
      line: index + 1,
      url: JSON.parse(`"${url}"`) as string,
      addresses: addresses === "-" ? [] : addresses.split(",").map((address) => address.trim()),
      expected,
      reason: reason ?? "",
    });
  }
  return cases;
}

const RULES: UrlRules = {
  apiHost: null,
  consoleHost: null,
  platformDomain: null,
  allowedTargets: new Set(),
};

/** What the guard makes of one case: `allow` exactly when an attempt reaches the dialler, else the outcome it got instead. */
export async function judgeCase(
  { url, addresses }: Pick<Case, "url" | "addresses">,
  rules: UrlRules = RULES,
): Promise<{ verdict: "allow" | "refuse"; because: string }> {
  const mayDial = permits(rules);
  let reached = false;
  const dialer: Dialer = {
    dial(request) {
      reached = mayDial(request.url, request.address);
      return Promise.resolve({ kind: "response", status: 204, retryAfter: null, body: new Uint8Array(0) });
    },
    close: () => Promise.resolve(),
  };
  const answer: Addresses = {
    a: addresses.filter((address) => !address.includes(":")),
    aaaa: addresses.filter((address) => address.includes(":")),
  };
  const resolver = { resolve: () => Promise.resolve(answer) };
  const http = makeGuardedHttp({ rules, dialer, resolver, timers: realTimers, now: realNow });
  const { outcome } = await http.send({ url, headers: {}, body: new Uint8Array(0) });
  const because = outcome.kind === "failed" ? outcome.error : outcome.kind;
  return { verdict: reached ? "allow" : "refuse", because };
}

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main([file]: string[]): Promise<number> {
  if (file === undefined) {
    console.error("Cannot judge: no file given. Run: deno run --allow-read tools/ssrf.ts FILE");
    return 2;
  }
  let cases: Case[];
  try {
    cases = parseCases(await Deno.readTextFile(file));
  } catch (error) {
    console.error(`Cannot judge ${file}: ${error instanceof Error ? error.message : error}`);
    return 2;
  }
  let mismatches = 0;
  for (const one of cases) {
    const { verdict, because } = await judgeCase(one);
    if (verdict === one.expected) continue;
    mismatches++;
    const shown = JSON.stringify(one.url).slice(0, 120);
    console.log(
      `line ${one.line}: ${shown} expected ${one.expected}, got ${verdict} (${because}): ${one.reason}`,
    );
  }
  console.log(`${cases.length} cases, ${mismatches} mismatches`);
  return mismatches === 0 ? 0 : 1;
}

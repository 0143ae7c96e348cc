/** The doctor on endpoints: do their sealed values open, and do their receivers answer the door, under the guard and without a POST. */
import { SEALED_COLUMNS, secretAad } from "../../../actors/secrets.ts";
import type { Config } from "../../../lib/edge/config.ts";
import { makeResolver } from "../../../lib/edge/resolver.ts";
import { realTimers } from "../../../lib/edge/ports.ts";
import { type Sealer, SealError } from "../../../lib/edge/seal.ts";
import { type EndpointRow, keys } from "../../../lib/keys.ts";
import { CONNECT_TIMEOUT_MS } from "../../../lib/limits.ts";
import { judgeAnswers } from "../../../lib/ssrf/address.ts";
import { judgeUrl, literalOf } from "../../../lib/ssrf/url.ts";
import { failed, type Finding, ok, warning } from "./finding.ts";

/** Doors knocked at at once. */
const AT_ONCE = 8;
const ROTATE = "Run it to its end: pmail secrets rotate-master.";

/** Endpoints that are not deleted. */
export async function liveEndpoints(kv: Deno.Kv): Promise<EndpointRow[]> {
  const rows: EndpointRow[] = [];
  for await (const { value } of kv.list<EndpointRow>({ prefix: keys.endpoints() })) {
    if (value.deleted_at === null) rows.push(value);
  }
  return rows;
}

/** @param rotating PM_MASTER_KEY_NEXT is set. */
export async function checkSeals(
  rows: readonly EndpointRow[],
  sealer: Sealer,
  rotating: boolean,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  let values = 0, old = 0;
  for (const row of rows) {
    for (const column of SEALED_COLUMNS) {
      const sealed = row[column];
      if (typeof sealed !== "string") continue;
      values++;
      if (!sealer.isCurrent(sealed)) old++;
      try {
        await sealer.open(sealed, secretAad(column, row.id));
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        findings.push(failed(
          "sealed values",
          `${column} of ${row.id} does not open: ${error.code}`,
          "Set PM_MASTER_KEY to the key it was sealed under, or give the endpoint a new secret: " +
            "pmail webhooks rotate ID --overlap-hours 0.",
        ));
      }
    }
  }
  if (findings.length === 0) findings.push(ok("sealed values", `${values} open`));
  if (rotating && old > 0) {
    findings.push(warning("master key", `${old} values are still under the old one`, ROTATE));
  } else if (rotating) {
    const mend = "Give PM_MASTER_KEY its value, unset PM_MASTER_KEY_NEXT and restart the services.";
    findings.push(warning("master key", "everything is sealed under PM_MASTER_KEY_NEXT", mend));
  }
  return findings;
}

/** The resolver answers a question that needs no name of ours. */
export async function checkDns(rows: readonly EndpointRow[], config: Config): Promise<Finding> {
  const needed = rows.some((row) => {
    const verdict = judgeUrl(row.url, config);
    return row.enabled && verdict.ok && !verdict.allowed;
  });
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  try {
    const start = performance.now();
    await Deno.resolveDns(".", "NS", { signal }).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error; // an answer without records is an answer
    });
    return ok("DNS", `a resolver answers after ${Math.round(performance.now() - start)} ms`);
  } catch {
    const mend =
      "Check /etc/resolv.conf and that UDP and TCP port 53 get out. No attempt is charged meanwhile.";
    return (needed ? failed : warning)("DNS", "no resolver answers", mend);
  }
}

/** One finding for each enabled endpoint, and one for each that the system disabled. */
export async function checkReceivers(rows: readonly EndpointRow[], config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  const waiting = [...rows];
  const worker = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      if (row.enabled) findings.push(await knock(row, config));
      else if (row.disabled_reason !== "manual") {
        const mend =
          "When its receiver is well again, enable it (PATCH enabled: true) and replay what it missed.";
        findings.push(warning("endpoint", `${row.id} was disabled: ${row.disabled_reason}`, mend));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return findings;
}

async function knock(row: EndpointRow, config: Config): Promise<Finding> {
  const verdict = judgeUrl(row.url, config);
  if (!verdict.ok) {
    return failed(
      "endpoint",
      `${row.id}: its URL ${verdict.message}`,
      "Give it another URL: every attempt is refused.",
    );
  }
  const { url, allowed } = verdict, where = `${row.id} at ${url.host}`;
  let address = allowed ? url.hostname === "localhost" ? "127.0.0.1" : literalOf(url.hostname) : null;
  if (address === null) {
    const answers = await makeResolver({ resolveDns: Deno.resolveDns, timers: realTimers }).resolve(
      url.hostname,
    ).catch(
      () => null,
    );
    if (answers === null) {
      return failed("endpoint", `${where}: its name is not answered for`, "Check its DNS servers, and ours.");
    }
    const all = [...answers.a, ...answers.aaaa];
    if (all.length === 0) {
      return failed("endpoint", `${where}: its name leads nowhere`, "Correct the URL or its DNS.");
    }
    const judged = judgeAnswers(all);
    if (!allowed && !judged.ok) {
      return failed(
        "endpoint",
        `${where}: ${judged.message}`,
        "Its DNS must lead to public addresses alone.",
      );
    }
    address = (answers.a[0] ?? answers.aaaa[0])!;
  }
  return await open(where, url, address);
}

/** Opens the connection a delivery would open, and closes it. */
async function open(where: string, url: URL, address: string): Promise<Finding> {
  const start = performance.now(), https = url.protocol === "https:";
  let connection: Deno.Conn | null = null;
  const late = setTimeout(() => connection?.close(), CONNECT_TIMEOUT_MS);
  try {
    const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
    const tcp = await Deno.connect({
      hostname: address,
      port: Number(url.port || (https ? 443 : 80)),
      signal,
    });
    connection = tcp;
    if (https) {
      const tls = await Deno.startTls(tcp, { hostname: url.hostname });
      connection = tls;
      await tls.handshake();
    }
    return ok("endpoint", `${where} takes connections after ${Math.round(performance.now() - start)} ms`);
  } catch (error) {
    const mend = https
      ? "Check that its receiver runs, takes connections from here, and has a certificate for its name."
      : "Check that its receiver runs and takes connections from here.";
    return failed("endpoint", `${where}: ${(error as Error).message}`, mend);
  } finally {
    clearTimeout(late);
    try {
      connection?.close();
    } catch { /* closed already */ }
  }
}

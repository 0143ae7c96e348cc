/** `pmail doctor`: looks at everything a delivery needs and says of each fault how to mend it. Writes a probe row and takes it away. */
import { completeConfig, type Config, ConfigError, ENV_NAMES, parseConfig } from "../../lib/edge/config.ts";
import { secretsPath } from "../../lib/edge/local_secrets.ts";
import { kvPlace, openKv } from "../../lib/edge/open_kv.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { makeSealer } from "../../lib/edge/seal.ts";
import { CommandLineError } from "./command.ts";
import type { Command } from "./command.ts";
import { checkDns, checkReceivers, checkSeals, liveEndpoints } from "./doctor/endpoints.ts";
import { failed, type Finding, ok, warning } from "./doctor/finding.ts";
import {
  checkClock,
  checkDeadLetters,
  checkJobs,
  checkSchema,
  checkWrites,
  livingInstances,
} from "./doctor/store.ts";

const MARKS = { ok: "✓", warning: "!", failed: "✗" } as const;

export const doctorCommand: Command = {
  name: "doctor",
  kind: "offline",
  summary: "look at everything a delivery needs; exit 1 when something fails",
  options: { skip: { value: "A,B", about: "leave out: dns, endpoints" } },
  examples: ["pmail doctor", "pmail doctor --json | jq '.findings[] | select(.status != \"ok\")'"],
  async run(line) {
    const skip = line.list("skip") ?? [];
    const unknown = skip.find((name) => !["dns", "endpoints"].includes(name));
    if (unknown !== undefined) throw new CommandLineError("--skip must be among dns, endpoints");
    const findings = await examine(new Set(skip));
    const count = (status: Finding["status"]) =>
      findings.filter((finding) => finding.status === status).length;
    const summary = { ok: count("ok"), warnings: count("warning"), failed: count("failed") };
    const lines = findings.map(({ check, status, found, mend }) =>
      `${MARKS[status]} ${check}: ${found}${mend === null ? "" : `\n    ${mend}`}`
    );
    lines.push("", `${summary.failed} failed, ${summary.warnings} to look at, ${summary.ok} well`);
    line.answer({ ...summary, findings }, lines.join("\n"));
    return summary.failed === 0 ? 0 : 1;
  },
};

/** Everything in order; what cannot be looked at for an earlier fault is left out. */
async function examine(skip: ReadonlySet<string>): Promise<Finding[]> {
  const findings: Finding[] = [];
  const config = await configured(findings);
  if (config === null) return findings;
  let opened;
  try {
    opened = await openKv(config.kvPath);
  } catch (error) {
    return [...findings, failed("store", (error as Error).message, "See above.")];
  }
  const { kv, place } = opened;
  try {
    const living = await livingInstances(kv);
    findings.push(
      ok("store", `${place === "file" ? config.kvPath : place} opens; ${living} services run on it`),
    );
    findings.push(await checkWrites(kv), await checkSchema(kv), await checkClock(kv));
    findings.push(...await checkJobs(kv, config.jobShards), await checkDeadLetters(kv));
    const rows = await liveEndpoints(kv);
    const { masterKey, masterKeyNext } = config.secrets;
    const sealer = makeSealer(masterKey.bytes, masterKeyNext?.bytes ?? null, realRandom);
    findings.push(...await checkSeals(rows, sealer, masterKeyNext !== null));
    if (!skip.has("dns")) findings.push(await checkDns(rows, config));
    if (!skip.has("endpoints")) findings.push(...await checkReceivers(rows, config));
    return findings;
  } finally {
    kv.close();
  }
}

/** The configuration, or null when there is nothing to go on with. Makes neither a store nor secrets. */
async function configured(findings: Finding[]): Promise<Config | null> {
  const env = Object.fromEntries(ENV_NAMES.flatMap((name) => {
    const text = Deno.env.get(name);
    return text === undefined ? [] : [[name, text]];
  }));
  try {
    const parsed = parseConfig(env), { kvPath, secrets } = parsed;
    findings.push(ok("configuration", `PM_ENV=${parsed.env}, store ${kvPlace(kvPath)}`));
    if (parsed.allowedTargets.size > 0) {
      const open = [...parsed.allowedTargets].join(",");
      findings.push(
        warning("guard", `PM_ALLOWED_TARGETS opens it for ${open}`, "Unset it anywhere but in development."),
      );
    }
    if (kvPlace(kvPath) !== "file") return await completeConfig(parsed, realRandom);
    if (!await exists(kvPath)) {
      findings.push(
        failed("store", `${kvPath} is not there`, "Start the service once, or correct PM_KV_PATH."),
      );
      return null;
    }
    const given = secrets.masterKey && secrets.keyPepper && secrets.hashKey;
    if (!given && !await exists(secretsPath(kvPath))) {
      const mend =
        "Restore it, or set PM_MASTER_KEY, PM_KEY_PEPPER and PM_HASH_KEY to what the store was made with.";
      findings.push(failed("secrets", `${secretsPath(kvPath)} is not there`, mend));
      return null;
    }
    return await completeConfig(parsed, realRandom);
  } catch (error) {
    const faults = error instanceof ConfigError ? error.faults : [(error as Error).message];
    for (const fault of faults) {
      findings.push(failed("configuration", fault, "Correct it; .env.example lists all variables."));
    }
    return null;
  }
}

const exists = async (path: string): Promise<boolean> => await Deno.stat(path).then(() => true, () => false);

/**
 * Configuration: read once from `PM_*`, checked as a whole, frozen. A start with anything missing or malformed stops and
 * lists every fault with the variable's name and what it must look like.
 */
import { nearest } from "../nearest.ts";
import {
  DEPLOY_NAME,
  ENV_NAMES,
  NO_TLS_CHECK_NAME,
  PROXY_NAMES,
  type Secret,
  VARIABLE_NAMES,
  VARIABLES,
  type Variables,
} from "./config_vars.ts";
import { localSecrets } from "./local_secrets.ts";
import { kvPlace, PLATFORM_KV } from "./open_kv.ts";
import type { Random } from "./ports.ts";

export { ENV_NAMES, Secret } from "./config_vars.ts";

export interface Secrets {
  /** `PM_MASTER_KEY`: seals signing secrets. */
  readonly masterKey: Secret;
  readonly masterKeyNext: Secret | null;
  /** `PM_KEY_PEPPER`: HMAC of API keys. */
  readonly keyPepper: Secret;
  /** `PM_HASH_KEY`: deterministic ids, cursors, fingerprints. */
  readonly hashKey: Secret;
}

/** Settings without secrets; those may still have to be made (local and test). */
export interface Settings {
  readonly env: "local" | "test" | "production";
  readonly host: string;
  readonly port: number;
  /** A file, `:memory:`, a URL, or `platform`. */
  readonly kvPath: string;
  readonly apiHost: string | null;
  readonly consoleHost: string | null;
  readonly platformDomain: string | null;
  /** Exact `host:port`, lower case, that may be dialled whatever the guard says. Empty in production. */
  readonly allowedTargets: ReadonlySet<string>;
  readonly httpTransport: "undici" | "fetch";
  readonly metrics: "keys" | "open";
  readonly notifications: boolean;
  readonly maxInFlight: number;
  readonly maxPerEndpoint: number;
  readonly jobShards: number;
  /** Factor on the retry schedule, in (0, 1]; 1 in production. */
  readonly retryScale: number;
  readonly doorbell: "auto" | "off";
  readonly hotHandOff: "auto" | "off";
  /** On Deno Deploy: instances are stopped soon after their last request, with 5 s to end. */
  readonly onDeploy: boolean;
  readonly log: "debug" | "info" | "warn" | "error" | "off";
}

export interface Config extends Settings {
  readonly secrets: Secrets;
}

/** What `parseConfig` makes: a secret that is null is to be generated (never in production). */
export interface ParsedConfig extends Settings {
  readonly secrets: { readonly [K in keyof Secrets]: Secret | null };
}

/** The start is refused; `faults` are all the reasons, one line each, beginning with the variable's name. */
export class ConfigError extends Error {
  override name = "ConfigError";
  constructor(readonly faults: readonly string[]) {
    super(`Cannot start: the configuration is not valid.\n${faults.map((fault) => `  ${fault}`).join("\n")}`);
  }
}

/** Pure: the environment's text to settings. An empty value counts as not set. Throws `ConfigError`. */
export function parseConfig(env: Readonly<Record<string, string>>): ParsedConfig {
  const set = Object.fromEntries(Object.entries(env).filter(([, text]) => text !== ""));
  const own = Object.fromEntries(Object.entries(set).filter(([name]) => name.startsWith("PM_")));
  const parsed = VARIABLES.safeParse(own);
  const faults = parsed.success
    ? []
    : parsed.error.issues.flatMap((issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((name) =>
          `${name} is not a variable of this service; did you mean ${nearestVariable(name)}?`
        )
        : [`${String(issue.path[0])} ${issue.message}`]
    );
  // The rules between variables are judged on the text, so that all faults come at once.
  faults.push(...environmentFaults(set), ...productionFaults(set), ...sameSecretFaults(set));
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults);
  return settingsOf(parsed.data, set[DEPLOY_NAME] !== undefined);
}

const nearestVariable = (name: string): string =>
  nearest(name, VARIABLE_NAMES.map((known) => known.toLowerCase()))!.toUpperCase();

function settingsOf(v: Variables, onDeploy: boolean): ParsedConfig {
  const env = v.PM_ENV ?? "local";
  const kvPath = env === "test" ? ":memory:" : onDeploy ? PLATFORM_KV : "./data/pm.db";
  return Object.freeze({
    env,
    host: v.PM_HOST ?? (env === "production" || onDeploy ? "0.0.0.0" : "127.0.0.1"),
    port: v.PM_PORT ?? 8_000,
    kvPath: v.PM_KV_PATH ?? kvPath,
    apiHost: v.PM_API_HOST ?? null,
    consoleHost: v.PM_CONSOLE_HOST ?? null,
    platformDomain: v.PM_PLATFORM_DOMAIN ?? null,
    allowedTargets: v.PM_ALLOWED_TARGETS ?? new Set<string>(),
    httpTransport: v.PM_HTTP_TRANSPORT ?? "undici",
    metrics: v.PM_METRICS ?? "keys",
    notifications: v.PM_NOTIFICATIONS !== "off",
    maxInFlight: v.PM_MAX_IN_FLIGHT ?? 512,
    maxPerEndpoint: v.PM_MAX_PER_ENDPOINT ?? 32,
    jobShards: v.PM_JOB_SHARDS ?? 8,
    retryScale: v.PM_RETRY_SCALE ?? 1,
    doorbell: v.PM_DOORBELL ?? "auto",
    hotHandOff: v.PM_HOT_HANDOFF ?? "auto",
    onDeploy,
    log: v.PM_LOG ?? "info",
    secrets: Object.freeze({
      masterKey: v.PM_MASTER_KEY ?? null,
      masterKeyNext: v.PM_MASTER_KEY_NEXT ?? null,
      keyPepper: v.PM_KEY_PEPPER ?? null,
      hashKey: v.PM_HASH_KEY ?? null,
    }),
  });
}

/** What would make deliveries go elsewhere, or to somebody else, than the guard judged. */
function environmentFaults(env: Record<string, string>): string[] {
  const faults: string[] = [];
  if (env[NO_TLS_CHECK_NAME] !== undefined) {
    faults.push(`${NO_TLS_CHECK_NAME} must not be set: it switches off the check of certificates. Unset it.`);
  }
  if (env.PM_HTTP_TRANSPORT === "fetch") {
    for (const name of PROXY_NAMES) {
      if (env[name] === undefined) continue;
      faults.push(
        `${name} must not be set with PM_HTTP_TRANSPORT=fetch: deliveries would go to the proxy. Unset it.`,
      );
    }
  }
  if (env.PM_KV_PATH !== undefined && kvPlace(env.PM_KV_PATH) === "remote" && !URL.canParse(env.PM_KV_PATH)) {
    faults.push(
      "PM_KV_PATH must be a file, :memory:, platform, or a URL such as https://kv.example.com/connect",
    );
  }
  return faults;
}

function productionFaults(env: Record<string, string>): string[] {
  if (env.PM_ENV !== "production") return [];
  const faults: string[] = [];
  for (const name of ["PM_MASTER_KEY", "PM_KEY_PEPPER", "PM_HASH_KEY"]) {
    if (env[name] === undefined) {
      faults.push(
        `${name} must be set in production: 32 bytes in base64; make one with: openssl rand -base64 32`,
      );
    }
  }
  if (env.PM_ALLOWED_TARGETS !== undefined) {
    faults.push(
      "PM_ALLOWED_TARGETS must not be set in production: it opens the guard. Unset it, or use PM_ENV=local.",
    );
  }
  if (env.PM_RETRY_SCALE !== undefined && Number(env.PM_RETRY_SCALE) !== 1) {
    faults.push("PM_RETRY_SCALE must not be set in production: it shortens the retry schedule. Unset it.");
  }
  if (env.PM_KV_PATH === ":memory:") {
    faults.push(
      "PM_KV_PATH must not be :memory: in production: a restart would lose everything. Name a file.",
    );
  }
  return faults;
}

/** One key for two purposes, or a rotation to the key in use, is a mistake. */
function sameSecretFaults(env: Record<string, string>): string[] {
  const names = ["PM_MASTER_KEY", "PM_MASTER_KEY_NEXT", "PM_KEY_PEPPER", "PM_HASH_KEY"];
  return names.flatMap((name, i) => {
    const twin = names.slice(0, i).find((other) => env[other] !== undefined && env[other] === env[name]);
    return twin
      ? [`${name} must not be the same as ${twin}; make another with: openssl rand -base64 32`]
      : [];
  });
}

/**
 * The configuration of this process. Missing secrets are made and kept beside the store (local and test). With full
 * `--allow-env` unknown `PM_*` names are refused, too; with a list of names the process cannot see them.
 * Throws `ConfigError`.
 */
export async function loadConfig(random: Pick<Random, "bytes">): Promise<Config> {
  return await completeConfig(parseConfig(readEnv()), random);
}

/** Fills in the secrets that are to be generated. */
export async function completeConfig(parsed: ParsedConfig, random: Pick<Random, "bytes">): Promise<Config> {
  const { masterKey, masterKeyNext, keyPepper, hashKey } = parsed.secrets;
  const given = masterKey && keyPepper && hashKey;
  const made = given ? null : await localSecrets(parsed.kvPath, random);
  return Object.freeze({
    ...parsed,
    secrets: Object.freeze({
      masterKey: masterKey ?? made!.masterKey,
      masterKeyNext,
      keyPepper: keyPepper ?? made!.keyPepper,
      hashKey: hashKey ?? made!.hashKey,
    }),
  });
}

function readEnv(): Record<string, string> {
  if (Deno.permissions.querySync({ name: "env" }).state === "granted") return Deno.env.toObject();
  const env: Record<string, string> = {};
  for (const name of ENV_NAMES) {
    const text = Deno.env.get(name);
    if (text !== undefined) env[name] = text;
  }
  return env;
}

/** What an operator should know of the settings, in words: whatever is not as production has it. No value shows. */
export function notesOf(config: Settings & { secrets: { masterKeyNext: Secret | null } }): string[] {
  const notes: string[] = [];
  if (config.httpTransport === "fetch") {
    notes.push(
      "Deliveries leave through fetch: an address is judged, but a rebinding name server could still change it.",
    );
  }
  if (config.allowedTargets.size > 0) {
    notes.push("PM_ALLOWED_TARGETS is set: the guard is open for these targets.");
  }
  if (config.retryScale !== 1) {
    notes.push("PM_RETRY_SCALE is set: retries come sooner than the schedule says.");
  }
  if (config.hotHandOff === "off") {
    notes.push("PM_HOT_HANDOFF is off: every delivery takes the way through the store.");
  }
  if (config.secrets.masterKeyNext !== null) {
    notes.push("PM_MASTER_KEY_NEXT is set: a rotation of the master key is under way.");
  }
  return notes;
}

/** The configuration for people: every setting, secrets as `set` or `not set`, a store's URL as its host. */
export function showConfig(config: Config): Record<string, string | number | boolean> {
  const { secrets, allowedTargets, kvPath, apiHost, consoleHost, platformDomain, ...plain } = config;
  return {
    ...plain,
    kvPath: kvPlace(kvPath) === "remote" ? new URL(kvPath).host : kvPath,
    apiHost: apiHost ?? "not set",
    consoleHost: consoleHost ?? "not set",
    platformDomain: platformDomain ?? "not set",
    allowedTargets: [...allowedTargets].join(",") || "none",
    masterKey: "set",
    masterKeyNext: secrets.masterKeyNext ? "set" : "not set",
    keyPepper: "set",
    hashKey: "set",
  };
}

/** Every variable of the environment, the text it must be, and what it becomes. `config.ts` puts them together. */
import { Buffer } from "node:buffer";
import * as z from "zod";

/** Key material that no log, error or dump shows. `bytes` is the only way in. */
export class Secret {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
  }
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }
  equals(other: Secret): boolean {
    return Buffer.compare(this.#bytes, other.#bytes) === 0;
  }
  toString(): string {
    return "[redacted]";
  }
  toJSON(): string {
    return "[redacted]";
  }
  [Symbol.for("Deno.customInspect")](): string {
    return "[redacted]";
  }
}

export const SECRET_BYTES = 32;
const HOST =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;
const TARGET = /^(\[[0-9a-f:]+\]|[a-z0-9_.-]+):(\d{1,5})$/i;

const oneOf = <const T extends string>(...values: T[]) =>
  z.enum(values, { error: `must be one of: ${values.join(", ")}` });

function whole(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.string().regex(/^\d{1,9}$/, message).transform(Number).refine(
    (n) => n >= min && n <= max,
    message,
  );
}

const host = z.string()
  .refine(
    (text) => HOST.test(text),
    "must be a host name alone, such as api.example.com (no scheme, port or path)",
  )
  .transform((text) => text.toLowerCase());

const secret = z.string().transform((text, context) => {
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  if (bytes.length === SECRET_BYTES && Buffer.from(bytes).toString("base64") === text) {
    return new Secret(bytes);
  }
  // The value itself is never repeated in an error.
  context.addIssue({
    code: "custom",
    message:
      `must be ${SECRET_BYTES} bytes in base64 (44 characters); make one with: openssl rand -base64 32`,
  });
  return z.NEVER;
});

const targets = z.string().transform((text, context) => {
  const list = text.split(",").map((item) => item.trim().toLowerCase());
  for (const item of list) {
    const port = Number(TARGET.exec(item)?.[2] ?? 0);
    if (port >= 1 && port <= 65_535) continue;
    context.addIssue({
      code: "custom",
      message:
        `must be a comma list of host:port, such as 127.0.0.1:9000,localhost:9001 ("${item}" is not one)`,
    });
  }
  return new Set(list) as ReadonlySet<string>;
});

const scale = z.string().transform(Number)
  .refine((n) => n > 0 && n <= 1, "must be a number above 0 and at most 1, such as 0.01");

/** Name → schema of its text. Absent ones are optional; the defaults are `config.ts`'s, as they depend on PM_ENV. */
export const VARIABLES = z.strictObject({
  PM_ENV: oneOf("local", "test", "production").optional(),
  PM_HOST: z.string().regex(
    /^[0-9a-f.:]+$|^localhost$/i,
    "must be an address to listen on, such as 127.0.0.1 or ::",
  )
    .optional(),
  PM_PORT: whole(0, 65_535).optional(),
  PM_KV_PATH: z.string().optional(),
  PM_MASTER_KEY: secret.optional(),
  PM_MASTER_KEY_NEXT: secret.optional(),
  PM_KEY_PEPPER: secret.optional(),
  PM_HASH_KEY: secret.optional(),
  PM_API_HOST: host.optional(),
  PM_CONSOLE_HOST: host.optional(),
  PM_PLATFORM_DOMAIN: host.optional(),
  PM_ALLOWED_TARGETS: targets.optional(),
  PM_HTTP_TRANSPORT: oneOf("undici", "fetch").optional(),
  PM_METRICS: oneOf("keys", "open").optional(),
  PM_NOTIFICATIONS: oneOf("on", "off").optional(),
  PM_MAX_IN_FLIGHT: whole(1, 10_000).optional(),
  PM_MAX_PER_ENDPOINT: whole(1, 10_000).optional(),
  PM_JOB_SHARDS: whole(1, 256).optional(),
  PM_RETRY_SCALE: scale.optional(),
  PM_DOORBELL: oneOf("auto", "off").optional(),
  PM_HOT_HANDOFF: oneOf("auto", "off").optional(),
  PM_LOG: oneOf("debug", "info", "warn", "error", "off").optional(),
  // The commands' own (`tools/pmail`): known here, so that one environment serves both; the service does not read them.
  PM_URL: z.string().optional(),
  PM_API_KEY: z.string().optional(),
});

export type Variables = z.infer<typeof VARIABLES>;
export const VARIABLE_NAMES = Object.keys(VARIABLES.shape) as (keyof Variables)[];

/** Proxy variables `fetch` would follow: the delivery would not go where the guard looked (D3). */
export const PROXY_NAMES = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
];

/** Set by Deno Deploy: the store is the platform's own there. */
export const DEPLOY_NAME = "DENO_DEPLOYMENT_ID";
export const NO_TLS_CHECK_NAME = "NODE_TLS_REJECT_UNAUTHORIZED";

/** All that is read of the environment: the list of `--allow-env`. */
export const ENV_NAMES: readonly string[] = [
  ...VARIABLE_NAMES,
  DEPLOY_NAME,
  NO_TLS_CHECK_NAME,
  ...PROXY_NAMES,
];

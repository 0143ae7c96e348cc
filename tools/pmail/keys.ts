/** `pmail keys …`: the first key of a store without a running service, and keys over the API. */
import { createKey } from "../../actors/key_admin.ts";
import { realNow, realRandom } from "../../lib/edge/ports.ts";
import { type KeyLevel, keyLevel, type Permission, permission } from "../../lib/keys.ts";
import { DAY_MS, MAX_OVERLAP_HOURS } from "../../lib/limits.ts";
import { isoOf, type Json, openApi, segment } from "./api.ts";
import { type Command, CommandLineError, type Line, table, withStore } from "./command.ts";

/** What a key of each level can use; the default of `--permissions`. */
const USABLE: Record<KeyLevel, readonly Permission[]> = {
  platform: permission.options,
  partner: permission.options.filter((name) => !["platform:ops", "partners:manage"].includes(name)),
  tenant: permission.options.filter((name) =>
    !["platform:ops", "partners:manage", "tenants:manage"].includes(name)
  ),
  identity: ["webhooks:read", "events:read", "events:write"],
};

const MAX_DAYS = 99_999;
const LIMIT = { value: "N", about: "at most this many, newest first (default 100)" };

/** What the line says of a new key, times in Unix ms. */
function specOf(line: Line) {
  const level = line.need("level") as KeyLevel;
  const wanted = line.list("permissions");
  const unknown = wanted?.find((name) => !(permission.options as string[]).includes(name));
  if (unknown !== undefined) {
    throw new CommandLineError(`--permissions must be among ${permission.options.join(", ")}`);
  }
  const days = line.whole("expires-in-days", 1, MAX_DAYS);
  return {
    name: line.text("name") ?? "made by pmail",
    level,
    partner_id: line.id("partner", "partner"),
    tenant_id: line.id("tenant", "tenant"),
    identity_id: line.id("identity", "identity"),
    permissions: wanted as Permission[] | undefined ?? [...USABLE[level]],
    expires_at: days === undefined ? null : realNow() + days * DAY_MS,
  };
}

function shown(line: Line, key: Json): void {
  line.answer(
    key,
    `${key.id} (${key.level}): ${key.secret}\n` +
      `It is shown this once. Send it as: Authorization: Bearer ${key.secret}`,
  );
}

export const keyCommands: Command[] = [
  {
    name: "keys create",
    kind: "offline",
    summary: "make an API key, on the store itself or (--api) with a key you have",
    options: {
      level: { value: "LEVEL", about: "how wide it reaches", choices: keyLevel.options },
      partner: { value: "PTN", about: "its partner, for the level partner" },
      tenant: { value: "TEN", about: "its tenant, for the level tenant" },
      identity: { value: "IDN", about: "its identity, for the level identity" },
      permissions: { value: "A,B", about: "default: all that the level can use" },
      name: { value: "TEXT", about: 'default: "made by pmail"' },
      "expires-in-days": { value: "N", about: "default: never" },
      api: { about: "ask the running service instead of opening the store" },
    },
    examples: [
      "pmail keys create --level platform --json",
      "pmail keys create --api --level tenant --tenant ten_01K… --permissions events:write",
    ],
    async run(line) {
      const spec = specOf(line);
      if (line.has("api")) {
        const body = { ...spec, expires_at: spec.expires_at === null ? null : isoOf(spec.expires_at) };
        return shown(line, await openApi().call("POST", "/v1/keys", body));
      }
      const { row, secret } = await withStore(({ config, kv, committer, ids }) => {
        const mode = config.env === "production" ? "live" : "test";
        const pepper = config.secrets.keyPepper.bytes;
        return createKey({ kv, committer, now: realNow, ids, random: realRandom, pepper, mode }, spec, null);
      });
      const { hash: _, ...key } = row;
      const [created_at, expires_at] = [
        isoOf(row.created_at),
        row.expires_at === null ? null : isoOf(row.expires_at),
      ];
      shown(line, { ...key, created_at, expires_at, secret }); // as the API shows it
    },
  },
  {
    name: "keys list",
    kind: "api",
    summary: "list the keys of your key's scope, or of a tenant or partner",
    options: {
      tenant: { value: "TEN", about: "the keys of this tenant" },
      partner: { value: "PTN", about: "the keys of this partner" },
      limit: LIMIT,
    },
    examples: ["pmail keys list --tenant ten_01K…"],
    async run(line) {
      const query = { tenant_id: line.id("tenant", "tenant"), partner_id: line.id("partner", "partner") };
      const data = await openApi().list("/v1/keys", query, line.whole("limit", 1, 100_000) ?? 100);
      const rows = data.map((key) => [key.id, key.level, stateOf(key), key.permissions.length, key.name]);
      line.answer({ data }, table(rows, ["ID", "LEVEL", "STATE", "PERMISSIONS", "NAME"]));
    },
  },
  {
    name: "keys revoke",
    kind: "api",
    summary: "end a key at once",
    args: ["KEY_ID"],
    options: {},
    examples: ["pmail keys revoke key_01K…"],
    async run(line) {
      const id = line.args[0]!;
      await openApi().call("DELETE", `/v1/keys/${segment(id)}`);
      line.answer({ id, revoked: true }, `${id} is revoked`);
    },
  },
  {
    name: "keys rotate",
    kind: "api",
    summary: "replace a key by a new one like it",
    args: ["KEY_ID"],
    options: {
      "overlap-hours": { value: "N", about: "how long the old one stays good, 0 to 168 (default 24)" },
    },
    examples: ["pmail keys rotate key_01K… --overlap-hours 1"],
    async run(line) {
      const hours = line.whole("overlap-hours", 0, MAX_OVERLAP_HOURS);
      const body = hours === undefined ? {} : { overlap_hours: hours };
      shown(line, await openApi().call("POST", `/v1/keys/${segment(line.args[0]!)}/rotate`, body));
    },
  },
];

function stateOf(key: Json): string {
  if (key.revoked_at !== null) return "revoked";
  if (key.expires_at === null) return "good";
  return Date.parse(key.expires_at) <= realNow() ? "expired" : `until ${key.expires_at}`;
}

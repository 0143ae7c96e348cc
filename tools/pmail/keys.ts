/** `pmail keys create`: the first key of a store, without a running service. */
import { createKey } from "../../actors/key_admin.ts";
import { realNow, realRandom } from "../../lib/edge/ports.ts";
import { type IdKind, parseId } from "../../lib/ids.ts";
import { type KeyLevel, keyLevel, type Permission, permission } from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { CommandLineError, options, withStore } from "./command.ts";

/** What a key of each level can use; the default of `--permissions`. */
const USABLE: Record<KeyLevel, readonly Permission[]> = {
  platform: permission.options,
  partner: permission.options.filter((name) => !["platform:ops", "partners:manage"].includes(name)),
  tenant: permission.options.filter((name) =>
    !["platform:ops", "partners:manage", "tenants:manage"].includes(name)
  ),
  identity: ["webhooks:read", "events:read", "events:write"],
};

export async function createKeyCommand(args: string[]): Promise<void> {
  const given = options(args, {
    level: { type: "string" },
    partner: { type: "string" },
    tenant: { type: "string" },
    identity: { type: "string" },
    permissions: { type: "string" },
    name: { type: "string" },
    "expires-in-days": { type: "string" },
    json: { type: "boolean" },
  });
  const level = oneOf("--level", keyLevel.options, given.level);
  const permissions = given.permissions === undefined
    ? [...USABLE[level]]
    : given.permissions.split(",").map((name) => oneOf("--permissions", permission.options, name.trim()));
  const spec = {
    name: given.name ?? "made by pmail",
    level,
    partner_id: id("partner", "--partner", given.partner),
    tenant_id: id("tenant", "--tenant", given.tenant),
    identity_id: id("identity", "--identity", given.identity),
    permissions,
    expires_at: expiry(given["expires-in-days"]),
  };
  const { row, secret } = await withStore(({ config, kv, committer, ids }) =>
    createKey(
      {
        kv,
        committer,
        now: realNow,
        ids,
        random: realRandom,
        pepper: config.secrets.keyPepper.bytes,
        mode: config.env === "production" ? "live" : "test",
      },
      spec,
      null,
    )
  );
  const { hash: _, ...shown } = row;
  if (given.json) console.log(JSON.stringify({ ...shown, secret }));
  else {console.log(
      `${row.id} (${level}): ${secret}\nIt is shown this once. Send it as: Authorization: Bearer ${secret}`,
    );}
}

function oneOf<T extends string>(name: string, known: readonly T[], value: string | undefined): T {
  const found = known.find((option) => option === value);
  if (found === undefined) throw new CommandLineError(`${name} must be one of ${known.join(", ")}`);
  return found;
}

function id<K extends IdKind>(kind: K, name: string, value: string | undefined) {
  if (value === undefined) return undefined;
  const parsed = parseId(kind, value);
  if (parsed === null) throw new CommandLineError(`${name} must be the id of a ${kind}`);
  return parsed;
}

function expiry(days: string | undefined): number | null {
  if (days === undefined) return null;
  if (!/^[1-9]\d{0,4}$/.test(days)) {
    throw new CommandLineError("--expires-in-days must be a whole number from 1");
  }
  return realNow() + Number(days) * DAY_MS;
}

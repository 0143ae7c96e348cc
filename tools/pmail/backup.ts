/** `pmail backup` and `pmail restore`: a consistent copy of the store's file while services run, and a new store from one. */
import { dirname } from "node:path";
import { copyStore } from "../../lib/edge/backup.ts";
import { loadConfig } from "../../lib/edge/config.ts";
import { secretsPath } from "../../lib/edge/local_secrets.ts";
import { openKv } from "../../lib/edge/open_kv.ts";
import { realRandom } from "../../lib/edge/ports.ts";
import { keys, schemaRow } from "../../lib/keys.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { type Command, Refused } from "./command.ts";

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const SECRET_NAMES = ["PM_MASTER_KEY", "PM_MASTER_KEY_NEXT", "PM_KEY_PEPPER", "PM_HASH_KEY"];

export const backupCommands: Command[] = [
  {
    name: "backup",
    kind: "offline",
    summary: "copy the store's file, consistent, while services run on it",
    args: ["FILE"],
    options: {},
    examples: ["pmail backup /backups/pm-2026-10-09.db"],
    async run(line) {
      const { kvPath } = await loadConfig(realRandom);
      const file = line.args[0]!;
      const secrets = await copySecrets(kvPath, file);
      let copied;
      try {
        copied = await copyStore(kvPath, file, realRandom);
      } catch (error) {
        if (secrets !== null) await Deno.remove(secrets);
        throw error;
      }
      line.answer(
        { file, secrets, ...copied },
        `${file}: ${copied.rows} rows, ${copied.bytes} bytes, everything up to version ${copied.versionstamp}\n` +
          (secrets === null
            ? keepSecrets()
            : `${secrets}: its secrets; keep it as safe as the keys it holds`),
      );
    },
  },
  {
    name: "restore",
    kind: "offline",
    summary: "make a new store from a copy; an existing file is never overwritten",
    args: ["FILE"],
    options: { to: { value: "PATH", about: "the new store's file (default PM_KV_PATH)" } },
    examples: [
      "PM_KV_PATH=./data/pm.db pmail restore /backups/pm-2026-10-09.db",
      "pmail restore /backups/pm-2026-10-09.db --to ./look.db",
    ],
    async run(line) {
      const file = line.args[0]!, to = line.text("to") ?? Deno.env.get("PM_KV_PATH");
      if (!to) {
        throw new Refused(
          "no_target",
          "Cannot restore: neither --to nor PM_KV_PATH names the new file.",
          "Name it.",
        );
      }
      await Deno.mkdir(dirname(to), { recursive: true, mode: FOLDER_MODE });
      const secrets = await copySecrets(file, to);
      try {
        const copied = await copyStore(file, to, realRandom);
        const version = await schemaOf(to);
        line.answer(
          { file: to, secrets, ...copied, schema_version: version },
          `${to}: ${copied.rows} rows, everything up to version ${copied.versionstamp}\n` +
            (secrets === null ? `${keepSecrets()}\n` : `${secrets}: its secrets\n`) +
            (version > MIGRATIONS.length ? "It is of a newer release: start that one on it.\n" : "") +
            "What was delivered since the copy is delivered again: receivers know it by its webhook-id. " +
            "What was appended since is gone, and its sequence numbers are given out anew.",
        );
      } catch (error) {
        if (secrets !== null) await Deno.remove(secrets);
        throw error;
      }
    },
  },
];

/** The development secrets beside a store go with it. Null: there are none, they come from the environment. */
async function copySecrets(from: string, to: string): Promise<string | null> {
  const source = secretsPath(from), target = secretsPath(to);
  let text: string;
  try {
    text = await Deno.readTextFile(source);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new Refused(
      "unreadable",
      `Cannot read ${source}: ${(error as Error).message}.`,
      "Check its permissions.",
    );
  }
  try {
    await Deno.writeTextFile(target, text, { createNew: true, mode: FILE_MODE });
  } catch (error) {
    const why = error instanceof Deno.errors.AlreadyExists ? "it exists already" : (error as Error).message;
    throw new Refused("exists", `Cannot write ${target}: ${why}.`, "Choose another name.");
  }
  return target;
}

const keepSecrets = (): string =>
  `Its secrets are not in it. Keep ${SECRET_NAMES.join(", ")} (those that are set) with it: ` +
  "without them no endpoint's secret opens and no API key is known.";

async function schemaOf(path: string): Promise<number> {
  const { kv } = await openKv(path);
  try {
    return schemaRow.safeParse((await kv.get(keys.schema())).value).data?.version ?? 0;
  } finally {
    kv.close();
  }
}

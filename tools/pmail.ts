/**
 * `pmail`: operates the service from the command line: on the store itself, offline or beside a running service, and over its API.
 * Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong. Errors go to standard error, with `--json` as JSON.
 */
import { ApiError } from "../lib/errors.ts";
import { BackupError } from "../lib/edge/backup.ts";
import { ConfigError } from "../lib/edge/config.ts";
import { LocalSecretsError } from "../lib/edge/local_secrets.ts";
import { OpenKvError } from "../lib/edge/open_kv.ts";
import { nearest } from "../lib/nearest.ts";
import { SchemaTooNewError } from "../migrations/runner.ts";
import { type Command, CommandLineError, readLine, Refused } from "./pmail/command.ts";
import { backupCommands } from "./pmail/backup.ts";
import { completionCommand } from "./pmail/completion.ts";
import { doctorCommand } from "./pmail/doctor.ts";
import { eventCommands } from "./pmail/events.ts";
import { help, overview } from "./pmail/help.ts";
import { keyCommands } from "./pmail/keys.ts";
import { listenCommand } from "./pmail/listen.ts";
import { secretCommands } from "./pmail/secrets.ts";
import { verifyCommand } from "./pmail/verify.ts";
import { webhookCommands } from "./pmail/webhooks.ts";

const COMMANDS: readonly Command[] = [
  ...keyCommands,
  ...webhookCommands,
  ...eventCommands,
  ...secretCommands,
  ...backupCommands,
  doctorCommand,
  listenCommand,
  verifyCommand,
  completionCommand(() => COMMANDS),
];

async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "help") args = [...args.slice(1), "--help"];
  const command = COMMANDS.find(({ name }) => name.split(" ").every((word, i) => args[i] === word));
  try {
    if (command === undefined) {
      if (args.length === 0 || args.includes("--help")) {
        console.log(
          overview(
            COMMANDS.filter(({ name }) => args[0]?.startsWith("-") !== false || name.startsWith(args[0])),
          ),
        );
        return 0;
      }
      throw new CommandLineError(unknownCommand(args));
    }
    const line = readLine(command, args.slice(command.name.split(" ").length));
    if (line.has("help")) {
      console.log(help(command));
      return 0;
    }
    return await command.run(line) ?? 0;
  } catch (error) {
    return refuse(error, command, args.includes("--json"));
  }
}

function unknownCommand(args: readonly string[]): string {
  const typed = args.filter((word) => !word.startsWith("-")).slice(0, 2).join(" ");
  const near = nearest(typed, COMMANDS.map(({ name }) => name));
  return `there is no command "${typed}"${near === null ? "" : `; the nearest is "${near}"`}`;
}

/** Refusals whose message says how to mend it. */
const REFUSALS = [BackupError, ConfigError, LocalSecretsError, OpenKvError, SchemaTooNewError];

/** Says what is wrong and how to mend it. Returns the exit code. */
function refuse(error: unknown, command: Command | undefined, json: boolean): number {
  if (error instanceof CommandLineError) {
    const more = command === undefined ? "pmail --help lists all commands" : help(command);
    console.error(json ? shown("command_line", error.message, null) : `pmail: ${error.message}\n\n${more}`);
    return 2;
  }
  if (error instanceof ApiError || error instanceof Refused) {
    console.error(
      json ? shown(error.code, error.message, error.fix) : `pmail: ${error.message} ${error.fix}`,
    );
    return 1;
  }
  if (REFUSALS.some((kind) => error instanceof kind)) {
    const { name, message } = error as Error;
    console.error(json ? shown(name, message, null) : `pmail: ${message}`);
    return 1;
  }
  throw error;
}

const shown = (code: string, message: string, fix: string | null): string =>
  JSON.stringify({ error: { code, message, fix } });

Deno.exit(await run(Deno.args));

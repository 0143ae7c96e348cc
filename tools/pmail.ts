/**
 * `pmail`: operates a store from the command line, offline or beside a running service.
 * Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.
 */
import { createKeyCommand } from "./pmail/keys.ts";
import { CommandLineError } from "./pmail/command.ts";
import { ApiError } from "../lib/errors.ts";
import { refuseStart } from "../main.ts";

const HELP = `pmail: operate a Pylota webhooks store

  pmail keys create --level platform|partner|tenant|identity [options]
      --partner ptn_…, --tenant ten_…, --identity idn_…   whom the key is for, as its level needs
      --permissions a,b       default: all that the level can use
      --name TEXT             default: "made by pmail"
      --expires-in-days N     default: never
      --json                  one JSON object with the key in "secret"

The store and its secrets come from PM_KV_PATH and the other PM_* variables, as for the service.
Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.
Example: deno task pmail keys create --level platform --json`;

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  "keys create": createKeyCommand,
};

async function run(args: string[]): Promise<number> {
  const command = COMMANDS[args.slice(0, 2).join(" ")];
  const asked = args.length === 0 || args.includes("--help") || args[0] === "help";
  if (asked) console.log(HELP);
  if (asked) return 0;
  try {
    if (command === undefined) {
      throw new CommandLineError(`there is no command "${args.slice(0, 2).join(" ")}"`);
    }
    await command(args.slice(2));
    return 0;
  } catch (error) {
    if (error instanceof CommandLineError) {
      console.error(`pmail: ${error.message}\n\n${HELP}`);
      return 2;
    }
    if (!(error instanceof ApiError)) refuseStart(error);
    console.error(`pmail: ${error.message} ${error.fix}`);
    return 1;
  }
}

Deno.exit(await run(Deno.args));

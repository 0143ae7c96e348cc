/** Help for people, and completion for their shells, from the commands' descriptions. */
import { type Command, type Option, optionsOf } from "./command.ts";

const KINDS: Record<Command["kind"], string> = {
  offline:
    "On the store itself (PM_KV_PATH and the other PM_* variables, as for the service; a service may run beside it):",
  api: "Over the API of a running service (PM_URL, default http://127.0.0.1:8000, and PM_API_KEY):",
  local: "On this machine alone:",
};

const EXIT_CODES = "Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.";

/** Every command, one line each. */
export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => usageOf(command).length));
  const lines = ["pmail: operate Pylota webhooks", ""];
  for (const [kind, title] of Object.entries(KINDS)) {
    const mine = commands.filter((command) => command.kind === kind);
    if (mine.length === 0) continue;
    lines.push(title, ...mine.map((command) => `  ${usageOf(command).padEnd(width)}  ${command.summary}`));
    lines.push("");
  }
  lines.push(
    "Every command takes --json and --help. Run it as: deno task pmail COMMAND",
    EXIT_CODES,
    "Example: deno task pmail keys create --level platform --json",
  );
  return lines.join("\n");
}

/** One command: its options and examples. */
export function help(command: Command): string {
  const options = Object.entries(optionsOf(command)).map((
    [name, option],
  ) => [flag(name, option), about(option)]);
  const width = Math.max(...options.map(([name]) => name!.length));
  return [
    `pmail ${usageOf(command)} [options]: ${command.summary}`,
    "",
    ...options.map(([name, text]) => `  ${name!.padEnd(width)}  ${text}`),
    "",
    ...command.examples.map((example, i) => `${i === 0 ? "Examples:\n" : ""}  ${example}`),
    "",
    EXIT_CODES,
  ].join("\n");
}

const usageOf = (command: Command): string => [command.name, ...command.args ?? []].join(" ");
const flag = (name: string, option: Option): string => `--${name}${option.value ? ` ${option.value}` : ""}`;
const about = (option: Option): string =>
  option.about + (option.choices ? `: ${option.choices.join(", ")}` : "") +
  (option.many ? " (may be repeated)" : "");

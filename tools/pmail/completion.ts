/** `pmail completion`: what a shell may offer at each word, made from the commands' descriptions. */
import { type Command, CommandLineError, optionsOf } from "./command.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** @param commands all of them, this one included. */
export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    name: "completion",
    kind: "local",
    summary: "print a completion script: bash, zsh or fish",
    args: ["SHELL"],
    options: {},
    examples: [
      "alias pmail='deno task pmail'",
      'eval "$(deno task -q pmail completion bash)"',
      "deno task -q pmail completion fish > ~/.config/fish/completions/pmail.fish",
    ],
    run(line) {
      const shell = SHELLS.find((name) => name === line.args[0]);
      if (shell === undefined) throw new CommandLineError(`SHELL must be one of ${SHELLS.join(", ")}`);
      const script = SCRIPTS[shell](commands());
      line.answer({ shell, script }, script);
    },
  };
}

/** What may follow each beginning of a command: its second words, then its options. */
function offers(commands: readonly Command[]): Map<string, string[]> {
  const found = new Map<string, string[]>([["", []]]);
  for (const command of commands) {
    const [group, action] = command.name.split(" ");
    const first = found.get("")!;
    if (!first.includes(group!)) first.push(group!);
    if (action !== undefined) found.set(group!, [...found.get(group!) ?? [], action]);
    const options = Object.keys(optionsOf(command)).map((name) => `--${name}`);
    found.set(command.name, command.name === "completion" ? [...SHELLS, ...options] : options);
  }
  return found;
}

/** Options with a fixed set of values: command, option, values. */
function choices(commands: readonly Command[]): [string, string, readonly string[]][] {
  return commands.flatMap((command) =>
    Object.entries(command.options).flatMap(([name, option]) =>
      option.choices
        ? [[command.name, `--${name}`, option.choices] as [string, string, readonly string[]]]
        : []
    )
  );
}

/** One function of words for bash; zsh runs it through its own emulation of bash's completion. */
function bash(commands: readonly Command[]): string {
  const cases = [...offers(commands)].map(([begin, words]) =>
    `    "${begin}") words="${words.join(" ")}" ;;`
  );
  const values = choices(commands).map(([command, option, words]) =>
    `    "${command} ${option}") words="${words.join(" ")}" ;;`
  );
  return `_pmail() {
  local word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" begin="" words=""
  local i
  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do
    case "\${COMP_WORDS[i]}" in -*) break ;; esac
    begin="\${begin:+$begin }\${COMP_WORDS[i]}"
  done
  case "$begin" in
${cases.join("\n")}
    *) begin="\${begin%% *}"
       case "$begin" in
${
    [...offers(commands)].filter(([name]) => name !== "" && !name.includes(" ")).map(([begin, words]) =>
      `         "${begin}") words="${words.join(" ")}" ;;`
    ).join("\n")
  }
       esac ;;
  esac
  case "$begin $previous" in
${values.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  # A file where no word fits.
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _pmail pmail`;
}

const SCRIPTS: Record<typeof SHELLS[number], (commands: readonly Command[]) => string> = {
  bash,
  zsh: (commands) =>
    `autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`,
  fish: (commands) => {
    const lines = ["complete -c pmail -f"];
    const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
    const groups = [...new Set(commands.map((command) => command.name.split(" ")[0]!))];
    lines.push(`complete -c pmail -n __fish_use_subcommand -a ${quoted(groups.join(" "))}`);
    for (const command of commands) {
      const [group, action] = command.name.split(" ");
      const seen = `__fish_seen_subcommand_from ${group}`;
      const here = action === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${action}`;
      if (action !== undefined) {
        lines.push(`complete -c pmail -n ${quoted(seen)} -a ${action} -d ${quoted(command.summary)}`);
      }
      if (command.name === "completion") {
        lines.push(`complete -c pmail -n ${quoted(seen)} -a ${quoted(SHELLS.join(" "))}`);
      }
      for (const [name, option] of Object.entries(optionsOf(command))) {
        const takes = option.choices
          ? ` -x -a ${quoted(option.choices.join(" "))}`
          : option.value
          ? " -r -F"
          : "";
        lines.push(`complete -c pmail -n ${quoted(here)} -l ${name} -d ${quoted(option.about)}${takes}`);
      }
    }
    return lines.join("\n");
  },
};

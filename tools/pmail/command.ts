/** What a command is, how its line is read, and how it answers. Help and completion come from the same descriptions. */
import { parseArgs } from "node:util";
import { type Committer, makeCommitter } from "../../lib/edge/committer.ts";
import { type Config, loadConfig } from "../../lib/edge/config.ts";
import { openKv } from "../../lib/edge/open_kv.ts";
import { realIds, realNow, realRandom, realTimers } from "../../lib/edge/ports.ts";
import { type IdKind, type Ids, parseId } from "../../lib/ids.ts";
import { MIGRATIONS } from "../../migrations/list.ts";
import { migrate } from "../../migrations/runner.ts";

/** The command line is wrong: exit code 2. */
export class CommandLineError extends Error {}

/** The command was refused or failed for a reason whoever called it can act on: exit code 1. */
export class Refused extends Error {
  constructor(readonly code: string, message: string, readonly fix: string, readonly details?: unknown) {
    super(message);
  }
}

/** An option. `value` names what it takes; without it it is a switch. */
export interface Option {
  value?: string;
  about: string;
  /** May be given several times. */
  many?: boolean;
  /** All it may be, for completion and the check. */
  choices?: readonly string[];
}

export interface Command {
  /** `keys create`: what is typed. */
  name: string;
  /** One line. */
  summary: string;
  /** Works on the store's file, calls the API, or neither. */
  kind: "offline" | "api" | "local";
  /** Names of its arguments, all needed. */
  args?: readonly string[];
  options: Readonly<Record<string, Option>>;
  examples: readonly string[];
  /** Answers the exit code, 0 if nothing. */
  run(line: Line): Promise<number | void> | number | void;
}

const COMMON: Record<string, Option> = {
  json: { about: "answer with JSON on standard output" },
  help: { about: "show this" },
};

export const optionsOf = (command: Command): Record<string, Option> => ({ ...command.options, ...COMMON });

/** A command line that was read: options by name, arguments in order. */
export class Line {
  constructor(
    readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>,
    readonly args: readonly string[],
  ) {}

  get json(): boolean {
    return this.has("json");
  }

  has(name: string): boolean {
    return this.values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.values[name];
    return typeof value === "string" ? value : undefined;
  }

  need(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new CommandLineError(`--${name} is needed`);
    return value;
  }

  all(name: string): string[] {
    return (this.values[name] as string[] | undefined) ?? [];
  }

  /** A comma list; undefined when it is not given. */
  list(name: string): string[] | undefined {
    return this.text(name)?.split(",").map((item) => item.trim()).filter((item) => item !== "");
  }

  id<K extends IdKind>(name: string, kind: K) {
    const value = this.text(name);
    return value === undefined ? undefined : idOf(kind, `--${name}`, value);
  }

  whole(name: string, min: number, max: number): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = /^\d{1,9}$/.test(value) ? Number(value) : NaN;
    if (!(number >= min && number <= max)) {
      throw new CommandLineError(`--${name} must be a whole number from ${min} to ${max}`);
    }
    return number;
  }

  /** An RFC 3339 time, or an age such as `15m`, `2h`, `7d`. Unix ms. */
  time(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
    if (unit) return realNow() - Number(count) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[unit]!;
    const at = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : NaN;
    if (Number.isNaN(at)) {
      throw new CommandLineError(`--${name} must be a time such as 2026-10-09T12:00:00Z, or 2h`);
    }
    return at;
  }

  /** With `--json` the value on one line, else the text. */
  answer(value: unknown, text: string): void {
    console.log(this.json ? JSON.stringify(value) : text);
  }
}

export function idOf<K extends IdKind>(kind: K, name: string, value: string) {
  const id = parseId(kind, value);
  if (id === null) throw new CommandLineError(`${name} must be the id of a ${kind}`);
  return id;
}

/** Reads what follows the command's name. */
export function readLine(command: Command, rest: string[]): Line {
  const known = Object.entries(optionsOf(command)).map(([name, option]) =>
    [name, {
      type: option.value === undefined ? "boolean" : "string",
      multiple: option.many === true,
    }] as const
  );
  let parsed;
  try {
    parsed = parseArgs({
      args: rest,
      options: Object.fromEntries(known),
      strict: true,
      allowPositionals: true,
    });
  } catch (error) {
    throw new CommandLineError((error as Error).message);
  }
  const { values, positionals } = parsed, wanted = command.args ?? [];
  if (values.help === true) return new Line(values, positionals);
  if (positionals.length !== wanted.length) {
    const what = wanted.length === 0 ? "no argument" : wanted.join(" ");
    throw new CommandLineError(`"${command.name}" takes ${what}, not "${positionals.join(" ")}"`);
  }
  for (const [name, { choices }] of Object.entries(command.options)) {
    const value = values[name];
    if (choices === undefined || typeof value !== "string" || choices.includes(value)) continue;
    throw new CommandLineError(`--${name} must be one of ${choices.join(", ")}`);
  }
  return new Line(values, positionals);
}

export interface Store {
  config: Config;
  kv: Deno.Kv;
  committer: Committer;
  ids: Ids;
}

/** Opens the configured store, brings it to this version, and closes it after `work`. */
export async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const config = await loadConfig(realRandom);
  const { kv, maxInFlight } = await openKv(config.kvPath);
  try {
    const ids = realIds();
    await migrate(MIGRATIONS, { kv, now: realNow, timers: realTimers, instance: ids.ulid() });
    return await work({ config, kv, committer: makeCommitter(kv, { maxInFlight }), ids });
  } finally {
    kv.close();
  }
}

/** Columns side by side, as wide as their widest cell. */
export function table(rows: readonly (readonly unknown[])[], head: readonly string[]): string {
  if (rows.length === 0) return "none";
  const cells = [
    head,
    ...rows.map((row) => row.map((cell) => cell === null || cell === undefined ? "-" : String(cell))),
  ];
  const widths = head.map((_, i) => Math.max(...cells.map((row) => row[i]!.length)));
  return cells.map((row) => row.map((cell, i) => cell.padEnd(widths[i]!)).join("  ").trimEnd()).join("\n");
}

/**
 * `deno task sim --seeds 2000 [--from 1] [--threads 2]`: many worlds, none of which may break a rule.
 * `deno task sim --seed 77`: one world with its trace; `--script '…'` one as a failure printed it.
 */
import { HOUR_MS } from "../lib/limits.ts";
import { runBatch } from "./batch.ts";
import { runScript, scriptOf } from "./seed.ts";
import { shrink } from "./shrink.ts";
import { SOMETIMES } from "./sometimes.ts";
import type { Script } from "./script.ts";

const SHOWN_LINES = 60;
const SHRUNK_FAILURES = 3;
/** From so many seeds on every "sometimes" must have happened. */
const ENOUGH_SEEDS = 2_000;

function option(name: string): string | undefined {
  const at = Deno.args.indexOf(`--${name}`);
  return at < 0 ? undefined : Deno.args[at + 1];
}

async function commitId(): Promise<string> {
  try {
    const { stdout } = await new Deno.Command("git", { args: ["rev-parse", "--short", "HEAD"] }).output();
    return new TextDecoder().decode(stdout).trim();
  } catch {
    return "unknown";
  }
}

async function one(script: Script): Promise<boolean> {
  const result = await runScript(script);
  for (const line of result.lines) console.log(line);
  console.log(
    `seed ${result.seed}: trace ${result.hash.toString(16)}, ${result.commits} commits`,
    result.account ?? "",
  );
  if (result.violation) console.log(`${result.violation.rule} broken: ${result.violation.what}`);
  return result.violation === null;
}

async function explain(seed: number, rule: string): Promise<void> {
  const small = await shrink(scriptOf(seed), rule);
  const { lines, violation } = await runScript(small);
  console.log(`\n--- seed ${seed}, shrunk to ${small.steps.length} steps ---`);
  for (const line of lines.slice(-SHOWN_LINES)) console.log(line);
  console.log(`${violation?.rule} broken: ${violation?.what}`);
  console.log(`again: deno task sim --seed ${seed}`);
  console.log(`small: deno task sim --script '${JSON.stringify(small)}'`);
}

async function many(from: number, count: number, threads: number): Promise<boolean> {
  const began = performance.now();
  const batch = await runBatch(from, count, threads, ({ seed, violation }) =>
    console.log(
      violation === null
        ? `seed ${seed}: two runs, two traces`
        : `seed ${seed}: ${violation.rule} broken: ${violation.what.split("\n")[0]}`,
    ));
  const seconds = (performance.now() - began) / 1_000;
  const missing = count < ENOUGH_SEEDS ? [] : batch.tally.missing(SOMETIMES);
  for (const { seed, violation } of batch.failed.slice(0, SHRUNK_FAILURES)) {
    if (violation !== null) await explain(seed, violation.rule);
  }
  for (const [what, times] of [...batch.tally.counts].sort()) {
    console.log(`${String(times).padStart(9)} ${what}`);
  }
  if (missing.length > 0) console.log(`never happened: ${missing.join(", ")}`);
  console.log(
    `${batch.reports} seeds (${from} to ${from + count - 1}) at ${await commitId()} in ${
      seconds.toFixed(1)
    } s: ` +
      `${batch.commits} commits, ${
        Math.round(batch.virtualMs / HOUR_MS)
      } virtual hours, ${batch.failed.length} failed`,
  );
  return batch.failed.length === 0 && missing.length === 0;
}

const script = option("script"), seed = option("seed");
const ok = script !== undefined
  ? await one(JSON.parse(script))
  : seed !== undefined
  ? await one(scriptOf(Number(seed)))
  : await many(Number(option("from") ?? 1), Number(option("seeds") ?? 200), Number(option("threads") ?? 2));
Deno.exit(ok ? 0 : 1);

/**
 * `deno task mutate [--file F] [--jobs N] [--list]`: changes the rules nobody may get wrong one small step at a time and runs their
 * tests, which must fail. Prints every mutant that no test noticed and is not in `mutate/justified.ts`; exits 1 on any.
 */
import { JUSTIFIED, type Justified } from "./mutate/justified.ts";
import { applied, type Mutant, mutantsOf } from "./mutate/mutants.ts";
import { Copy, type Fate } from "./mutate/run.ts";
import { type Target, TARGETS } from "./mutate/targets.ts";

const TREE = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

interface Result {
  target: Target;
  mutant: Mutant;
  fate: Fate;
}

const flag = (args: string[], name: string): string | undefined => {
  const at = args.indexOf(name);
  return at === -1 ? undefined : args[at + 1];
};

async function main(args: string[]): Promise<number> {
  const only = flag(args, "--file"), workers = Number(flag(args, "--jobs") ?? 2);
  const targets = TARGETS.filter(({ file }) => only === undefined || file.includes(only));
  if (targets.length === 0) return complain(`no target is called ${only}`);
  const work: { target: Target; mutant: Mutant; text: string }[] = [];
  for (const target of targets) {
    const text = await Deno.readTextFile(`${TREE}/${target.file}`);
    for (const mutant of mutantsOf(text)) work.push({ target, mutant, text: applied(text, mutant) });
  }
  if (args.includes("--list")) {
    for (const { target, mutant } of work) console.log(`${target.file}:${mutant.line} ${mutant.is}`);
    return 0;
  }

  const copies = await Promise.all(Array.from({ length: workers }, () => Copy.of(TREE)));
  try {
    const limits = new Map<Target, number>();
    for (const target of targets) {
      const started = performance.now();
      if (await copies[0]!.try(target, null, 300_000) !== "survived") {
        return complain(`the tests of ${target.file} fail as it is`);
      }
      limits.set(target, 10_000 + 4 * (performance.now() - started));
    }
    const results: Result[] = [];
    let next = 0;
    await Promise.all(copies.map(async (copy) => {
      for (let one = work[next++]; one !== undefined; one = work[next++]) {
        const { target, mutant, text } = one;
        results.push({ target, mutant, fate: await copy.try(target, text, limits.get(target)!) });
      }
    }));
    return report(targets, results);
  } finally {
    await Promise.all(copies.map((copy) => copy.remove()));
  }
}

const names = (file: string, mutant: Mutant) => (one: Justified) =>
  one.file === file && one.was === mutant.was && one.is === mutant.is;

function report(targets: readonly Target[], results: Result[]): number {
  const survivors = results.filter(({ fate }) => fate === "survived");
  const open = survivors.filter(({ target, mutant }) => !JUSTIFIED.some(names(target.file, mutant)));
  for (const { target: { file }, mutant } of open) {
    console.log(`${file}:${mutant.line} survived\n  - ${mutant.was}\n  + ${mutant.is}`);
  }
  const files = new Set(targets.map(({ file }) => file));
  const stale = JUSTIFIED.filter((one) =>
    files.has(one.file) && !survivors.some(({ target, mutant }) => names(target.file, mutant)(one))
  );
  for (const { file, is } of stale) console.log(`${file}: justified and yet no survivor: ${is}`);
  for (const target of targets) {
    const its = results.filter((result) => result.target === target);
    const of = (fate: Fate) => its.filter((result) => result.fate === fate).length;
    console.log(
      `${target.file}: ${its.length} mutants, ${of("killed")} killed, ${of("timed out")} timed out, ${
        of("survived")
      } survived`,
    );
  }
  console.log(
    `${results.length} mutants, ${survivors.length} survived, ${
      survivors.length - open.length
    } of them justified`,
  );
  return open.length + stale.length === 0 ? 0 : 1;
}

function complain(what: string): number {
  console.error(`Cannot mutate: ${what}.`);
  return 2;
}

if (import.meta.main) Deno.exit(await main(Deno.args));

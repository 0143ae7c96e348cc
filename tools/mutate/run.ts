/** Runs mapped tests over a mutated copy of the tree. */
import type { Target } from "./targets.ts";

export type Fate = "killed" | "timed out" | "survived";

/** What the copy does without. */
const LEFT_OUT = new Set([".git", "data", "node_modules"]);

/** A copy of the tree that one mutant at a time is put into. */
export class Copy {
  private constructor(readonly root: string) {}

  static async of(tree: string): Promise<Copy> {
    const root = await Deno.makeTempDir({ prefix: "mutate-" });
    for await (const { name } of Deno.readDir(tree)) {
      if (!LEFT_OUT.has(name)) await copy(`${tree}/${name}`, `${root}/${name}`);
    }
    return new Copy(root);
  }

  /** Tests of the target over `text` in place of its file; null runs them over the file as it is. */
  async try(target: Target, text: string | null, limitMs: number): Promise<Fate> {
    const path = `${this.root}/${target.file}`;
    const original = await Deno.readTextFile(path);
    if (text !== null) await Deno.writeTextFile(path, text);
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(), limitMs);
    try {
      const args = ["test", "--allow-all", "--no-check", "--fail-fast", "--quiet", ...target.tests];
      const command = new Deno.Command(Deno.execPath(), {
        args,
        cwd: this.root,
        env: { FUZZ_SEED: "1", NO_COLOR: "1" },
        // Of the file as it is everything is said: it should pass.
        stdout: text === null ? "inherit" : "null",
        stderr: text === null ? "inherit" : "null",
        signal: end.signal,
      });
      const { success } = await command.output();
      return success ? "survived" : end.signal.aborted ? "timed out" : "killed";
    } finally {
      clearTimeout(timer);
      await Deno.writeTextFile(path, original);
    }
  }

  async remove(): Promise<void> {
    await Deno.remove(this.root, { recursive: true });
  }
}

async function copy(from: string, to: string): Promise<void> {
  const info = await Deno.stat(from);
  if (!info.isDirectory) return await Deno.copyFile(from, to);
  await Deno.mkdir(to, { recursive: true });
  for await (const entry of Deno.readDir(from)) await copy(`${from}/${entry.name}`, `${to}/${entry.name}`);
}

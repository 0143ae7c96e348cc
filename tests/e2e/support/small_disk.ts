/** A disk of its own for a store, that a test fills and empties: a small tmpfs. Mounting one needs root. */
import assert from "node:assert/strict";

const run = async (program: string, args: string[]) => {
  try {
    const { success, stderr } = await new Deno.Command(program, { args }).output();
    return success ? null : new TextDecoder().decode(stderr).trim();
  } catch (error) {
    return (error as Error).message;
  }
};

/** Why no disk can be mounted here, or null. */
export async function whyNoDisk(): Promise<string | null> {
  if (Deno.build.os !== "linux") return "a tmpfs needs Linux";
  const folder = await Deno.makeTempDir({ prefix: "pm-disk-" });
  const refused = await run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]);
  if (refused === null) await run("umount", [folder]);
  await Deno.remove(folder);
  return refused;
}

export interface SmallDisk extends AsyncDisposable {
  folder: string;
  /** Takes all the space that is left. */
  fill(): Promise<void>;
  /** Gives it back. */
  empty(): Promise<void>;
}

export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const folder = await Deno.makeTempDir({ prefix: "pm-disk-" });
  const ballast = `${folder}/ballast`;
  assert.equal(await run("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", folder]), null);
  return {
    folder,
    async fill() {
      using file = await Deno.open(ballast, { create: true, append: true });
      for (const size of [65_536, 4_096]) {
        const bytes = new Uint8Array(size);
        // Until the disk takes no more of them.
        while (await file.write(bytes).then((written) => written > 0, () => false));
      }
    },
    empty: () => Deno.remove(ballast),
    async [Symbol.asyncDispose]() {
      await run("umount", ["-l", folder]);
      await Deno.remove(folder);
    },
  };
}

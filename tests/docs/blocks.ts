/** Fenced code blocks of Markdown files, and what can be found out of each in its language. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface Block {
  /** `docs/operate.md:42`: where its fence opens. */
  at: string;
  /** `ts`, `sh`, … */
  language: string;
  /** Marked with `run` behind the language. */
  runs: boolean;
  code: string;
}

/** Every fenced block of a file of the project. Throws on one without a language. */
export async function blocksOf(path: string): Promise<Block[]> {
  const lines = (await Deno.readTextFile(ROOT + path)).split("\n");
  const blocks: Block[] = [];
  for (let i = 0; i < lines.length; i++) {
    const fence = /^```(\S*)\s*(.*)$/.exec(lines[i]!);
    if (fence === null) continue;
    const at = `${path}:${i + 1}`;
    const end = lines.indexOf("```", i + 1);
    assert.ok(end > 0, `${at} is never closed`);
    assert.ok(fence[1], `${at} names no language`);
    blocks.push({
      at,
      language: fence[1],
      runs: fence[2] === "run",
      code: lines.slice(i + 1, end).join("\n") + "\n",
    });
    i = end;
  }
  return blocks;
}

export interface Ran {
  code: number;
  stdout: string;
  /** Both streams. */
  text: string;
}

/** Runs a program to its end; null when this machine does not have it. */
export async function program(
  name: string,
  args: string[],
  options: { cwd?: string; env?: Record<string, string>; stdin?: string } = {},
): Promise<Ran | null> {
  const { stdin, ...more } = options;
  try {
    const child = new Deno.Command(name, {
      args,
      cwd: ROOT,
      ...more,
      env: { NO_COLOR: "1", ...more.env },
      stdin: stdin === undefined ? "null" : "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    if (stdin !== undefined) {
      const writer = child.stdin.getWriter();
      await writer.write(new TextEncoder().encode(stdin));
      await writer.close();
    }
    const { code, stdout, stderr } = await child.output();
    const [out, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)) as [
      string,
      string,
    ];
    return { code, stdout: out, text: out + errors };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** What a Java block needs to compile: the library's class and exception as its source declares them, without their bodies. */
const JAVA_LIBRARY: Record<string, string> = {
  "com/standardwebhooks/exceptions/EmptyWebhookSecretException.java":
    "package com.standardwebhooks.exceptions; public class EmptyWebhookSecretException extends Exception {}",
  "com/standardwebhooks/exceptions/WebhookVerificationException.java":
    "package com.standardwebhooks.exceptions; public class WebhookVerificationException extends Exception {}",
  "com/standardwebhooks/Webhook.java": `package com.standardwebhooks;
import com.standardwebhooks.exceptions.*;
public final class Webhook {
  public Webhook(String secret) throws EmptyWebhookSecretException {}
  public void verify(String payload, java.util.Map<String, java.util.List<String>> headers)
    throws WebhookVerificationException {}
}`,
};

/** Whether a block is well-formed in its language. `unchecked`: nothing here can tell. */
export async function wellFormed({ at, language, code }: Block): Promise<"checked" | "unchecked"> {
  const folder = await Deno.makeTempDir({ prefix: "pm-docs-" });
  const inProject = `${ROOT}.docs-block-${crypto.randomUUID()}.ts`;
  const judge = (ran: Ran | null): "checked" | "unchecked" => {
    if (ran === null) return "unchecked";
    assert.equal(ran.code, 0, `${at}\n${ran.text}`);
    return "checked";
  };
  try {
    switch (language) {
      case "json":
        JSON.parse(code);
        return "checked";
      case "sh":
        return judge(await program("sh", ["-n"], { stdin: code }));
      case "python":
        return judge(
          await program("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { stdin: code }),
        );
      case "ts": {
        // Inside the project, so that its import map and options hold; the library under its published name.
        const mapped = code.replace('"@pylota/webhooks"', '"./mod.ts"');
        await Deno.writeTextFile(inProject, mapped);
        return judge(await program(Deno.execPath(), ["check", inProject]));
      }
      case "java": {
        const name = /public class (\w+)/.exec(code)![1]!;
        for (const [path, text] of Object.entries({ ...JAVA_LIBRARY, [`${name}.java`]: code })) {
          await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
          await Deno.writeTextFile(`${folder}/${path}`, text);
        }
        return judge(
          await program("javac", [
            "-Werror",
            "-proc:none",
            "-cp",
            folder,
            "-d",
            `${folder}/out`,
            `${name}.java`,
          ], { cwd: folder }),
        );
      }
      case "go":
        return judge(await program("gofmt", ["-e"], { stdin: code }));
      case "ruby":
        return judge(await program("ruby", ["-c"], { stdin: code }));
      case "yaml":
        return "unchecked";
      default:
        throw new Error(`${at}: no check for ${language}; add one`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
    await Deno.remove(inProject).catch(() => {});
  }
}

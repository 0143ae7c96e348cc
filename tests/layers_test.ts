/** The layers hold: by the module graph that `deno info` sees, and by the lint rules, which are tested here themselves. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import plugin from "../lint/layers.ts";

const ROOT = new URL("../", import.meta.url);
/** From the inside out: a file may import its own layer and those before it. */
const LAYERS = [/^lib\/(?!edge\/)/, /^lib\/edge\//, /^(actors|migrations)\//, /^routes\//, /^main\.ts$/];
/** What pure code may import beside its own layer: no effect among it. */
const PURE_IMPORTS = /^(npm:\/?(zod|ulid|ipaddr\.js|postal-mime)@|node:(crypto|buffer)$)/;

interface Dependency {
  specifier: string;
  code?: { specifier?: string; error?: string };
  type?: { specifier?: string };
}
interface Graph {
  modules: { specifier: string; error?: string; dependencies?: Dependency[] }[];
}

async function sourceFiles(): Promise<string[]> {
  const found: string[] = [];
  const walk = async (dir: string): Promise<void> => {
    for await (const entry of Deno.readDir(new URL(dir, ROOT))) {
      if (entry.isDirectory) await walk(`${dir}${entry.name}/`);
      else if (entry.name.endsWith(".ts")) found.push(dir + entry.name);
    }
  };
  for (const dir of ["lib/", "actors/", "routes/", "migrations/"]) await walk(dir);
  if (await Deno.stat(new URL("main.ts", ROOT)).catch(() => null)) found.push("main.ts");
  return found.sort();
}

/** One graph of every source file: `deno info` over a module that imports them all. */
async function graph(): Promise<Map<string, { code: string[]; all: string[] }>> {
  const dir = await Deno.makeTempDir();
  try {
    const files = await sourceFiles();
    const all = files.map((file) => `import ${JSON.stringify(new URL(file, ROOT).href)};\n`)
      .join("");
    await Deno.writeTextFile(`${dir}/all.ts`, all);
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--config", fileURLToPath(new URL("deno.json", ROOT)), `${dir}/all.ts`],
      cwd: fileURLToPath(ROOT),
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as Graph;
    const found = new Map(
      modules.filter((m) => m.specifier.startsWith(ROOT.href) && m.specifier.endsWith(".ts")).map((m) => {
        const code = (m.dependencies ?? []).flatMap((d) => d.code?.specifier ?? []);
        const types = (m.dependencies ?? []).flatMap((d) => d.type?.specifier ?? []);
        return [inside(m.specifier), { code: code.map(inside), all: [...code, ...types].map(inside) }];
      }),
    );
    for (const file of files) assert.ok(found.has(file), `${file} is not in the graph`);
    return found;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const inside = (url: string): string => url.startsWith(ROOT.href) ? url.slice(ROOT.href.length) : url;
const layerOf = (file: string): number => LAYERS.findIndex((pattern) => pattern.test(file));

Deno.test("layers: imports point one way, lib <- lib/edge <- actors <- routes <- main", async () => {
  const wrong: string[] = [];
  for (const [file, { all, code }] of await graph()) {
    const layer = layerOf(file);
    assert.notEqual(layer, -1, `${file} is in no layer`);
    for (const target of all) {
      const outside = /^(npm:|node:|https?:|jsr:)|\.json$|^docs\/[a-z-]+\.md$/.test(target); // the guides are text
      if (!outside && (layerOf(target) > layer || layerOf(target) === -1)) {
        wrong.push(`${file} imports ${target}`);
      }
    }
    for (const target of code) {
      if (/^(https?:|jsr:)/.test(target)) wrong.push(`${file} imports ${target}`);
      if (layer === 0 && /^(npm:|node:)/.test(target) && !PURE_IMPORTS.test(target)) {
        wrong.push(`${file} is pure and imports ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("layers: no file needs itself to load", async () => {
  const modules = await graph();
  const done = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    const seen = path.indexOf(file);
    assert.equal(seen, -1, `a cycle: ${[...path.slice(seen), file].join(" -> ")}`);
    if (done.has(file)) return;
    for (const target of modules.get(file)?.code ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of modules.keys()) visit(file, []);
});

const lint = (file: string, source: string): string[] =>
  Deno.lint.runPlugin(plugin, file, source).map((d) => d.id.replace("layers/", ""));

Deno.test("lint layers: the clock, randomness, timers and the network are refused outside the edge", () => {
  const refused = [
    "Date.now()",
    "const f = Date.now",
    "new Date()",
    "new Date",
    "Date()",
    "Math.random()",
    "performance.now()",
    "crypto.getRandomValues(new Uint8Array(1))",
    "globalThis.crypto.randomUUID()",
    "setTimeout(f, 1)",
    "setInterval(f, 1)",
    "globalThis.setTimeout(f, 1)",
    "AbortSignal.timeout(5)",
    "fetch('https://example.com')",
    "globalThis.fetch",
    "new WebSocket('wss://example.com')",
    "Deno.connect({ port: 1 })",
    "Deno.resolveDns('example.com', 'A')",
    "import { randomBytes } from 'node:crypto'",
    "import { request } from 'node:https'",
    "import { Agent } from 'undici'",
    "import { setTimeout as wait } from 'node:timers/promises'",
  ];
  for (const source of refused) {
    assert.deepEqual(lint("actors/x.ts", source), ["effects"], source);
    assert.deepEqual(lint("lib/edge/ports.ts", source), [], source);
    assert.deepEqual(lint("tests/x_test.ts", source), [], source);
    assert.deepEqual(lint("main.ts", source), [], source);
  }
});

Deno.test("lint layers: what takes a port, or is pure, is fine; dialling is for the dialer and the resolver", () => {
  const fine = [
    "new Date(now)",
    "d.now()",
    "app.fetch(request)",
    "timers.after(5, f)",
    "random.bytes(3)",
    "import { createHmac, hash } from 'node:crypto'",
    "import type { Agent } from 'undici'",
    "queueMicrotask(f)",
    "x.Date.parse('1')",
  ];
  for (const source of fine) assert.deepEqual(lint("actors/x.ts", source), [], source);
  for (
    const file of [
      "lib/edge/dialer.ts",
      "lib/edge/dialer_fetch.ts",
      "lib/edge/resolver.ts",
      "lib/edge/pools.ts",
    ]
  ) {
    assert.deepEqual(lint(file, "import { Agent } from 'undici'; Deno.resolveDns('a', 'A')"), [], file);
    assert.deepEqual(lint(file, "Date.now()"), ["effects"], file);
  }
});

Deno.test("lint layers: keys of the store are built in lib/keys.ts alone", () => {
  const refused = [
    "kv.get(['ev', id])",
    "kv.atomic().set(['ev', id], 1)",
    "tx.delete([...prefix, id])",
    "kv.getMany([['a'], ['b']])",
    "kv.list({ prefix: ['ev'] })",
    "const w = { op: 'set', key: ['ev', id], value: 1 }",
    "kv.list({ start: [...keys.events(), a], end: keys.event(b) })",
  ];
  for (const source of refused) {
    assert.ok(lint("actors/x.ts", source).includes("keys"), source);
    assert.deepEqual(lint("lib/keys.ts", source), [], source);
    assert.deepEqual(lint("tests/x_test.ts", source), [], source);
  }
  const fine = [
    "kv.get(keys.event(id))",
    "kv.list({ prefix: keys.events() })",
    "map.set(id, [1])",
    "x({ key: [] })",
  ];
  for (const source of fine) assert.deepEqual(lint("actors/x.ts", source), [], source);
});

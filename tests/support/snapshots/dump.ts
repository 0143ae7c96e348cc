/** A store as text: one row a line, portable between releases of Deno KV and readable in a review. */

interface Line {
  key: unknown[];
  value: unknown;
}

/** JSON has no bytes, no big integers and no `undefined`: they travel as `{"$": kind, "is": text}`. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $: "bytes", is: value.toBase64() };
  if (typeof value === "bigint") return { $: "bigint", is: String(value) };
  if (value === undefined) return { $: "undefined" };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

function rich(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rich);
  if (typeof value !== "object" || value === null) return value;
  const { $, is } = value as { $?: string; is?: string };
  if ($ === "bytes") return Uint8Array.fromBase64(is!);
  if ($ === "bigint") return BigInt(is!);
  if ($ === "undefined") return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, rich(inner)]));
}

/** All rows of a store, in key order. */
export async function dump(kv: Deno.Kv): Promise<string> {
  const lines: string[] = [];
  for await (const { key, value } of kv.list({ prefix: [] })) {
    lines.push(JSON.stringify({ key: plain([...key]), value: plain(value) }));
  }
  return lines.join("\n") + "\n";
}

/** The rows of a dump. */
export function* rowsOf(text: string): Generator<{ key: Deno.KvKey; value: unknown }> {
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const { key, value } = JSON.parse(line) as Line;
    yield { key: rich(key) as Deno.KvKey, value: rich(value) };
  }
}

/** Puts a dump into an empty store. */
export async function load(kv: Deno.Kv, text: string): Promise<void> {
  for (const { key, value } of rowsOf(text)) await kv.set(key, value);
}

/** Golden files: exact bytes. `UPDATE_GOLDEN=1` writes them; the diff is then for a person to judge. */
import assert from "node:assert/strict";

export async function golden(name: string, bytes: Uint8Array): Promise<void> {
  const file = new URL(`../golden/${name}`, import.meta.url);
  if (Deno.env.get("UPDATE_GOLDEN") === "1") {
    await Deno.mkdir(new URL(".", file), { recursive: true });
    return await Deno.writeFile(file, bytes);
  }
  const expected = await Deno.readFile(file);
  const text = new TextDecoder();
  assert.equal(text.decode(bytes), text.decode(expected));
  assert.deepEqual(bytes, expected);
}

/**
 * Secrets of a development or test store: made at the first start and kept beside the KV file, so that what one start
 * sealed the next one opens. Never used in production, where `config.ts` demands them from the environment.
 */
import { Buffer } from "node:buffer";
import { dirname } from "node:path";
import * as z from "zod";
import { Secret, SECRET_BYTES } from "./config_vars.ts";
import { kvPlace } from "./open_kv.ts";
import type { Random } from "./ports.ts";

export interface LocalSecrets {
  masterKey: Secret;
  keyPepper: Secret;
  hashKey: Secret;
}

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const fileShape = z.strictObject({
  PM_MASTER_KEY: z.base64(),
  PM_KEY_PEPPER: z.base64(),
  PM_HASH_KEY: z.base64(),
});
type FileShape = z.infer<typeof fileShape>;

/** The file can neither be read nor made, or holds something else. */
export class LocalSecretsError extends Error {
  override name = "LocalSecretsError";
}

/** Where the secrets of a KV file are kept. */
export const secretsPath = (kvPath: string): string => `${kvPath}.secrets.json`;

/**
 * The secrets of the store at `kvPath`; made and written (mode 0600) when there are none. Of two processes that start at
 * once both get the same ones. A store that is not a file gets fresh ones that are kept nowhere. Throws `LocalSecretsError`.
 */
export async function localSecrets(kvPath: string, random: Pick<Random, "bytes">): Promise<LocalSecrets> {
  if (kvPlace(kvPath) !== "file") return fromShape(generate(random));
  const path = secretsPath(kvPath);
  try {
    return fromShape(await read(path) ?? await create(path, random));
  } catch (error) {
    throw new LocalSecretsError(
      `Cannot use the development secrets in ${path}: ${error instanceof Error ? error.message : error}. ` +
        "Restore the file, or set PM_MASTER_KEY, PM_KEY_PEPPER and PM_HASH_KEY. Without the old ones, endpoint " +
        "secrets and API keys of this store are lost.",
      { cause: error },
    );
  }
}

async function read(path: string): Promise<FileShape | null> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  const parsed = parse(text);
  if (!parsed) throw new Error("it is not a secrets file of this service");
  return parsed;
}

function parse(text: string): FileShape | null {
  try {
    return fileShape.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** Written whole under a name of its own, then linked: who links first wins and no reader sees half a file. */
async function create(path: string, random: Pick<Random, "bytes">): Promise<FileShape> {
  const shape = generate(random);
  await Deno.mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  const draft = `${path}.${Buffer.from(random.bytes(8)).toString("hex")}`;
  await Deno.writeTextFile(draft, JSON.stringify(shape, null, 2) + "\n", {
    mode: FILE_MODE,
    createNew: true,
  });
  try {
    await Deno.link(draft, path);
    return shape;
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    return (await read(path))!;
  } finally {
    await Deno.remove(draft);
  }
}

function generate(random: Pick<Random, "bytes">): FileShape {
  const one = () => Buffer.from(random.bytes(SECRET_BYTES)).toString("base64");
  return { PM_MASTER_KEY: one(), PM_KEY_PEPPER: one(), PM_HASH_KEY: one() };
}

function fromShape(shape: FileShape): LocalSecrets {
  return {
    masterKey: secret(shape.PM_MASTER_KEY),
    keyPepper: secret(shape.PM_KEY_PEPPER),
    hashKey: secret(shape.PM_HASH_KEY),
  };
}

function secret(text: string): Secret {
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  if (bytes.length !== SECRET_BYTES) {
    throw new Error(`a secret in it has ${bytes.length} bytes, not ${SECRET_BYTES}`);
  }
  return new Secret(bytes);
}

/**
 * The event catalogue (reference §5): every built-in type with the schema of its `data`, an example and a description.
 * What an application registers itself is beside it (`custom_types.ts`); its names never collide with these.
 */
import type * as z from "zod";
import { nearest } from "./nearest.ts";
import { domainTypes } from "./payloads/domain.ts";
import { jobTypes } from "./payloads/job.ts";
import { mailboxTypes } from "./payloads/mailbox.ts";
import { platformTypes } from "./payloads/platform.ts";

export interface EventType {
  name: string;
  owner: "mailbox" | "domain" | "job" | "platform";
  /** zod schema of `data`, strict: what goes out is exactly this. */
  data: z.ZodType;
  example: unknown;
  description: string;
}

/** Built-in types by name, in the reference's order. */
export const catalogue: ReadonlyMap<string, EventType> = new Map(
  [...mailboxTypes, ...domainTypes, ...jobTypes, ...platformTypes].map((type) => [type.name, type]),
);

/**
 * What to say of an unknown type: `unknown event type "message.recieved"; the nearest is "message.received"`.
 * @param known names besides the built-in ones: the tenant's own types.
 */
export function unknownType(name: string, known: Iterable<string> = []): string {
  return unknownAmong(name, [...catalogue.keys(), ...known]);
}

/** The same among other names: a custom owner takes registered types alone. */
export function unknownAmong(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return `unknown event type ${JSON.stringify(name.slice(0, 128))}` +
    (near === null ? "; none is registered yet" : `; the nearest is "${near}"`);
}

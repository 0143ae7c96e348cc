/** A mailbox in the owners' world: shorthand for commands, and mails of invented people. */
import assert from "node:assert/strict";
import { createIdentity } from "../../actors/mailbox/identity.ts";
import { recordOutcome } from "../../actors/mailbox/outcomes.ts";
import { queueMessage } from "../../actors/mailbox/queue.ts";
import type { Outcome } from "../../actors/mailbox/outcome_input.ts";
import { receiveMessage, type ReceiveOptions } from "../../actors/mailbox/receive.ts";
import type { Done } from "../../actors/mailbox/store.ts";
import type { Tx } from "../../actors/owner.ts";
import { ApiError } from "../../lib/errors.ts";
import type { Id, IdentityId } from "../../lib/ids.ts";
import type { OwnerRef } from "../../lib/keys.ts";
import type { ParsedMessage } from "../../lib/mail.ts";
import type { MessageSummary } from "../../lib/payloads/shapes.ts";
import { type Envelope, type World, world } from "../owners/bench_owner.ts";

export type MessageId = Id<"message">;
export const HASH_KEY = new TextEncoder().encode("the hash key of the mailbox tests");
export const NOOR = "noor@werkbank.example";
export const MARTA = "marta@lindenhof.example";

/** A mailbox under test. */
export interface Box {
  w: World;
  owner: OwnerRef & { id: IdentityId };
  run<T>(command: (tx: Tx) => Promise<T> | T): Promise<T>;
  receive(change?: Partial<ParsedMessage>, options?: ReceiveOptions): Promise<Done<MessageSummary>>;
  queue(change?: Partial<ParsedMessage>, bcc?: string[]): Promise<Done<MessageSummary>>;
  outcome(message: string, outcome: Outcome): Promise<Done<MessageSummary>>;
  /** Types of all events so far. */
  types(): Promise<string[]>;
  last(): Promise<Envelope>;
}

export const mail = (change: Partial<ParsedMessage> = {}): ParsedMessage => ({
  from: { address: MARTA, name: "Marta Oduya" },
  to: [{ address: NOOR, name: "Noor Aziz" }],
  cc: [],
  delivered_to: null,
  subject: "Offer for the standing desks",
  sent_at: null,
  message_id: null,
  in_reply_to: null,
  references: [],
  kind: "mail",
  trust: { verdict: "unknown", spf: "none", dkim: "none", dmarc: "none" },
  quarantine_reason: null,
  labels: [],
  flags: [],
  text: "Hello Noor",
  attachments: [],
  ...change,
});

/** Runs a test over a fresh mailbox whose one address is `NOOR`; its `identity.created` is sequence 1. */
export const withBox = (body: (box: Box) => Promise<void>) => () =>
  world(async (w) => {
    const owner = { kind: "mailbox" as const, tenant: w.tenant.id, id: w.ids.next("identity") };
    const run: Box["run"] = (command) => w.owners.run(owner, command);
    await run((tx) => createIdentity(tx, { display_name: "Noor Aziz", address: NOOR }));
    await body({
      w,
      owner,
      run,
      receive: (change, options) => run((tx) => receiveMessage(tx, mail(change), options)),
      queue: (change, bcc = []) => run((tx) => queueMessage(tx, HASH_KEY, outbound(change), { bcc })),
      outcome: (message, outcome) => run((tx) => recordOutcome(tx, HASH_KEY, message as MessageId, outcome)),
      types: async () => (await w.envelopes()).map((envelope) => envelope?.type ?? "erased"),
      last: async () => (await w.envelopes()).at(-1)!,
    });
  });

const outbound = (change: Partial<ParsedMessage> = {}) =>
  mail({ from: { address: NOOR, name: "Noor Aziz" }, to: [{ address: MARTA, name: null }], ...change });

/** Asserts an `ApiError` of this code, and that nothing was sent meanwhile. */
export async function refuses(
  box: Box,
  code: string,
  act: () => Promise<unknown>,
  why = "",
): Promise<ApiError> {
  const before = (await box.types()).length;
  const thrown = await act().then(() => null, (error) => error);
  assert.ok(thrown instanceof ApiError, `${why}: ${thrown}`);
  assert.equal(thrown.code, code, why);
  assert.equal((await box.types()).length, before, `${why}: nothing is sent`);
  return thrown;
}

export const paths = (error: ApiError): string[] =>
  (error.details?.errors as { path: string }[]).map(({ path }) => path);

/**
 * Pylota webhooks as a library.
 *
 * - {@link makeOutbox}: appends an event inside your own `kv.atomic()`, so that it exists if and only if your change committed. A
 *   running service on the same KV delivers it.
 * - {@link sharedFile}: a KV file that your application and the service both write to.
 * - {@link sign} and {@link verify}: [Standard Webhooks](https://www.standardwebhooks.com), for senders and receivers.
 *
 * `examples/orders` is a small application that uses all three.
 *
 * @module
 */
export {
  type AppendedEvent,
  makeOutbox,
  type Outbox,
  OutboxError,
  type OutboxEvent,
  type OutboxOptions,
} from "./mod/outbox.ts";
export { sharedFile } from "./mod/shared_file.ts";
export {
  type Message,
  sign,
  type Verified,
  verify,
  type VerifyOptions,
  type WebhookHeaders,
  WebhookVerificationError,
} from "./mod/webhooks.ts";
export type { VerifyFault } from "./lib/verify.ts";

/** The library's outbox: `actors/outbox.ts` with plain strings and errors of its own. */
import { ApiError } from "../lib/errors.ts";
import { aKind, parseId } from "../lib/ids.ts";
import { realIds, realNow } from "../lib/edge/ports.ts";
import { makeOutbox as makeRows } from "../actors/outbox.ts";

/** What {@link Outbox.append} takes. */
export interface OutboxEvent {
  /** The tenant it belongs to: `ten_…`. */
  tenant: string;
  /** Your own key of the thing that changed, 1 to 256 bytes: its events are numbered in order. */
  owner: string;
  /** A type the tenant registered, such as `order.paid`. */
  type: string;
  /** A JSON value that the type's schema accepts. */
  data: unknown;
  /** An `evt_…` of your own. Seen before by this owner, nothing is appended and the first event is answered. */
  id?: string;
}

/** An event on its way: it exists once the operation it was put on has committed. */
export interface AppendedEvent {
  /** `evt_…`: the `webhook-id` of its deliveries. */
  id: string;
  /** Its type. */
  type: string;
  /** Its number among the owner's events: strictly increasing, never reused. */
  sequence: number;
  /** When it occurred, as its envelope says. */
  occurredAt: Date;
  /** Whether the id had been appended before; the other fields are then the first one's. */
  duplicate: boolean;
}

/** Settings of an outbox. */
export interface OutboxOptions {
  /**
   * Whether a commit rings `kv.enqueue`, which wakes a service in this process, or on a KV with queues, at once. Without it, and
   * for a service in another process, delivery begins within a second or two. Default `false`: not every platform has queues.
   */
  doorbell?: boolean;
}

/** Appends events to your own commits. Made by {@link makeOutbox}. */
export interface Outbox {
  /**
   * Puts an event on an operation, beside your own checks and writes. Call it once for each event, then commit the operation. When
   * the commit answers `ok: false`, another was faster: build the operation again, events included.
   *
   * @throws {OutboxError} `invalid_request` for an unknown type, data its schema refuses or a bad key; `tenant_not_found`.
   */
  append(operation: Deno.AtomicOperation, event: OutboxEvent): Promise<AppendedEvent>;
}

/** The event cannot be appended; nothing was put on the operation. */
export class OutboxError extends Error {
  /** Always `OutboxError`. */
  override name = "OutboxError";
  /** Made by {@link Outbox.append}. */
  constructor(
    /** As the HTTP API's error codes: `invalid_request`, `tenant_not_found`, `payload_too_large`. */
    readonly code: string,
    message: string,
    /** The way out. */
    readonly fix: string,
    /** Which field breaks which rule. */
    readonly errors: readonly { path: string; message: string }[] = [],
  ) {
    super(message);
  }
}

/**
 * An outbox over the KV that a service runs on. The service must have started on it once, and the tenant and the type must exist.
 *
 * @example An order and its event in one commit
 * ```ts ignore
 * import { makeOutbox } from "@pylota/webhooks";
 *
 * async function pay(kv: Deno.Kv, tenant: string, orderId: string) {
 *   const outbox = makeOutbox(kv);
 *   for (;;) {
 *     const order = await kv.get<{ state: string }>(["order", orderId]);
 *     const operation = kv.atomic().check(order).set(["order", orderId], { ...order.value, state: "paid" });
 *     const event = await outbox.append(operation, {
 *       tenant,
 *       owner: orderId,
 *       type: "order.paid",
 *       data: { order_id: orderId },
 *     });
 *     if ((await operation.commit()).ok) return event;
 *   }
 * }
 * ```
 */
export function makeOutbox(kv: Deno.Kv, options: OutboxOptions = {}): Outbox {
  const rows = makeRows({ kv, now: realNow, ids: realIds(), doorbell: options.doorbell ?? false });
  return {
    async append(operation, event) {
      try {
        const { id, type, sequence, occurred_at, duplicate } = await rows.append(operation, {
          tenant: idOf("tenant", "tenant", event.tenant),
          owner: event.owner,
          type: event.type,
          data: event.data,
          event_id: event.id === undefined ? undefined : idOf("event", "id", event.id),
        });
        return { id, type, sequence, occurredAt: new Date(occurred_at), duplicate };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const { code, message, fix, details } = error;
        throw new OutboxError(code, message, fix, details?.errors as OutboxError["errors"] | undefined);
      }
    },
  };
}

function idOf<K extends "tenant" | "event">(kind: K, path: string, text: string) {
  const id = parseId(kind, text);
  if (id !== null) return id;
  const errors = [{ path, message: `must be ${aKind(kind)} id` }];
  throw new OutboxError(
    "invalid_request",
    `Cannot append: ${path} must be ${aKind(kind)} id.`,
    "Correct it.",
    errors,
  );
}

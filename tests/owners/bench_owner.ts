/** A real KV with the owner actors over it, a manual clock and one tenant: what the owners' tests share. */
import { makeCommitter } from "../../lib/edge/committer.ts";
import { type EventId, type EventKey, type Id, makeIds, type TenantId } from "../../lib/ids.ts";
import { keys, type TenantRow } from "../../lib/keys.ts";
import { eventsIn, indexWrites } from "../../actors/event_index.ts";
import { loadEvents, type StoredEvent } from "../../actors/event_store.ts";
import { makeOwners } from "../../actors/owner.ts";

export const START = Date.UTC(2026, 9, 1);

export interface World {
  kv: Deno.Kv;
  committer: ReturnType<typeof makeCommitter>;
  owners: ReturnType<typeof makeOwners>;
  ids: ReturnType<typeof makeIds>;
  clock: { now: number };
  now(): number;
  tenant: TenantRow;
  /** Envelopes of the tenant's events in order, parsed; null where the payload is erased. */
  envelopes(): Promise<(Envelope | null)[]>;
  /** The same as text. */
  texts(): Promise<(string | null)[]>;
}

export interface Envelope {
  id: EventId;
  type: string;
  occurred_at: string;
  tenant_id: string;
  identity_id: string | null;
  sequence: number;
  data: Record<string, unknown>;
}

/** Runs a test in its own world and closes it. */
export async function world(body: (w: World) => Promise<void>): Promise<void> {
  const kv = await Deno.openKv(":memory:");
  try {
    const clock = { now: START };
    const now = () => clock.now;
    let seed = 1;
    const ids = makeIds(now, () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647);
    const combine = (events: unknown[]) => ({ writes: indexWrites(events as StoredEvent[]) });
    const committer = makeCommitter(kv, { maxInFlight: 1, combine });
    const owners = makeOwners({ kv, committer, now, ids });
    const tenant: TenantRow = {
      id: ids.next("tenant") as TenantId,
      partner_id: null,
      slug: "acme",
      name: "Acme",
      policy: { webhook_text_bytes: 16_384, retention: { events_days: 30 } },
      created_at: START,
      updated_at: START,
    };
    await kv.set(keys.tenant(tenant.id), tenant);
    const texts = async () => {
      const found: EventKey[] = [];
      for await (const { key } of eventsIn(kv, keys.eventsOfTenant(tenant.id))) found.push(key);
      const events = await loadEvents(kv, found);
      return found.map((key) => {
        const bytes = events.get(key)!.body;
        return bytes === null ? null : new TextDecoder().decode(bytes);
      });
    };
    const envelopes = async () =>
      (await texts()).map((text) => text === null ? null : JSON.parse(text) as Envelope);
    await body({ kv, committer, owners, ids, clock, now, tenant, envelopes, texts });
    await committer.idle();
  } finally {
    kv.close();
  }
}

export const someId = <K extends Parameters<World["ids"]["next"]>[0]>(w: World, kind: K) =>
  w.ids.next(kind) as Id<K>;

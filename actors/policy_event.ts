/** `tenant.policy_updated`, a platform event: its rows go into the commit of the change it tells of (O1). */
import { buildEnvelope } from "../lib/envelope.ts";
import { type EventId, type EventKey, type Ids, ulidTime } from "../lib/ids.ts";
import { keys, type TenantRow } from "../lib/keys.ts";
import type { Jobs } from "../lib/edge/jobs.ts";
import type { Write } from "../lib/edge/kv.ts";
import type { Actor } from "./audit.ts";
import { indexWrites } from "./event_index.ts";
import { eventWrites, type StoredEvent } from "./event_store.ts";

/** The event's rows and its Fanout job (J1). @param tenant the row after the change. */
export function policyUpdated(
  d: { now(): number; ids: Ids; jobs: Pick<Jobs, "write"> },
  tenant: TenantRow,
  fields: readonly string[],
  by: Actor,
): Write[] {
  const key = d.ids.ulid() as EventKey, id = `evt_${key}` as EventId, at = ulidTime(key);
  const data = {
    fields,
    by: by === null ? "platform" : "key",
    actor_key_id: by?.id ?? null,
    actor_user_id: null,
    policy_version: tenant.policy_version ?? 1,
  };
  const event: StoredEvent = {
    key,
    id,
    type: "tenant.policy_updated",
    tenant: tenant.id,
    partner: tenant.partner_id,
    identity: null,
    about: null,
    kind: "platform",
    owner: "platform",
    seq: null,
    at,
    body: buildEnvelope({
      id,
      type: "tenant.policy_updated",
      occurredAt: at,
      tenant: tenant.id,
      identity: null,
      sequence: null,
      data,
    }),
  };
  return [
    ...eventWrites(event),
    ...indexWrites([event]),
    { op: "set", key: keys.platformPending(key), value: at },
    ...d.jobs.write({ v: 1, kind: "fanout", events: [key] }, d.now()).writes,
  ];
}

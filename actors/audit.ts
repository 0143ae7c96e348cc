/** The audit trail: who changed what, in the same commit as the change. Rows hold ids and action names, never content. */
import type { Ids, PartnerId, TenantId } from "../lib/ids.ts";
import { type AuditRow, type KeyRow, keys, type Scope } from "../lib/keys.ts";
import type { Write } from "../lib/edge/kv.ts";

/** Who acts: a key, or null for a command on the machine itself. */
export type Actor = Pick<KeyRow, "id"> | null;

export interface AuditEntry {
  /** `webhook.created`, `key.revoked`, … */
  action: string;
  by: Actor;
  tenant: TenantId | null;
  partner: PartnerId | null;
  /** The id of what was changed. */
  subject: string;
}

/** One row for each scope that may see it: the tenant's, its partner's and the platform's. */
export function auditWrites(d: { now(): number; ids: Ids }, entry: AuditEntry): Write[] {
  const { action, tenant, partner, subject } = entry;
  const id = d.ids.next("audit");
  const value: AuditRow = {
    id,
    at: d.now(),
    action,
    key_id: entry.by?.id ?? null,
    tenant_id: tenant,
    partner_id: partner,
    subject,
  };
  const scopes: Scope[] = [{ level: "platform" }];
  if (tenant !== null) scopes.push({ level: "tenant", tenant });
  if (partner !== null) scopes.push({ level: "partner", partner });
  return scopes.map((scope) => ({ op: "set", key: keys.audit(scope, id), value }));
}

/** The API's answers as pages read them (reference §3). Times are RFC 3339 text. */

export interface List<T> {
  data: T[];
  next_cursor: string | null;
}

export interface Delivery {
  id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  attempt: number;
  first_attempt: number;
  status: "succeeded" | "failed" | "dead";
  http_status: number | null;
  error: string | null;
  duration_ms: number;
  next_attempt_at: string | null;
  created_at: string;
}

export interface EventIndex {
  id: string;
  type: string;
  tenant_id: string | null;
  identity_id: string | null;
  owner_kind: string;
  owner_id: string;
  sequence: number | null;
  occurred_at: string;
  erased: boolean;
}

export interface EndpointCreated {
  id: string;
  /** Absent when the same form was sent before: a secret is shown once. */
  secret?: string;
}

export interface AuditEntry {
  id: string;
  at: string;
  action: string;
  key_id: string | null;
  tenant_id: string | null;
  partner_id: string | null;
  subject: string;
}

export interface DeadLetterShown {
  id: string;
  kind: "fanout" | "deliver";
  webhook_id: string | null;
  events: number;
  error: string;
  created_at: string;
}

export interface TenantShown {
  id: string;
  partner_id: string | null;
  slug: string;
  name: string;
  created_at: string;
}

export interface PartnerShown {
  id: string;
  name: string;
  status: "active" | "suspended";
  created_at: string;
}

export interface EventTypeShown {
  name: string;
  description: string;
  schema: unknown;
  example: unknown;
}

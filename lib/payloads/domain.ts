/** Domain events (reference §5): owner kind `domain`, `identity_id` null. Schemas of `data`, examples and builders. */
import * as z from "zod";
import type { EventType } from "../catalogue.ts";

export const domainState = z.enum([
  "pending",
  "verifying",
  "healthy",
  "degraded",
  "failing",
  "suspended",
  "removed",
]);
export type DomainState = z.infer<typeof domainState>;

export const suspendReason = z.enum([
  "failing_14_days",
  "nameservers_changed",
  "ownership_record_missing",
  "registration_changed",
]);
export type SuspendReason = z.infer<typeof suspendReason>;

export const removeReason = z.enum(["requested", "zone_expired", "evicted", "unverified_expired"]);
export type RemoveReason = z.infer<typeof removeReason>;

/** What a check found wrong: a code, the DNS record it is about, and the way out. */
export const domainIssue = z.strictObject({
  code: z.string().regex(/^[a-z0-9_]{1,64}$/, "must be letters, digits and underscores, in lower case"),
  record: z.string().max(512),
  fix: z.string().max(1_024),
});
export type DomainIssue = z.infer<typeof domainIssue>;

const id = z.string().regex(/^dom_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
const time = z.iso.datetime({ precision: 3 });
const issues = z.array(domainIssue);

/** A domain as events and answers show it. */
export const domainSummary = z.strictObject({
  id,
  name: z.string(),
  state: domainState,
  created_at: time,
  verified_at: time.nullable(),
});
export type DomainSummary = z.infer<typeof domainSummary>;

const DOMAIN = "dom_01JD8T4Y0Z3M5Q7R9S1V2W4X6Y";
const NOT_VERIFIED: DomainSummary = {
  id: DOMAIN,
  name: "mail.acme.dev",
  state: "pending",
  created_at: "2026-10-01T08:00:00.000Z",
  verified_at: null,
};
const ISSUES: DomainIssue[] = [{
  code: "spf_missing",
  record: "mail.acme.dev TXT",
  fix: 'Add a TXT record "v=spf1 include:_spf.pylota.dev -all".',
}];

const type = (name: string, data: z.ZodType, example: unknown, description: string): EventType => ({
  name: `domain.${name}`,
  owner: "domain",
  data,
  example,
  description,
});

export const domainTypes: readonly EventType[] = [
  type(
    "created",
    z.strictObject({ domain: domainSummary }),
    { domain: NOT_VERIFIED },
    "A domain was added and waits for its records.",
  ),
  type(
    "verified",
    z.strictObject({ domain: domainSummary }),
    { domain: { ...NOT_VERIFIED, state: "healthy", verified_at: "2026-10-01T08:05:00.000Z" } },
    "Every record of a new domain was found: it went from verifying to healthy.",
  ),
  type(
    "degraded",
    z.strictObject({ domain_id: id, issues }),
    { domain_id: DOMAIN, issues: ISSUES },
    "The domain works with defects.",
  ),
  type(
    "failing",
    z.strictObject({ domain_id: id, issues, fallback_active: z.boolean() }),
    { domain_id: DOMAIN, issues: ISSUES, fallback_active: true },
    "The domain does not work; mail may leave by the fall-back domain.",
  ),
  type(
    "suspended",
    z.strictObject({ domain_id: id, reason: suspendReason }),
    { domain_id: DOMAIN, reason: "failing_14_days" },
    "The domain is no longer used until its checks pass again.",
  ),
  type(
    "recovered",
    z.strictObject({ domain_id: id, from_state: z.enum(["degraded", "failing", "suspended"]) }),
    { domain_id: DOMAIN, from_state: "degraded" },
    "The domain is healthy again.",
  ),
  type(
    "reminder",
    z.strictObject({ domain_id: id, state: domainState, hours_in_state: z.int().nonnegative() }),
    { domain_id: DOMAIN, state: "verifying", hours_in_state: 24 },
    "The domain still needs attention.",
  ),
  type(
    "removed",
    z.strictObject({ domain_id: id, reason: removeReason }),
    { domain_id: DOMAIN, reason: "requested" },
    "The domain was removed.",
  ),
];

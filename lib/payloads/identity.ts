/** Payloads of `identity.*` (reference §5): the identity, its addresses and its signing keys. */
import * as z from "zod";
import { rfc3339 } from "../envelope.ts";
import { EXAMPLE } from "./examples.ts";
import type { AddressRow, IdentityRow } from "./rows.ts";
import {
  abuseMetrics,
  type AddressShape,
  addressShape,
  type IdentityShape,
  identityShape,
  idOf,
  mailboxType,
  pauseReason,
} from "./shapes.ts";

const identity_id = idOf("identity");
export const kid = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, {
  error: "must be 1 to 64 of A-Z a-z 0-9 _ -",
});

/** The fields of an identity that `PATCH` changes and `changed[]` names. */
export const changeable = z.enum(["display_name", "description", "external_id"]);
export type Changeable = z.infer<typeof changeable>;

export function identityOf(row: IdentityRow): IdentityShape {
  return {
    id: row.id,
    tenant_id: row.tenant_id,
    display_name: row.display_name,
    description: row.description,
    external_id: row.external_id,
    status: row.status,
    paused_reason: row.paused_reason,
    primary_address: row.primary_address,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}

export function addressOf(row: AddressRow): AddressShape {
  return {
    id: row.id,
    address: row.address,
    status: row.status,
    is_primary: row.is_primary,
    retire_at: row.retire_at === null ? null : rfc3339(row.retire_at),
    created_at: rfc3339(row.created_at),
  };
}

const exampleIdentity: IdentityShape = {
  id: EXAMPLE.identity,
  tenant_id: EXAMPLE.tenant,
  display_name: "Noor Aziz",
  description: "Sales desk",
  external_id: "crm-4711",
  status: "active",
  paused_reason: null,
  primary_address: "noor@werkbank.example",
  created_at: "2026-10-01T07:00:00.000Z",
  updated_at: "2026-10-01T07:00:00.000Z",
};

const exampleAddress: AddressShape = {
  id: EXAMPLE.address,
  address: "noor.aziz@werkbank.example",
  status: "pending",
  is_primary: false,
  retire_at: null,
  created_at: "2026-10-01T07:30:00.000Z",
};

export const identityCreated = mailboxType(
  "identity.created",
  z.strictObject({ identity: identityShape }),
  "An identity was made.",
  { identity: exampleIdentity },
);

export const identityUpdated = mailboxType(
  "identity.updated",
  z.strictObject({ identity: identityShape, changed: z.array(changeable).min(1) }),
  "Fields of an identity changed; `changed` names them.",
  {
    identity: { ...exampleIdentity, description: "Sales", updated_at: "2026-10-01T08:00:00.000Z" },
    changed: ["description"],
  },
);

export const identityPaused = mailboxType(
  "identity.paused",
  z.strictObject({ identity_id, reason: pauseReason, metrics: abuseMetrics.optional() })
    .refine((d) => (d.reason === "abuse_threshold") === (d.metrics !== undefined), {
      error: "metrics go with the reason abuse_threshold",
      path: ["metrics"],
    }),
  "An identity sends no mail until it is resumed. An abuse threshold comes with its metrics.",
  {
    identity_id: EXAMPLE.identity,
    reason: "abuse_threshold",
    metrics: { complaint_rate: 0.004, sent_24h: 1_250 },
  },
);

export const identityResumed = mailboxType(
  "identity.resumed",
  z.strictObject({ identity_id }),
  "A paused identity sends again.",
  { identity_id: EXAMPLE.identity },
);

export const addressAdded = mailboxType(
  "identity.address_added",
  z.strictObject({ address: addressShape }),
  "An address was added; it takes no mail until it is activated.",
  { address: exampleAddress },
);

export const addressActivated = mailboxType(
  "identity.address_activated",
  z.strictObject({ address: addressShape }),
  "An address takes mail.",
  { address: { ...exampleAddress, status: "active" } },
);

export const addressRetired = mailboxType(
  "identity.address_retired",
  z.strictObject({ address: addressShape }),
  "An address takes no mail any more.",
  { address: { ...exampleAddress, status: "retired" } },
);

export const addressPromoted = mailboxType(
  "identity.address_promoted",
  z.strictObject({ address: addressShape, previous_primary: addressShape.nullable() }),
  "An address became the primary one. The previous primary goes on taking mail until its `retire_at`.",
  {
    address: { ...exampleAddress, status: "active", is_primary: true },
    previous_primary: {
      ...exampleAddress,
      id: EXAMPLE.previousAddress,
      address: "noor@werkbank.example",
      status: "active",
      retire_at: "2026-10-31T07:30:00.000Z",
      created_at: "2026-10-01T07:00:00.000Z",
    },
  },
);

export const keyCreated = mailboxType(
  "identity.key_created",
  z.strictObject({ identity_id, kid }),
  "The identity got a signing key.",
  { identity_id: EXAMPLE.identity, kid: "sig-2026-10" },
);

export const keyRotated = mailboxType(
  "identity.key_rotated",
  z.strictObject({ identity_id, kid, previous_kid: kid.nullable() }),
  "The identity signs with a new key. `previous_kid` is null when it made the first key.",
  { identity_id: EXAMPLE.identity, kid: "sig-2026-11", previous_kid: "sig-2026-10" },
);

export const keyRevoked = mailboxType(
  "identity.key_revoked",
  z.strictObject({ identity_id, kid }),
  "A signing key of the identity is not valid any more.",
  { identity_id: EXAMPLE.identity, kid: "sig-2026-10" },
);

export const identityTypes = [
  identityCreated,
  identityUpdated,
  identityPaused,
  identityResumed,
  addressAdded,
  addressActivated,
  addressRetired,
  addressPromoted,
  keyCreated,
  keyRotated,
  keyRevoked,
];

/** Identities: the rows of `/v1/identities` but for messages and events (reference §3, "Owner routes"). */
import * as z from "zod";
import { keys, type OwnerRef } from "../lib/keys.ts";
import {
  abuseMetrics,
  addressShape,
  emailAddress,
  identityShape,
  pauseReason,
} from "../lib/payloads/shapes.ts";
import { jobOwner, startErasure } from "../actors/job_runner.ts";
import {
  createIdentity,
  deleteIdentity,
  pauseIdentity,
  resumeIdentity,
  updateIdentity,
} from "../actors/mailbox/identity.ts";
import { viewIdentities, viewIdentity } from "../actors/mailbox/views.ts";
import { addressRoutes } from "./addresses.ts";
import { page } from "./cursor.ts";
import { advanced } from "./jobs.ts";
import { answer, withEvent } from "./owner_answer.ts";
import { listOf, listQuery, text } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const identityPath = {
  scope: { by: "owner", param: "identity_id", thing: "identity" },
  params: { identity_id: idOf("identity") },
} as const;

const display_name = text(128);
const description = text(500).nullable();
const external_id = text(128).nullable();

const pauseInput = z.strictObject({
  reason: pauseReason.default("manual"),
  metrics: abuseMetrics.optional(),
}).refine(({ reason, metrics }) => (reason === "abuse_threshold") === (metrics !== undefined), {
  error: "go with the reason abuse_threshold, and only with it",
  path: ["metrics"],
});

export const identityRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/tenants/{tenant_id}/identities",
    permission: "events:write",
    scope: { by: "tenant", param: "tenant_id" },
    tag: "identities",
    summary: "Create an identity: a mailbox with a sequence of its own. Sends identity.created.",
    params: { tenant_id: idOf("tenant") },
    body: z.strictObject({
      display_name,
      description: description.optional(),
      external_id: external_id.optional(),
      address: emailAddress.optional().meta({
        description: "Its first address, active and primary from the start.",
      }),
    }),
    response: withEvent("identity", identityShape),
    status: 201,
    handler: async ({ tenant, body, services }) => {
      const owner: OwnerRef = { kind: "mailbox", tenant: tenant.id, id: services.ids.next("identity") };
      return { body: answer("identity", await services.owners.run(owner, (tx) => createIdentity(tx, body))) };
    },
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/identities",
    permission: "events:read",
    scope: { by: "tenant", param: "tenant_id" },
    tag: "identities",
    summary: "List a tenant's identities, newest first.",
    params: { tenant_id: idOf("tenant") },
    query: listQuery,
    response: listOf(identityShape),
    status: 200,
    handler: async (ctx) => {
      const tenant = ctx.tenant.id;
      const ownerOf = (id: string): OwnerRef => ({ kind: "mailbox", tenant, id });
      return {
        body: await page<unknown>(ctx, {
          prefix: keys.ownersOfTenant(tenant, "mailbox"),
          at: (id) => keys.ownerOfTenant(ownerOf(id)),
          show: (rows) => viewIdentities(ctx.services.kv, rows.map(({ id }) => ownerOf(id))),
        }),
      };
    },
  }),
  route({
    ...identityPath,
    method: "GET",
    path: "/v1/identities/{identity_id}",
    permission: "events:read",
    summary: "Read an identity with its addresses.",
    response: identityShape.extend({ addresses: z.array(addressShape) }),
    status: 200,
    handler: async ({ owner, services }) => ({ body: await viewIdentity(services.kv, owner) }),
  }),
  route({
    ...identityPath,
    method: "PATCH",
    path: "/v1/identities/{identity_id}",
    permission: "events:write",
    summary:
      "Change an identity. Sends identity.updated with the fields that changed; nothing when none did.",
    body: z.strictObject({
      display_name: display_name.optional(),
      description: description.optional(),
      external_id: external_id.optional(),
    }),
    response: withEvent("identity", identityShape),
    status: 200,
    handler: async ({ owner, body, services }) => ({
      body: answer("identity", await services.owners.run(owner, (tx) => updateIdentity(tx, body))),
    }),
  }),
  route({
    ...identityPath,
    method: "DELETE",
    path: "/v1/identities/{identity_id}",
    permission: "events:write",
    summary: "Delete an identity: starts its erasure, which sends identity.deleted once the mailbox is gone.",
    response: withEvent("identity", identityShape).extend({ erasure_request_id: idOf("erasure") }),
    status: 202,
    handler: async ({ owner, services }) => {
      const { identity, erasure } = await services.owners.run(
        owner,
        (tx) => deleteIdentity(tx, "identity_deleted"),
      );
      // Broken off here, the identity stays `deleting` with this request's id: sending the DELETE again starts the job.
      await startErasure(services.owners, erasure);
      await advanced(services, jobOwner(erasure.tenant, erasure.id)); // a small mailbox is gone by the time of the answer
      return { body: { identity, event: null, erasure_request_id: erasure.id } };
    },
  }),
  route({
    ...identityPath,
    method: "POST",
    path: "/v1/identities/{identity_id}/pause",
    permission: "events:write",
    summary: "Pause an identity: it sends no mail. Sends identity.paused.",
    body: pauseInput,
    response: withEvent("identity", identityShape),
    status: 200,
    handler: async ({ owner, body, services }) => ({
      body: answer("identity", await services.owners.run(owner, (tx) => pauseIdentity(tx, body))),
    }),
  }),
  route({
    ...identityPath,
    method: "POST",
    path: "/v1/identities/{identity_id}/resume",
    permission: "events:write",
    summary: "Resume a paused identity. Sends identity.resumed.",
    response: withEvent("identity", identityShape),
    status: 200,
    handler: async ({ owner, services }) => ({
      body: answer("identity", await services.owners.run(owner, resumeIdentity)),
    }),
  }),
  ...addressRoutes,
];

/** An identity's addresses: added → active → retired, one primary (reference §5, `identity.address_*`). */
import * as z from "zod";
import { addressShape, emailAddress } from "../lib/payloads/shapes.ts";
import {
  activateAddress,
  addAddress,
  promoteAddress,
  RETIRE_AFTER_DAYS_DEFAULT,
  RETIRE_AFTER_DAYS_MAX,
  retireAddress,
} from "../actors/mailbox/addresses.ts";
import { answer, withEvent } from "./owner_answer.ts";
import { idOf, type Route, route } from "./table.ts";

const common = {
  method: "POST",
  permission: "events:write",
  scope: { by: "owner", param: "identity_id", thing: "identity" },
  response: withEvent("address", addressShape),
} as const;
const params = { identity_id: idOf("identity"), address_id: idOf("address") };

export const addressRoutes: Route[] = [
  route({
    ...common,
    path: "/v1/identities/{identity_id}/addresses",
    summary: "Add an address. Sends identity.address_added; it takes mail once it is activated.",
    params: { identity_id: idOf("identity") },
    body: z.strictObject({ address: emailAddress }),
    status: 201,
    handler: async ({ owner, body, services }) => ({
      body: answer("address", await services.owners.run(owner, (tx) => addAddress(tx, body.address))),
    }),
  }),
  route({
    ...common,
    path: "/v1/identities/{identity_id}/addresses/{address_id}/activate",
    summary: "Activate a pending address. Sends identity.address_activated.",
    params,
    status: 200,
    handler: async ({ owner, params, services }) => ({
      body: answer(
        "address",
        await services.owners.run(owner, (tx) => activateAddress(tx, params.address_id)),
      ),
    }),
  }),
  route({
    ...common,
    path: "/v1/identities/{identity_id}/addresses/{address_id}/retire",
    summary: "Retire an address that is not the primary one. Sends identity.address_retired.",
    params,
    status: 200,
    handler: async ({ owner, params, services }) => ({
      body: answer("address", await services.owners.run(owner, (tx) => retireAddress(tx, params.address_id))),
    }),
  }),
  route({
    ...common,
    path: "/v1/identities/{identity_id}/addresses/{address_id}/promote",
    summary: "Make an active address the primary one. Sends identity.address_promoted.",
    params,
    body: z.strictObject({
      retire_after_days: z.int().min(0).max(RETIRE_AFTER_DAYS_MAX).default(RETIRE_AFTER_DAYS_DEFAULT).meta({
        description: "How long the previous primary address goes on taking mail.",
      }),
    }),
    status: 200,
    handler: async ({ owner, params, body, services }) => ({
      body: answer(
        "address",
        await services.owners.run(
          owner,
          (tx) => promoteAddress(tx, params.address_id, body.retire_after_days),
        ),
      ),
    }),
  }),
];

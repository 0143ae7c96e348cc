/** Messages of an identity: in by raw mail or JSON, and what becomes of them (reference §3, "Owner routes"). */
import * as z from "zod";
import { parseMail } from "../lib/mail.ts";
import { keys } from "../lib/keys.ts";
import type { MessageRow } from "../lib/payloads/rows.ts";
import { recipientState } from "../lib/payloads/rows.ts";
import { attachment, messageSummary, quarantineReason, triage, trust } from "../lib/payloads/shapes.ts";
import { outcomeInput } from "../actors/mailbox/outcome_input.ts";
import { recordOutcome } from "../actors/mailbox/outcomes.ts";
import { queueMessage } from "../actors/mailbox/queue.ts";
import {
  receiveMessage,
  releaseMessage,
  reprocessMessage,
  triageMessage,
} from "../actors/mailbox/receive.ts";
import { viewMessage, viewSummaries } from "../actors/mailbox/views.ts";
import { page } from "./cursor.ts";
import { messageInput, parsedOf } from "./message_input.ts";
import { answer, answerAll, withEvent, withEvents } from "./owner_answer.ts";
import { listOf, listQuery, text } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const scope = { by: "owner", param: "identity_id", thing: "identity" } as const;
const ofIdentity = { scope, params: { identity_id: idOf("identity") }, tag: "messages" } as const;
const ofMessage = {
  scope,
  params: { identity_id: idOf("identity"), message_id: idOf("message") },
  tag: "messages",
} as const;

const messageShown = messageSummary.extend({
  trust,
  triage: triage.nullable(),
  quarantine_reason: quarantineReason.nullable(),
  attachments: z.array(attachment),
  extracted_text: z.string().nullable(),
  extracted_text_truncated: z.boolean(),
  recipients: z.record(z.string(), recipientState).nullable(),
});

export const messageRoutes: Route[] = [
  route({
    ...ofIdentity,
    method: "POST",
    path: "/v1/identities/{identity_id}/messages",
    permission: "events:write",
    summary: "Take in a mail, raw or parsed, or register one to be sent. " +
      "Sends message.received or message.quarantined, or message.suppressed.",
    body: messageInput,
    raw: ["message/rfc822"],
    response: withEvents("message", messageSummary),
    status: 201,
    handler: async ({ owner, body, rawBody, services }) => {
      const { owners, config } = services;
      if (body === undefined) {
        const mail = await parseMail(rawBody ?? new Uint8Array(0));
        return { body: answerAll("message", await owners.run(owner, (tx) => receiveMessage(tx, mail))) };
      }
      const mail = await parsedOf(body);
      const { thread_id: thread, verification, bcc = [] } = body;
      const result = await owners.run(
        owner,
        (tx) =>
          body.direction === "inbound"
            ? receiveMessage(tx, mail, { thread, verification })
            : queueMessage(tx, config.hashKey, mail, { bcc, thread }),
      );
      return { body: answerAll("message", result) };
    },
  }),
  route({
    ...ofIdentity,
    method: "GET",
    path: "/v1/identities/{identity_id}/messages",
    permission: "events:read",
    summary: "List an identity's messages, newest first.",
    query: listQuery,
    response: listOf(messageSummary),
    status: 200,
    handler: async (ctx) => {
      const { owner, services } = ctx;
      return {
        body: await page<MessageRow>(ctx, {
          prefix: keys.ownerState(owner, "message"),
          at: (id) => keys.ownerState(owner, "message", id),
          show: (rows) => viewSummaries(services.kv, owner, rows.map(({ value }) => value)),
        }),
      };
    },
  }),
  route({
    ...ofMessage,
    method: "GET",
    path: "/v1/identities/{identity_id}/messages/{message_id}",
    permission: "events:read",
    summary: "Read a message. A quarantined one shows no text.",
    response: messageShown,
    status: 200,
    handler: async ({ owner, tenant, params, services }) => ({
      body: await viewMessage(services.kv, owner, tenant, params.message_id),
    }),
  }),
  route({
    ...ofMessage,
    method: "POST",
    path: "/v1/identities/{identity_id}/messages/{message_id}/release",
    permission: "events:write",
    summary: "Let a quarantined message into the inbox. Sends message.released.",
    body: z.strictObject({
      reason: text(512).nullable().default(null),
      user_id: idOf("user").optional().meta({
        description: "The user who released it; without one it is the calling key.",
      }),
    }),
    response: withEvent("message", messageSummary),
    status: 200,
    handler: async ({ owner, params, body, key, services }) => {
      const by = body.user_id === undefined ? { key: key.id } : { user: body.user_id };
      const release = services.owners.run(
        owner,
        (tx) => releaseMessage(tx, params.message_id, by, body.reason),
      );
      return { body: answer("message", await release) };
    },
  }),
  route({
    ...ofMessage,
    method: "POST",
    path: "/v1/identities/{identity_id}/messages/{message_id}/triage",
    permission: "events:write",
    summary: "Set a message's triage verdict. Sends message.triaged; nothing when it is the same.",
    body: triage,
    response: withEvent("message", messageSummary),
    status: 200,
    handler: async ({ owner, params, body, services }) => ({
      body: answer(
        "message",
        await services.owners.run(owner, (tx) => triageMessage(tx, params.message_id, body)),
      ),
    }),
  }),
  route({
    ...ofMessage,
    method: "POST",
    path: "/v1/identities/{identity_id}/messages/{message_id}/reprocess",
    permission: "events:write",
    summary: "Send a message's message.received again, with reprocessed: true, under the policy of today.",
    response: withEvent("message", messageSummary),
    status: 200,
    handler: async ({ owner, params, services }) => ({
      body: answer(
        "message",
        await services.owners.run(owner, (tx) => reprocessMessage(tx, params.message_id)),
      ),
    }),
  }),
  route({
    ...ofMessage,
    method: "POST",
    path: "/v1/identities/{identity_id}/messages/{message_id}/outcomes",
    permission: "events:write",
    summary:
      "Record what became of an outbound message. Sends the outcome's event, and suppression.created " +
      "after a hard bounce or a complaint.",
    body: outcomeInput,
    response: withEvents("message", messageSummary),
    status: 200,
    handler: async ({ owner, params, body, services }) => {
      const { owners, config } = services;
      const record = owners.run(owner, (tx) => recordOutcome(tx, config.hashKey, params.message_id, body));
      return { body: answerAll("message", await record) };
    },
  }),
];

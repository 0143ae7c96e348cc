/** Notifications of new mail: what a user wants to be told, and what would have been sent (document, "Handing new mail"). */
import * as z from "zod";
import type { Id } from "../lib/ids.ts";
import { keys, type NotificationPref, notificationPref, type NotificationRow } from "../lib/keys.ts";
import { SHOWN_MS } from "../actors/notifier/desk.ts";
import { setPreference } from "../actors/notifier.ts";
import { page } from "./cursor.ts";
import { instantShown, iso, listOf, listQuery } from "./schemas.ts";
import { idOf, type Route, route } from "./table.ts";

const { kind, mode, filter } = notificationPref.shape;

const preferenceShown = z.object({ user_id: idOf("user"), kind, mode, filter, updated_at: instantShown });
const showPreference = (user: string, row: NotificationPref) => ({
  user_id: user,
  kind: row.kind,
  mode: row.mode,
  filter: row.filter,
  updated_at: iso(row.updated_at),
});

const notificationShown = z.object({
  id: idOf("notification"),
  user_id: idOf("user"),
  kind,
  count: z.int(),
  needs_reply_count: z.int(),
  messages: z.array(z.object({ identity_id: idOf("identity"), message_id: idOf("message") })).meta({
    description: "The first of them, at most 20.",
  }),
  created_at: instantShown,
});
const showNotification = (row: NotificationRow) => ({
  id: row.id,
  user_id: row.user,
  kind: row.kind,
  count: row.count,
  needs_reply_count: row.needs_reply_count,
  messages: row.messages.map(({ identity, message }) => ({ identity_id: identity, message_id: message })),
  created_at: iso(row.created_at),
});

const scope = { by: "tenant", param: "tenant_id" } as const;
const tenant_id = idOf("tenant");

export const notificationRoutes: Route[] = [
  route({
    method: "PUT",
    path: "/v1/tenants/{tenant_id}/notification-preferences/{user_id}",
    permission: "events:write",
    scope,
    tag: "notifications",
    summary: "Set what a user is told of: new mail, all of it or what needs a reply.",
    params: { tenant_id, user_id: idOf("user") },
    body: z.strictObject({ kind, mode, filter: filter.default("all") }),
    response: preferenceShown,
    status: 200,
    handler: async ({ tenant, params, body, key, services }) => ({
      body: showPreference(
        params.user_id,
        await setPreference(services, tenant, params.user_id, body, key),
      ),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/notification-preferences",
    permission: "events:read",
    scope,
    tag: "notifications",
    summary: "List who is told of what, newest users first.",
    params: { tenant_id },
    query: listQuery,
    response: listOf(preferenceShown),
    status: 200,
    handler: async (ctx) => ({
      body: await page<NotificationPref>(ctx, {
        prefix: keys.notificationPrefs(ctx.tenant.id),
        at: (user) => keys.notificationPref(ctx.tenant.id, user as Id<"user">),
        show: (rows) => rows.map(({ id, value }) => showPreference(id, value)),
      }),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/tenants/{tenant_id}/notifications",
    permission: "events:read",
    scope,
    tag: "notifications",
    summary: "List the notifications of new mail as they would be sent, newest first, for 30 days.",
    params: { tenant_id },
    query: listQuery,
    response: listOf(notificationShown),
    status: 200,
    handler: async (ctx) => ({
      body: await page<NotificationRow>(ctx, {
        prefix: keys.notificationsOf(ctx.tenant.id),
        at: (id) => keys.notification(ctx.tenant.id, id as Id<"notification">),
        show: (rows) =>
          rows.map(({ value }) =>
            value.created_at + SHOWN_MS > ctx.services.now() ? showNotification(value) : null
          ),
      }),
    }),
  }),
];

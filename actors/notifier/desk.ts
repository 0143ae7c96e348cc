/**
 * The rows of one user's notifications, each change one commit: news in, what is due out. What is told is judged against the
 * mailbox as it is then (the visibility rule), so mail that was erased or put aside meanwhile is never told of.
 */
import type { Id, Ids, TenantId } from "../../lib/ids.ts";
import {
  keys,
  type NotificationPref,
  type NotificationRow,
  type NotifyRow,
  type OwnerRef,
} from "../../lib/keys.ts";
import { DAY_MS } from "../../lib/limits.ts";
import { expired, type MailNews, needsReply, noted, NOTHING, ripe, told, visible } from "../../lib/notify.ts";
import type { MessageRow } from "../../lib/payloads/rows.ts";
import type { Committer } from "../../lib/edge/committer.ts";
import type { Kv, Write } from "../../lib/edge/kv.ts";
import { change } from "../change.ts";
import { getAll } from "../event_store.ts";

export interface DeskDeps {
  kv: Kv;
  committer: Committer;
  now(): number;
  ids: Ids;
}

/** Notifications are shown this long. */
export const SHOWN_MS = 30 * DAY_MS;
/** Mail a notification names; its counts are of all. */
const MAX_NAMED = 20;

/** Takes news for a user, forgets what was held long enough, and tells what is due. */
export async function attend(
  d: DeskDeps,
  tenant: TenantId,
  user: Id<"user">,
  news: readonly MailNews[],
): Promise<void> {
  const key = keys.notify(tenant, user);
  await change(d.committer, `notify ${tenant} ${user}`, async () => {
    const [found, pref] = await getAll<unknown>(d.kv, [key, keys.notificationPref(tenant, user)]);
    const before = found!.value as NotifyRow | null ?? NOTHING;
    const wanted = pref!.value as NotificationPref | null;
    const now = d.now();
    const writes: Write[] = [];
    let row = before;
    if (wanted === null || wanted.mode === "off") row = NOTHING;
    else {
      for (const one of news) row = noted(row, one, wanted.filter, now);
      row = expired(row, now);
      if (ripe(row, now)) {
        const notification = await compose(d, tenant, user, row, wanted);
        if (notification !== null) {
          const at = keys.notification(tenant, notification.id);
          writes.push({ op: "set", key: at, value: notification, expireIn: SHOWN_MS });
        }
        row = told(row);
      }
    }
    if (row === before) return { unit: null, result: undefined };
    writes.push(...moved(tenant, user, before.due, row.due));
    writes.push(row.due === null ? { op: "delete", key } : { op: "set", key, value: row });
    return { unit: { checks: [{ key, versionstamp: found!.versionstamp }], writes }, result: undefined };
  });
}

function moved(tenant: TenantId, user: Id<"user">, from: number | null, to: number | null): Write[] {
  if (from === to) return [];
  const writes: Write[] = [];
  if (from !== null) writes.push({ op: "delete", key: keys.notifyDue(from, tenant, user) });
  if (to !== null) writes.push({ op: "set", key: keys.notifyDue(to, tenant, user), value: true });
  return writes;
}

/** What is told of the mail that counts; null when none of it is to be seen any more. */
async function compose(
  d: DeskDeps,
  tenant: TenantId,
  user: Id<"user">,
  { counted }: NotifyRow,
  { filter }: NotificationPref,
): Promise<NotificationRow | null> {
  const rows = await getAll<MessageRow>(
    d.kv,
    counted.map(({ identity, message }) => {
      const mailbox: OwnerRef = { kind: "mailbox", tenant, id: identity };
      return keys.ownerState(mailbox, "message", message);
    }),
  );
  const seen = counted.flatMap((mail, i) => {
    const row = rows[i]!.value;
    if (row === null || !visible(row)) return [];
    return filter === "all" || needsReply(row) ? [{ mail, needs: needsReply(row) }] : [];
  });
  if (seen.length === 0) return null;
  return {
    id: d.ids.next("notification"),
    user,
    kind: "new_mail",
    count: seen.length,
    needs_reply_count: seen.filter(({ needs }) => needs).length,
    messages: seen.slice(0, MAX_NAMED).map(({ mail }) => mail),
    created_at: d.now(),
  };
}

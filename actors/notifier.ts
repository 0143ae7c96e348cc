/**
 * The Notifier: counts new mail for those who follow it, and tells of it in batches. One actor a tenant in the isolate; its
 * state is rows (`notifier/desk.ts`), so nothing is lost with the isolate but news on its way there.
 *
 * The hand-off comes from fan-out and never changes or delays a delivery: `take` returns at once and throws nothing, reads
 * follow on their own, and a failure is told to `failed` and forgotten. A tenant where nobody follows new mail costs one read
 * a minute, and one without a mailbox nothing at all.
 */
import { type ApiError, invalidRequest } from "../lib/errors.ts";
import type { Id, TenantId } from "../lib/ids.ts";
import { type KeyRow, keys, type NotificationPref, type TenantRow, within } from "../lib/keys.ts";
import { SECOND_MS } from "../lib/limits.ts";
import type { Write } from "../lib/edge/kv.ts";
import { auditWrites } from "./audit.ts";
import { change } from "./change.ts";
import type { StoredEvent } from "./event_store.ts";
import { attend, type DeskDeps } from "./notifier/desk.ts";
import { isMailNews, newsOf } from "./notifier/news.ts";

export interface NotifierDeps extends DeskDeps {
  /** A hand-off failed: its mail is not counted. */
  failed(event: StoredEvent, error: unknown): void;
}

export interface Notifier {
  /** The hand-off of a fanned-out event. Returns at once, never throws. */
  take(event: StoredEvent): void;
  /** A preference of the tenant was changed in this isolate. */
  forget(tenant: TenantId): void;
  /** Tells what is due by now. */
  sweep(): Promise<void>;
  /** Resolves when all that was taken is in its rows. */
  idle(): Promise<void>;
}

const PREF_CACHE_MS = 60 * SECOND_MS;
const MAX_TENANTS = 10_000;
/** Followers of a tenant. */
const MAX_FOLLOWERS = 100;
/** Events waiting in memory for their tenant's turn. */
const MAX_WAITING = 10_000;
const EVENTS_PER_TURN = 50;
const DUE_PER_SWEEP = 1_000;

interface Actor {
  waiting: StoredEvent[];
  /** Who follows new mail; null before it is known. */
  followers: Id<"user">[] | null;
  until: number;
  /** Counts the changes of preferences in this isolate. */
  revision: number;
  busy: Promise<void> | null;
}

export function makeNotifier(d: NotifierDeps): Notifier {
  const actors = new Map<TenantId, Actor>();
  let waiting = 0;

  function take(event: StoredEvent): void {
    if (!isMailNews(event) || event.tenant === null) return;
    const actor = actorOf(event.tenant);
    if (actor.followers?.length === 0 && d.now() < actor.until) return;
    if (waiting >= MAX_WAITING) return d.failed(event, new Error("too much is waiting"));
    waiting++;
    actor.waiting.push(event);
    actor.busy ??= drain(event.tenant, actor);
  }

  function actorOf(tenant: TenantId): Actor {
    let actor = actors.get(tenant);
    if (actor === undefined) {
      if (actors.size >= MAX_TENANTS) {
        for (const [name, { busy }] of actors) if (busy === null) actors.delete(name);
      }
      actors.set(tenant, actor = { waiting: [], followers: null, until: 0, revision: 0, busy: null });
    }
    return actor;
  }

  async function drain(tenant: TenantId, actor: Actor): Promise<void> {
    await undefined; // events of one commit share a turn, and the pipeline goes on first
    while (actor.waiting.length > 0) {
      const events = actor.waiting.splice(0, EVENTS_PER_TURN);
      waiting -= events.length;
      try {
        const followers = await followersOf(tenant, actor);
        if (followers.length === 0) continue;
        const news = events.map(newsOf).filter((one) => one !== null);
        if (news.length > 0) await Promise.all(followers.map((user) => attend(d, tenant, user, news)));
      } catch (error) {
        for (const event of events) d.failed(event, error);
      }
    }
    actor.busy = null; // in the tick of the last look, so that what comes next starts anew
  }

  async function followersOf(tenant: TenantId, actor: Actor): Promise<Id<"user">[]> {
    if (actor.followers !== null && d.now() < actor.until) return actor.followers;
    const { revision } = actor;
    const followers: Id<"user">[] = [];
    for await (
      const { key, value } of d.kv.list<NotificationPref>({ prefix: keys.notificationPrefs(tenant) })
    ) {
      if (value.mode !== "off") followers.push(key[2] as Id<"user">);
    }
    if (revision === actor.revision) { // else a preference was changed while these were read
      actor.followers = followers;
      actor.until = d.now() + PREF_CACHE_MS;
    }
    return followers;
  }

  function forget(tenant: TenantId): void {
    const actor = actors.get(tenant);
    if (actor === undefined) return;
    actor.followers = null;
    actor.revision++;
  }

  async function sweep(): Promise<void> {
    const due: [TenantId, Id<"user">][] = [];
    const dues = keys.notifyDues();
    const rows = d.kv.list({ prefix: dues, end: within(dues, d.now() + 1) }, { limit: DUE_PER_SWEEP });
    for await (const { key } of rows) due.push([key[2] as TenantId, key[3] as Id<"user">]);
    for (const [tenant, user] of due) await attend(d, tenant, user, []);
  }

  async function idle(): Promise<void> {
    await Promise.all([...actors.values()].map(({ busy }) => busy));
  }

  return { take, forget, sweep, idle };
}

/** Sets what a user of a tenant is told. @throws ApiError 400 for one follower too many. */
export async function setPreference(
  d: DeskDeps,
  tenant: TenantRow,
  user: Id<"user">,
  pref: Omit<NotificationPref, "updated_at">,
  by: Pick<KeyRow, "id"> | null,
): Promise<NotificationPref> {
  const value: NotificationPref = { ...pref, updated_at: d.now() };
  return await change(d.committer, `notification-preferences ${tenant.id}`, async () => {
    const key = keys.notificationPref(tenant.id, user);
    const prefix = keys.notificationPrefs(tenant.id);
    const rows = await Array.fromAsync(d.kv.list({ prefix }, { limit: MAX_FOLLOWERS + 1 }));
    const mine = await d.kv.get(key);
    if (mine.value === null && rows.length >= MAX_FOLLOWERS) throw tooMany();
    const writes: Write[] = [
      { op: "set", key, value },
      ...auditWrites(d, {
        action: "notification_preference.set",
        by,
        tenant: tenant.id,
        partner: tenant.partner_id,
        subject: user,
      }),
    ];
    return { unit: { checks: [{ key, versionstamp: mine.versionstamp }], writes }, result: value };
  });
}

const tooMany = (): ApiError =>
  invalidRequest([{ path: "user_id", message: `a tenant has at most ${MAX_FOLLOWERS} preferences` }]);

/** Replaying past events: choose, see how many, run, watch it progress. */
import { ApiError } from "../../../lib/errors.ts";
import type { EventId } from "../../../lib/ids.ts";
import { attemptStatus, type EndpointRow, keys, type PairRow, type ReplayRunRow } from "../../../lib/keys.ts";
import { DAY_MS, HOUR_MS, MAX_REPLAY_EVENTS, MAX_REPLAY_IDS } from "../../../lib/limits.ts";
import { getAll } from "../../../actors/event_store.ts";
import type { Selection } from "../../../actors/replay.ts";
import { demand } from "../../auth.ts";
import { scopeDenied } from "../../scope.ts";
import { count, fromInputTime, inputTime, plural } from "../format.ts";
import { endpointOf, type Place } from "../reach.ts";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { Card, described, Field, Head, LiveBar, Note, PostForm, Refused } from "../ui.tsx";
import { refusedFields } from "./deliveries.tsx";
import { newOnce } from "./endpoint.tsx";
import { notFound } from "../../../lib/errors.ts";

const STATUSES = {
  "": "Any: all events of the window",
  dead: "Dead, and never delivered",
  failed: "Failing now",
  succeeded: "Delivered before",
};
const RUN_KEPT_MS = DAY_MS;

/** What is chosen, as the fields of the form. */
interface Choice {
  since: string;
  until: string;
  status: string;
  ids: string;
}

const choiceOf = (fields: URLSearchParams, now: number): Choice => ({
  since: fields.get("since") ?? inputTime(now - DAY_MS),
  until: fields.get("until") ?? inputTime(now + HOUR_MS),
  status: fields.get("status") ?? "dead",
  ids: (fields.get("event_id") ?? "").trim(),
});

/** @throws ApiError 400 with the field that is wrong. */
function selectionOf(choice: Choice): Exclude<Selection, { events: unknown }> {
  const wrong = (path: string, message: string) =>
    new ApiError("invalid_request", "Cannot replay this.", "Choose again.", { errors: [{ path, message }] });
  if (choice.ids !== "") {
    const ids = choice.ids.split(/[\s,]+/).filter((id) => id !== "");
    if (ids.some((id) => !/^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))) {
      throw wrong("event_id", "must be event ids");
    }
    if (ids.length > MAX_REPLAY_IDS) throw wrong("event_id", `must be at most ${MAX_REPLAY_IDS}`);
    return { event_ids: ids as EventId[] };
  }
  const since = Date.parse(fromInputTime(choice.since) ?? ""),
    until = Date.parse(fromInputTime(choice.until) ?? "");
  if (Number.isNaN(since)) throw wrong("since", "must be a time");
  if (Number.isNaN(until)) throw wrong("until", "must be a time");
  if (since >= until) throw wrong("until", "must be after the beginning");
  if (choice.status === "") return { since, until };
  const status = attemptStatus.safeParse(choice.status);
  if (!status.success) throw wrong("status", "must be one of the list");
  return { since, until, status: status.data };
}

async function manageable(c: ConsoleContext): Promise<{ row: EndpointRow; place: Place }> {
  const { row, place } = await endpointOf({ kv: c.services.kv, key: c.visitor.key }, c.params.webhook_id!);
  demand(c.visitor.key, "webhooks:manage");
  if (c.visitor.key.level === "identity") throw scopeDenied("an identity-level key only reads here");
  if (row.deleted_at !== null) throw notFound("webhook");
  return { row, place };
}

export async function replayForm(c: ConsoleContext): Promise<PageView> {
  const { row, place } = await manageable(c);
  const choice = choiceOf(c.query, c.now), asked = c.query.size > 0;
  let events: number | null = null, errors: { id: string; message: string }[] = [];
  try {
    if (asked) events = (await c.services.deliveries.previewReplay(row.id, selectionOf(choice))).length;
  } catch (thrown) {
    errors = refusedFields(thrown);
  }
  const error = (id: string) => errors.find((one) => one.id === id)?.message;
  return page(
    "Replay",
    <>
      <Head
        title="Replay"
        lead={row.url}
        crumbs={[
          [`/console/${place.path}`, place.name],
          [`/console/${place.path}/endpoints`, "Endpoints"],
          [`/console/endpoints/${row.id}`, row.url],
        ]}
      />
      <div class="stack">
        {errors.length === 0 ? null : <Refused title="This choice cannot be replayed" errors={errors} />}
        {events === null ? null : <Confirm c={c} row={row} choice={choice} events={events} />}
        <Card
          title="Which events"
          hint={`At most ${count(MAX_REPLAY_EVENTS)} at once, of the last 30 days`}
        >
          <form method="get" class="form" aria-label="Which events">
            <div class="pair">
              <Field id="since" label="Occurred from (UTC)" error={error("since")}>
                <input
                  id="since"
                  name="since"
                  type="datetime-local"
                  class="short"
                  value={choice.since}
                  {...described("since", error("since"), false)}
                />
              </Field>
              <Field id="until" label="to (UTC)" error={error("until")}>
                <input
                  id="until"
                  name="until"
                  type="datetime-local"
                  class="short"
                  value={choice.until}
                  {...described("until", error("until"), false)}
                />
              </Field>
            </div>
            <Field id="status" label="Whose state at this endpoint is" error={error("status")}>
              <select id="status" name="status">
                {Object.entries(STATUSES).map(([value, text]) => (
                  <option value={value} selected={value === choice.status}>{text}</option>
                ))}
              </select>
            </Field>
            <Field
              id="event_id"
              label="Or these events alone"
              error={error("event_id")}
              hint={`Up to ${MAX_REPLAY_IDS} ids. When there are any, the window above does not count.`}
            >
              <textarea
                id="event_id"
                name="event_id"
                rows={2}
                placeholder="evt_…"
                {...described("event_id", error("event_id"))}
              >
                {choice.ids}
              </textarea>
            </Field>
            <div>
              <button type="submit" class={events === null ? "primary" : ""}>Count them</button>
            </div>
          </form>
        </Card>
      </div>
    </>,
    { place, nav: "endpoints", ...(errors.length === 0 ? {} : { status: 400 }) },
  );
}

function Confirm(
  { c, row, choice, events }: { c: ConsoleContext; row: EndpointRow; choice: Choice; events: number },
) {
  if (events === 0) {
    return (
      <Note tone="warn" title="No event fits.">
        <p>
          Counted are events the endpoint would receive by its types and identities, whose payload is still
          there. Try another window or state.
        </p>
      </Note>
    );
  }
  return (
    <Card title={`${plural(events, "event")} would be delivered again`}>
      <PostForm
        action={`/console/endpoints/${row.id}/replay`}
        csrf={c.csrf}
        once={newOnce(c)}
        label="Run the replay"
      >
        {Object.entries({
          since: choice.since,
          until: choice.until,
          status: choice.status,
          event_id: choice.ids,
        })
          .map(([name, value]) => <input type="hidden" name={name} value={value} />)}
        <p>
          Each one starts a fresh retry schedule, with the same bytes and the same{" "}
          <code>webhook-id</code>. Receivers that de-duplicate take what they already have without harm.
        </p>
        {row.enabled ? null : (
          <p class="error">
            The endpoint is disabled: these deliveries would go dead at once. Enable it first.
          </p>
        )}
        <div class="actions">
          <button type="submit" class="primary" data-busy="Queueing …">
            Replay {plural(events, "event")}
          </button>
          <a class="button" href={`/console/endpoints/${row.id}`}>Cancel</a>
        </div>
      </PostForm>
    </Card>
  );
}

/** Queues through the API's row; what was chosen is kept for a day, so that the page can say how far it is. */
export async function runReplay(c: ConsoleContext): Promise<View> {
  const { row } = await manageable(c);
  const selection = selectionOf(choiceOf(c.form, c.now));
  const events = await c.services.deliveries.previewReplay(row.id, selection);
  const run = /^[0-9A-Z]{26}$/.test(c.form.get("once") ?? "") ? c.form.get("once")! : c.services.ids.ulid();
  const body = "event_ids" in selection ? selection : {
    ...selection,
    since: new Date(selection.since).toISOString(),
    until: new Date(selection.until).toISOString(),
  };
  const value: ReplayRunRow = { endpoint: row.id, events, created_at: c.now };
  // Before the replay: sent twice, the second finds the row and changes nothing.
  await c.services.committer.commit({
    checks: [{ key: keys.replayRun(row.id, run), versionstamp: null }],
    writes: [{ op: "set", key: keys.replayRun(row.id, run), value, expireIn: RUN_KEPT_MS }],
  });
  await c.api.call("POST /v1/webhooks/{webhook_id}/replay", {
    params: { webhook_id: row.id },
    body,
    once: run,
  });
  return redirect(`/console/endpoints/${row.id}/replays/${run}`);
}

export async function replayProgress(c: ConsoleContext): Promise<PageView> {
  const { kv } = c.services;
  const { row, place } = await endpointOf({ kv, key: c.visitor.key }, c.params.webhook_id!);
  const { value: run } = await kv.get<ReplayRunRow>(keys.replayRun(row.id, c.params.run!));
  if (run === null) throw notFound("route");
  const pairs = await getAll<PairRow>(kv, run.events.map(({ key }) => keys.pair(row.id, key)));
  const came = { delivered: 0, retrying: 0, dead: 0, waiting: 0 };
  for (const [i, { value: pair }] of pairs.entries()) came[stateOf(pair, run.events[i]!.first)]++;
  const total = run.events.length, tried = total - came.waiting, over = came.delivered + came.dead;
  return page(
    "Replay",
    <>
      <Head
        title="Replay"
        lead={row.url}
        crumbs={[
          [`/console/${place.path}`, place.name],
          [`/console/${place.path}/endpoints`, "Endpoints"],
          [`/console/endpoints/${row.id}`, row.url],
        ]}
      >
        <LiveBar id="progress" refresh={c.url.pathname} />
      </Head>
      <div id="progress" class="stack" {...(over < total ? { "data-live": "1500" } : {})}>
        <Card
          title={came.waiting === 0 ? "All were tried" : "Under way"}
          hint={`${count(tried)} of ${plural(total, "event")} tried`}
        >
          <div class="form">
            <progress max={Math.max(1, total)} value={tried} aria-label="Events tried">
              {tried} of {total}
            </progress>
            <dl class="facts">
              <dt>Delivered</dt>
              <dd>{count(came.delivered)}</dd>
              <dt>Failed, retrying</dt>
              <dd>{count(came.retrying)}</dd>
              <dt>Dead</dt>
              <dd>{count(came.dead)}</dd>
              <dt>Waiting</dt>
              <dd>{count(came.waiting)}</dd>
            </dl>
            <p class="muted">
              It goes on whether this page is open or not. What fails is retried on the schedule of every
              delivery.
            </p>
          </div>
        </Card>
      </div>
      <p class="actions">
        <a class="button" href={`/console/endpoints/${row.id}`}>To the endpoint</a>
      </p>
    </>,
    { place, nav: "endpoints" },
  );
}

/** What became of one event of a run. A later run of the same event answers for it, too. */
function stateOf(pair: PairRow | null, first: number): "delivered" | "retrying" | "dead" | "waiting" {
  if (pair === null || pair.attempt < first) return "waiting";
  if (pair.status === "succeeded") return "delivered";
  return pair.status === "dead" ? "dead" : "retrying";
}

/** Replaying past events: choose, see how many, run, watch it progress. */
import { notFound } from "../../../lib/errors.ts";
import { type EndpointRow, keys, type ReplayRunRow } from "../../../lib/keys.ts";
import { DAY_MS, MAX_REPLAY_EVENTS, MAX_REPLAY_IDS } from "../../../lib/limits.ts";
import { demand } from "../../auth.ts";
import { scopeDenied } from "../../scope.ts";
import { count, plural } from "../format.ts";
import { endpointOf, type Place } from "../reach.ts";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { Card, described, Field, Head, Note, PostForm, Refused } from "../ui.tsx";
import { refusedFields } from "./deliveries.tsx";
import { newOnce } from "./endpoint_acts.tsx";
import { type Choice, choiceOf, REPLAY_STATUSES, selectionOf } from "./replay_choice.ts";

/** How long a page can say how far a replay is. */
const RUN_KEPT_MS = DAY_MS;

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
                {Object.entries(REPLAY_STATUSES).map(([value, text]) => (
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

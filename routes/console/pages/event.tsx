/** One event: the envelope as it was signed and sent, and what became of it at every endpoint in reach. */
import { notFound } from "../../../lib/errors.ts";
import type { EndpointId } from "../../../lib/ids.ts";
import { parseJson } from "../../../lib/json.ts";
import { type EndpointRow, keys } from "../../../lib/keys.ts";
import { holds } from "../../../lib/reach.ts";
import { getAll } from "../../../actors/event_store.ts";
import type { EndpointTrace, TraceRule, TraceState } from "../../../actors/trace.ts";
import { homeOf, placeOf } from "../reach.ts";
import type { Delivery } from "../shapes.ts";
import { outcomeText } from "../status.tsx";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { TracePicture } from "../trace_picture.tsx";
import { Card, Code, Empty, Head, Pill, Table, Th, Time, type Tone } from "../ui.tsx";

interface Traced {
  event: {
    id: string;
    type: string;
    tenant_id: string | null;
    identity_id: string | null;
    sequence: number | null;
    occurred_at: string;
    erased: boolean;
  };
  endpoints: {
    webhook_id: string;
    scope: string;
    rule: EndpointTrace["rule"];
    state: TraceState;
    attempts: Delivery[];
    next: { attempt: number; at: string | null; error: string | null } | null;
    replayable_until: string | null;
  }[];
}

const STATES: Record<TraceState, { tone: Tone; word: string }> = {
  not_matched: { tone: "idle", word: "Not for it" },
  waiting_for_fan_out: { tone: "idle", word: "Waiting" },
  queued: { tone: "idle", word: "Queued" },
  in_flight: { tone: "idle", word: "In flight" },
  retrying: { tone: "warn", word: "Retrying" },
  held: { tone: "warn", word: "Held" },
  succeeded: { tone: "ok", word: "Delivered" },
  dead: { tone: "bad", word: "Dead" },
  dead_lettered: { tone: "bad", word: "Dead letter" },
  forgotten: { tone: "idle", word: "Forgotten" },
  unknown: { tone: "idle", word: "Unknown" },
};

const STATE_TEXT: Partial<Record<TraceState, string>> = {
  held: "Its partner is suspended. It is delivered when the partner is active again.",
  dead_lettered: "Our own processing of it failed again and again. An operator redrives it.",
  forgotten: "Retention took its rows.",
  unknown: "Too many jobs are waiting to look through. Try again in a moment.",
};

const RULES: Record<TraceRule, string> = {
  deleted: "The endpoint is deleted.",
  disabled: "The endpoint is disabled.",
  test_events_are_never_fanned_out: "A test goes to its own endpoint alone.",
  other_scope: "The event is outside what the endpoint sees.",
  about_itself: "An endpoint is not told of itself.",
  event_type: "Its event types leave this one out.",
  identity_filter: "Its identities leave this one out.",
  created_after_event: "It was created after the event. A replay delivers it.",
  changed_since: "It did not match when the event occurred, and was changed since. A replay delivers it.",
};

export async function eventPage(c: ConsoleContext): Promise<PageView> {
  const { kv } = c.services, params = { event_id: c.params.event_id! };
  const { event, endpoints } = await c.api.call<Traced>("GET /v1/events/{event_id}/trace", { params });
  const sent = event.erased ? null : await c.api.text("GET /v1/events/{event_id}", { params });
  const reach = { kv, key: c.visitor.key };
  const place = await placeOf(reach, event.tenant_id ?? homeOf(c.visitor.key));
  const rows = await getAll<EndpointRow>(
    kv,
    endpoints.map((one) => keys.endpoint(one.webhook_id as EndpointId)),
  );
  const urls = endpoints.map((one, i) => rows[i]!.value?.url ?? one.webhook_id);
  const manage = holds(c.visitor.key, "webhooks:manage") && c.visitor.key.level !== "identity";
  const live = endpoints.some(({ state }) => !OVER.has(state));
  return page(
    event.type,
    <>
      <Head
        title={event.type}
        lead={<span class="mono">{event.id}</span>}
        crumbs={place.tenant === null
          ? []
          : [[`/console/${place.path}`, place.name], [`/console/${place.path}/events`, "Events"]]}
      />
      <div class="stack">
        <Card title="Facts">
          <dl class="facts">
            <dt>Occurred</dt>
            <dd>
              <Time full at={Date.parse(event.occurred_at)} now={c.now} />
            </dd>
            <dt>Tenant</dt>
            <dd class="mono">{event.tenant_id ?? "None: a platform event"}</dd>
            <dt>Identity</dt>
            <dd class="mono">{event.identity_id ?? "None"}</dd>
            <dt>Sequence</dt>
            <dd>{event.sequence ?? "None"}</dd>
            <dt>Type</dt>
            <dd>
              <a class="mono" href={`/console/${place.path}/catalogue/${event.type}`}>{event.type}</a>
            </dd>
          </dl>
        </Card>
        <Card title="Who receives it, and why not" hint="As things stand, endpoints in your reach" flush>
          <div id="trace" {...(live ? { "data-live": "3000" } : {})}>
            {endpoints.length === 0
              ? (
                <Empty title="No endpoint could see it">
                  There is none in its scope. One created now gets it by replay.
                </Empty>
              )
              : (
                <>
                  <TracePicture
                    type={event.type}
                    lanes={endpoints.map((one, i) => ({ ...one, ...STATES[one.state], url: urls[i]! }))}
                    now={c.now}
                  />
                  <Table
                    label="Endpoints and this event"
                    head={
                      <>
                        <Th>Endpoint</Th>
                        <Th>State</Th>
                        <Th>Why, and what is next</Th>
                        <Th>Attempts</Th>
                      </>
                    }
                  >
                    {endpoints.map((one, i) => (
                      <TraceRow
                        one={one}
                        event={event.id}
                        manage={manage}
                        url={urls[i]!}
                        now={c.now}
                      />
                    ))}
                  </Table>
                </>
              )}
          </div>
        </Card>
        <Card
          title="Envelope"
          hint={sent === null ? undefined : `${new TextEncoder().encode(sent).length} bytes as sent`}
        >
          {sent === null
            ? (
              <Empty title="The payload was erased">
                The event happened and keeps its place; what it said is gone.
              </Empty>
            )
            : (
              <>
                <Code id="pretty" text={pretty(sent)} label="Envelope, indented" />
                <details class="more">
                  <summary>The very bytes that are signed and sent</summary>
                  <Code id="exact" text={sent} label="Envelope as sent" wrap />
                </details>
              </>
            )}
        </Card>
      </div>
    </>,
    { place, nav: "events" },
  );
}

const OVER = new Set<TraceState>(["not_matched", "succeeded", "dead", "dead_lettered", "forgotten"]);

function TraceRow(
  { one, event, url, manage, now }: {
    one: Traced["endpoints"][number];
    event: string;
    url: string;
    manage: boolean;
    now: number;
  },
) {
  const { tone, word } = STATES[one.state], base = `/console/endpoints/${one.webhook_id}`;
  const last = one.attempts.at(-1);
  return (
    <tr>
      <th scope="row" class="wrap">
        <a href={base}>{url}</a>
        <span class="sub">{one.scope} endpoint</span>
      </th>
      <td>
        <Pill tone={tone}>{word}</Pill>
      </td>
      <td class="text">
        {one.rule !== null
          ? RULES[one.rule]
          : STATE_TEXT[one.state] ?? (last === undefined ? "" : outcomeText(last))}
        {one.next === null ? null : (
          <span class="sub">
            Attempt {one.next.attempt} {one.next.at === null ? "comes at any moment" : (
              <>
                is due <Time at={Date.parse(one.next.at)} now={now} />
              </>
            )}
            {one.next.error === null ? "" : `, which ends dead with ${one.next.error} as things stand`}
          </span>
        )}
      </td>
      <td class="nowrap">
        {last === undefined ? <span class="muted">none</span> : (
          <a href={`${base}/deliveries/${last.id}`}>
            {one.attempts.length}
            <span class="sr">attempts to {url}</span>
          </a>
        )}
        {last !== undefined && one.replayable_until !== null && manage
          ? <a class="sub" href={`${base}/replay?event_id=${event}`}>Replay</a>
          : null}
      </td>
    </tr>
  );
}

/** Indented, with every number as it was written. */
function pretty(sent: string): string {
  try {
    return JSON.stringify(parseJson(sent), null, 2);
  } catch {
    return sent;
  }
}

/** From an id, wherever it was found, to its page. */
export function find(c: ConsoleContext): View {
  const id = (c.query.get("id") ?? "").trim();
  if (/^evt_[0-9A-Z]{26}$/.test(id)) return redirect(`/console/events/${id}`);
  if (/^whk_[0-9A-Z]{26}$/.test(id)) return redirect(`/console/endpoints/${id}`);
  if (/^(ten|ptn)_[0-9A-Z]{26}$/.test(id)) return redirect(`/console/${id}`);
  throw notFound("event");
}

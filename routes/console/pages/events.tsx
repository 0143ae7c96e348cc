/** A tenant's events, newest first. */
import { RefusedFilter, TimeRange } from "../filters.tsx";
import { MAX_OWNER_KEY_BYTES } from "../../../lib/limits.ts";
import { fromInputTime } from "../format.ts";
import { placeOf } from "../reach.ts";
import type { EventIndex, List } from "../shapes.ts";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Empty, Head, LiveBar, pager, Table, Th, Time } from "../ui.tsx";
import { refusedFields } from "./deliveries.tsx";
import { notFound } from "../../../lib/errors.ts";

const FILTERS = ["type", "identity_id", "owner_id", "since", "until"] as const;

export async function eventList(c: ConsoleContext): Promise<PageView> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  if (place.tenant === null) throw notFound("route"); // the API lists a tenant's events only
  const given = (name: string) => c.query.get(name)?.trim() ?? "";
  const filtered = FILTERS.some((name) => given(name) !== ""), first = !c.query.has("cursor");
  let list: List<EventIndex> = { data: [], next_cursor: null };
  let errors: { id: string; message: string }[] = [];
  try {
    list = await c.api.call("GET /v1/tenants/{tenant_id}/events", {
      params: { tenant_id: place.tenant.id },
      query: {
        type: given("type"),
        identity_id: given("identity_id"),
        owner_id: given("owner_id"),
        since: fromInputTime(given("since")),
        until: fromInputTime(given("until")),
        cursor: c.query.get("cursor") ?? undefined,
      },
    });
  } catch (thrown) {
    errors = refusedFields(thrown);
  }
  return page(
    "Events",
    <>
      <Head
        title="Events"
        lead="What happened, in the order it was committed. Each one leads to who received it and why."
      />
      <div class="stack">
        <Find />
        <Card
          title="Events"
          hint={first ? <LiveBar id="events" refresh={c.url.pathname + c.url.search} /> : undefined}
          flush
          footer={pager(c.url, list.next_cursor)}
        >
          <div class="body">
            <form class="filters" method="get" role="search" aria-label="Events">
              <div class="field">
                <label for="type">Type</label>
                <input id="type" name="type" value={given("type")} size={15} maxlength={128} />
              </div>
              <div class="field">
                <label for="owner_id">Owner</label>
                <input
                  id="owner_id"
                  name="owner_id"
                  value={given("owner_id")}
                  size={15}
                  maxlength={MAX_OWNER_KEY_BYTES}
                />
              </div>
              <div class="field">
                <label for="identity_id">Identity</label>
                <input
                  id="identity_id"
                  name="identity_id"
                  value={given("identity_id")}
                  size={15}
                  placeholder="idn_…"
                />
              </div>
              <TimeRange from="since" to="until" given={given} />
              <button type="submit">Filter</button>
              {filtered ? <a class="button quiet" href={c.url.pathname}>Clear</a> : null}
            </form>
          </div>
          <RefusedFilter errors={errors} />
          <div id="events" {...(first && errors.length === 0 ? { "data-live": "5000" } : {})}>
            {errors.length > 0
              ? null
              : list.data.length > 0
              ? <EventRows events={list.data} now={c.now} />
              : (
                <Empty title={filtered ? "No event fits the filter" : "No events yet"}>
                  {filtered
                    ? "Widen the time, or clear a field."
                    : "Events are written in the commit of the change they tell of, through the API or the application's own code."}
                </Empty>
              )}
          </div>
        </Card>
      </div>
    </>,
    { place, nav: "events" },
  );
}

/** Straight to an event whose id is at hand, from a receiver's log. */
function Find() {
  return (
    <form class="filters" method="get" action="/console/find" role="search" aria-label="Event by id">
      <div class="field">
        <label for="id">Event id or webhook-id header</label>
        <input id="id" name="id" size={34} placeholder="evt_…" required />
      </div>
      <button type="submit">Open</button>
    </form>
  );
}

export function EventRows(
  { events, now, tenants = false }: { events: EventIndex[]; now: number; tenants?: boolean },
) {
  return (
    <Table
      label="Events"
      head={
        <>
          <Th>When</Th>
          <Th>Type</Th>
          <Th>Owner</Th>
          {tenants ? <Th>Tenant</Th> : null}
          <Th num>Sequence</Th>
          <Th>Event id</Th>
        </>
      }
    >
      {events.map((event) => (
        <tr>
          <td class="nowrap">
            <Time at={Date.parse(event.occurred_at)} now={now} />
          </td>
          <td class="mono">{event.type}</td>
          <td class="wrap">
            {event.owner_id}
            <span class="sub">{event.owner_kind}</span>
          </td>
          {tenants ? <td class="mono">{event.tenant_id ?? "–"}</td> : null}
          <td class="num">{event.sequence ?? "–"}</td>
          <td class="nowrap">
            <a class="mono" href={`/console/events/${event.id}`}>{event.id}</a>
            {event.erased ? <span class="sub">payload erased</span> : null}
          </td>
        </tr>
      ))}
    </Table>
  );
}

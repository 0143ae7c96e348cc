/** The delivery log of an endpoint: filters, pages, and a part that renews itself. */
import { RefusedFilter, TimeRange } from "../filters.tsx";
import { ApiError } from "../../../lib/errors.ts";
import type { EndpointRow } from "../../../lib/keys.ts";
import { fromInputTime, span } from "../format.ts";
import type { Delivery, List } from "../shapes.ts";
import { attemptText, DeliveryPill, outcomeText } from "../status.tsx";
import type { ConsoleContext } from "../table.ts";
import { Card, Empty, LiveBar, pager, Table, Th, Time } from "../ui.tsx";

const STATUSES = { "": "Any", succeeded: "Delivered", failed: "Failed", dead: "Dead" } as const;
const FILTERS = ["status", "event_type", "event_id", "after", "before"] as const;

/** Awaited by its page, so that a refused filter is said in place. */
export async function deliveriesCard(c: ConsoleContext, row: EndpointRow, manage: boolean) {
  const given = (name: string) => c.query.get(name)?.trim() ?? "";
  const filtered = FILTERS.some((name) => given(name) !== "");
  const first = !c.query.has("cursor");
  let list: List<Delivery> = { data: [], next_cursor: null };
  let errors: { id: string; message: string }[] = [];
  try {
    list = await c.api.call("GET /v1/webhooks/{webhook_id}/deliveries", {
      params: { webhook_id: row.id },
      query: {
        status: given("status"),
        event_type: given("event_type"),
        event_id: given("event_id"),
        after: fromInputTime(given("after")),
        before: fromInputTime(given("before")),
        cursor: c.query.get("cursor") ?? undefined,
      },
    });
  } catch (thrown) {
    errors = refusedFields(thrown);
  }
  return (
    <Card
      title="Deliveries"
      hint={first && errors.length === 0
        ? <LiveBar id="deliveries" refresh={c.url.pathname + c.url.search} />
        : undefined}
      flush
      footer={pager(c.url, list.next_cursor)}
    >
      <div class="inset">
        <form class="filters" method="get" role="search" aria-label="Deliveries">
          <div class="field">
            <label for="status">Outcome</label>
            <select id="status" name="status">
              {Object.entries(STATUSES).map(([value, text]) => (
                <option value={value} selected={value === given("status")}>{text}</option>
              ))}
            </select>
          </div>
          <div class="field">
            <label for="event_type">Event type</label>
            <input id="event_type" name="event_type" value={given("event_type")} size={15} />
          </div>
          <div class="field">
            <label for="event_id">Event id</label>
            <input id="event_id" name="event_id" value={given("event_id")} size={15} placeholder="evt_…" />
          </div>
          <TimeRange from="after" to="before" given={given} />
          <button type="submit">Filter</button>
          {filtered ? <a class="button quiet" href={c.url.pathname}>Clear</a> : null}
        </form>
      </div>
      <RefusedFilter errors={errors} />
      <div id="deliveries" {...(first && errors.length === 0 ? { "data-live": "5000" } : {})}>
        {errors.length > 0
          ? null
          : list.data.length > 0
          ? <DeliveryRows deliveries={list.data} endpoint={row.id} now={c.now} />
          : list.next_cursor !== null
          ? (
            <Empty title="None in this part of the log">
              The filter looked through 2,000 attempts. The next page goes on from there.
            </Empty>
          )
          : filtered
          ? <Empty title="No attempt fits the filter">Widen the time or the outcome.</Empty>
          : (
            <Empty title="No attempts yet">
              When an event of its types occurs, each attempt to deliver it shows up here.{manage
                ? " Send a test to see one now."
                : ""}
            </Empty>
          )}
      </div>
    </Card>
  );
}

/** The fields a 400 refuses, for the form they came from; anything else is thrown on. */
export function refusedFields(thrown: unknown): { id: string; message: string }[] {
  if (
    !(thrown instanceof ApiError) || thrown.code !== "invalid_request" && thrown.code !== "cursor_expired"
  ) throw thrown;
  const errors = (thrown.details?.errors ?? []) as { path: string; message: string }[];
  return errors.length === 0
    ? [{ id: "main", message: thrown.message }]
    : errors.map(({ path, message }) => ({ id: path.split(".")[0]!, message: `${path} ${message}` }));
}

export function DeliveryRows(
  { deliveries, endpoint, now }: { deliveries: Delivery[]; endpoint: string; now: number },
) {
  return (
    <Table
      label="Delivery attempts"
      head={
        <>
          <Th>When</Th>
          <Th>Outcome</Th>
          <Th>Event</Th>
          <Th>Answer</Th>
          <Th>Attempt</Th>
          <Th num>Took</Th>
          <Th>Next attempt</Th>
        </>
      }
    >
      {deliveries.map((d) => (
        <tr>
          <td class="nowrap">
            <a href={`/console/endpoints/${endpoint}/deliveries/${d.id}`}>
              <Time at={Date.parse(d.created_at)} now={now} />
              <span class="sr">, {d.event_type}, attempt {d.attempt}</span>
            </a>
          </td>
          <td>
            <DeliveryPill delivery={d} now={now} />
          </td>
          <td>
            <span class="mono">{d.event_type}</span>
          </td>
          <td class="mono nowrap">{outcomeText(d)}</td>
          <td class="nowrap">
            {attemptText(d)}
            {d.first_attempt > 1 ? <span class="muted">, replay</span> : null}
          </td>
          <td class="num nowrap">{span(d.duration_ms)}</td>
          <td class="nowrap">
            {d.next_attempt_at === null || Date.parse(d.next_attempt_at) < now
              ? <span class="muted">–</span>
              : <Time at={Date.parse(d.next_attempt_at)} now={now} />}
          </td>
        </tr>
      ))}
    </Table>
  );
}

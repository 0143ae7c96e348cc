/** The endpoints of a place, with health and a day at a glance. */
import { type Hour, readHours, totalOf } from "../../../actors/stats.ts";
import { holds } from "../../../lib/reach.ts";
import { Spark } from "../charts.tsx";
import { count, plural } from "../format.ts";
import { type Endpoint, endpointsOf, type Place, placeOf } from "../reach.ts";
import { healthOf, HealthPill } from "../status.tsx";
import { type ConsoleContext, page, type PageView, type Visitor } from "../table.ts";
import { Card, Empty, Head, Note, Table, Th, Time } from "../ui.tsx";

const STATES = {
  all: "All states",
  bad: "Needs a person",
  enabled: "Enabled",
  disabled: "Disabled",
} as const;
type State = keyof typeof STATES;

export async function endpointList(c: ConsoleContext): Promise<PageView> {
  const reach = { kv: c.services.kv, key: c.visitor.key };
  const place = await placeOf(reach, c.params.scope!);
  const all = await endpointsOf(reach, place);
  const words = (c.query.get("q") ?? "").trim().toLowerCase();
  const asked = c.query.get("state") ?? "all";
  const state: State = Object.hasOwn(STATES, asked) ? asked as State : "all";
  const fits = all.filter((endpoint) => isIn(endpoint, state) && mentions(endpoint, words));
  const lists = await Promise.all(fits.map(({ row }) => readHours(reach.kv, row.id, c.now)));
  const create = mayCreate(place, c.visitor)
    ? <a class="button primary" href={`/console/${place.path}/endpoints/new`}>New endpoint</a>
    : null;
  return page(
    "Endpoints",
    <>
      <Head title="Endpoints" lead="Where events are delivered, newest first.">{create}</Head>
      <div class="stack">
        {c.query.get("done") === "deleted"
          ? <Note tone="ok" title="Deleted. What was pending for it is dropped." />
          : null}
        {all.length === 0 ? null : (
          <form class="filters" method="get" role="search" aria-label="Endpoints">
            <div class="field">
              <label for="q">Address, description or event type</label>
              <input id="q" name="q" type="search" value={c.query.get("q") ?? ""} size={30} />
            </div>
            <div class="field">
              <label for="state">State</label>
              <select id="state" name="state">
                {Object.entries(STATES).map(([value, text]) => (
                  <option value={value} selected={value === state}>{text}</option>
                ))}
              </select>
            </div>
            <button type="submit">Filter</button>
          </form>
        )}
        <Card
          title="Endpoints"
          hint={`${count(fits.length)} of ${plural(all.length, "endpoint")}; at most 20`}
          flush
        >
          {all.length === 0
            ? (
              <Empty title="No endpoints yet" action={create}>
                {emptyText(place, create !== null)}
              </Empty>
            )
            : fits.length === 0
            ? (
              <Empty
                title="No endpoint fits"
                action={<a class="button" href={`/console/${place.path}/endpoints`}>Clear the filter</a>}
              >
                Try another word or state.
              </Empty>
            )
            : <EndpointRows endpoints={fits} lists={lists} now={c.now} />}
        </Card>
      </div>
    </>,
    { place, nav: "endpoints" },
  );
}

/** The routes make an endpoint in a tenant, or in the calling key's own scope. */
export const mayCreate = (place: Place, { key }: Visitor): boolean =>
  holds(key, "webhooks:manage") && key.level !== "identity" &&
  (place.scope.level === "tenant" || place.scope.level === key.level);

const emptyText = (place: Place, may: boolean): string =>
  place.scope.level === "partner" && !may
    ? "A partner's endpoints are made with a key of the partner."
    : may
    ? "An endpoint is an https address of yours that receives signed events. The secret to verify them is shown once, when you create it."
    : "You can look but not create: that needs a key with webhooks:manage.";

function isIn({ row, health }: Endpoint, state: State): boolean {
  if (state === "all") return true;
  if (state === "bad") return healthOf(row, health).tone === "bad";
  return row.enabled === (state === "enabled");
}

const mentions = ({ row }: Endpoint, words: string): boolean =>
  words === "" ||
  [row.url, row.description ?? "", row.id, ...row.events].join("\n").toLowerCase().includes(words);

export function EndpointRows(
  { endpoints, lists, now }: { endpoints: Endpoint[]; lists: Hour[][]; now: number },
) {
  return (
    <Table
      label="Endpoints"
      head={
        <>
          <Th>Endpoint</Th>
          <Th>State</Th>
          <Th>Last 24 hours</Th>
          <Th num>Delivered</Th>
          <Th num>Failed</Th>
          <Th>Last success</Th>
        </>
      }
    >
      {endpoints.map(({ row, health }, i) => {
        const total = totalOf(lists[i]!);
        return (
          <tr>
            <th scope="row" class="wrap">
              <a href={`/console/endpoints/${row.id}`}>{row.url}</a>
              <span class="sub">{row.description ?? eventsText(row.events)}</span>
            </th>
            <td>
              <HealthPill row={row} health={health} />
            </td>
            <td>
              <Spark hours={lists[i]!} />
            </td>
            <td class="num">{count(total.succeeded)}</td>
            <td class="num">{count(total.failed)}</td>
            <td class="nowrap">
              {health?.last_success_at
                ? <Time at={health.last_success_at} now={now} />
                : <span class="muted">never</span>}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

export const eventsText = (events: readonly string[]): string =>
  events[0] === "*"
    ? "All event types"
    : events.length <= 2
    ? events.join(", ")
    : `${events.slice(0, 2).join(", ")} and ${events.length - 2} more`;

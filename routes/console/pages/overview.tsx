/** How a place is doing: a day's figures, its chart, and the endpoints that need a person. */
import type { EndpointId } from "../../../lib/ids.ts";
import { type EndpointRow, type HealthRow, keys } from "../../../lib/keys.ts";
import { quantile } from "../../../lib/histogram.ts";
import { SECOND_MS } from "../../../lib/limits.ts";
import type { Kv } from "../../../lib/edge/kv.ts";
import {
  ALL_ENDPOINTS,
  type Hour,
  readHours,
  STATS_FLUSH_MS,
  sumHours,
  totalOf,
} from "../../../actors/stats.ts";
import { getAll } from "../../../actors/event_store.ts";
import { HourChart, HourTable } from "../charts.tsx";
import { count, plural, share, span } from "../format.ts";
import { type Endpoint, endpointsOf, type Place, placeOf } from "../reach.ts";
import { healthOf, needsPerson } from "../status.tsx";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Empty, Head, LiveBar, Pill, Table, Th } from "../ui.tsx";
import { EndpointRows } from "./endpoint_list.tsx";

/** Endpoints a page of a wide place looks through for trouble. */
const MAX_LOOKED_AT = 500;
const MAX_TENANTS = 100;

export async function overview(c: ConsoleContext): Promise<PageView> {
  const reach = { kv: c.services.kv, key: c.visitor.key };
  const place = await placeOf(reach, c.params.scope!);
  const endpoints = await endpointsOf(reach, place);
  const lists = await Promise.all(endpoints.map(({ row }) => readHours(reach.kv, row.id, c.now)));
  const wide = place.scope.level !== "tenant";
  const subject = place.scope.level === "platform" ? ALL_ENDPOINTS : place.path;
  const hours = wide ? await readHours(reach.kv, subject, c.now) : sumHours(lists, c.now);
  const { found, complete } = wide
    ? await endpointsBelow(reach.kv, place)
    : { found: endpoints, complete: true };
  const troubled = found.filter(({ row, health }) => needsPerson(row, health));
  const own = wide
    ? place.scope.level === "platform" ? "The platform's own endpoints" : "The partner's own endpoints"
    : "Endpoints";
  const needs = <Troubled troubled={troubled} complete={complete} looked={found.length} place={place} />;
  return page(
    "Overview",
    <>
      <Head title="Overview" lead={covers(place)}>
        <LiveBar id="overview" refresh={c.url.pathname} />
      </Head>
      <div class="stack" id="overview" data-live="10000">
        <Figures hours={hours} />
        {troubled.length > 0 ? needs : null}
        <Card title="Attempts by hour" hint={coverage()}>
          <HourChart id="hours" hours={hours} />
          <HourTable hours={hours} />
        </Card>
        {troubled.length > 0 ? null : needs}
        <Card
          title={own}
          flush
          footer={<a href={`/console/${place.path}/endpoints`}>All endpoints, filters and new ones</a>}
        >
          {endpoints.length === 0
            ? (
              <Empty title="No endpoints yet">
                {wide
                  ? "Tenants have their own: switch to one to see its endpoints and deliveries."
                  : "Create one to have events delivered to a server of yours."}
              </Empty>
            )
            : <EndpointRows endpoints={endpoints} lists={lists} now={c.now} />}
        </Card>
      </div>
    </>,
    { place, nav: "overview" },
  );
}

function Figures({ hours }: { hours: readonly Hour[] }) {
  const total = totalOf(hours);
  const attempts = total.succeeded + total.failed;
  return (
    <dl class="figures">
      <Figure
        name="Delivered"
        value={count(total.succeeded)}
        sub={attempts === 0 ? "no attempts yet" : `${share(total.succeeded, attempts)} of attempts`}
      />
      <Figure name="Failed attempts" value={count(total.failed)} sub="retried on schedule" />
      <Figure name="Gone dead" value={count(total.dead)} sub="replayable for 30 days" />
      <Figure name="Latency p50" value={shown(quantile(total.latency, 0.5))} sub="event to your 2xx" />
      <Figure name="Latency p95" value={shown(quantile(total.latency, 0.95))} sub="retries included" />
      <Figure
        name="Answer time p95"
        value={shown(quantile(total.took, 0.95))}
        sub={`p50 ${shown(quantile(total.took, 0.5))}`}
      />
    </dl>
  );
}

const shown = (ms: number | null): string => ms === null ? "–" : span(ms);

export function Figure({ name, value, sub }: { name: string; value: string; sub: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        <small>{sub}</small>
      </dd>
    </div>
  );
}

export const coverage = (): string =>
  `Last 24 hours, counted every ${STATS_FLUSH_MS / SECOND_MS} s; test deliveries are left out`;

function covers(place: Place): string {
  switch (place.scope.level) {
    case "platform":
      return "All deliveries of this service over the last 24 hours.";
    case "partner":
      return "Deliveries to this partner's endpoints and its tenants' over the last 24 hours.";
    case "tenant":
      return "Deliveries to this tenant's endpoints over the last 24 hours.";
  }
}

function Troubled(
  { troubled, complete, looked, place }: {
    troubled: Endpoint[];
    complete: boolean;
    looked: number;
    place: Place;
  },
) {
  const hint = complete
    ? `${plural(looked, "endpoint")} looked at`
    : `The first ${count(looked)} endpoints looked at; open a tenant for all of its own`;
  return (
    <Card title="Needs a person" hint={looked === 0 ? undefined : hint} flush>
      {troubled.length === 0
        ? (
          <Empty title="Nothing needs you">
            {looked === 0
              ? "There are no endpoints yet."
              : "No endpoint is failing or was disabled by the service."}
          </Empty>
        )
        : (
          <Table
            label="Endpoints that need a person"
            head={
              <>
                <Th>Endpoint</Th>
                <Th>State</Th>
                <Th>What to do</Th>
              </>
            }
          >
            {troubled.map(({ row, health }) => {
              const { tone, word, advice } = healthOf(row, health);
              return (
                <tr>
                  <th scope="row" class="wrap">
                    <a href={`/console/endpoints/${row.id}`}>{row.url}</a>
                    {place.scope.level === "tenant" || row.tenant_id === null
                      ? null
                      : <span class="sub mono">{row.tenant_id}</span>}
                  </th>
                  <td>
                    <Pill tone={tone}>{word}</Pill>
                  </td>
                  <td class="text">{advice}</td>
                </tr>
              );
            })}
          </Table>
        )}
    </Card>
  );
}

/** The endpoints of all tenants below a wide place, up to a bound. The place itself is held against the key by its caller. */
async function endpointsBelow(kv: Kv, place: Place): Promise<{ found: Endpoint[]; complete: boolean }> {
  const rows: EndpointRow[] = [];
  let complete = true;
  if (place.scope.level === "partner") {
    const ids: EndpointId[] = [];
    const scopes = [place.scope, ...await tenantsOf(kv, place)];
    complete = scopes.length <= MAX_TENANTS;
    const lists = scopes.map(async (scope) => {
      for await (const entry of kv.list({ prefix: keys.endpointsOfScope(scope) })) {
        ids.push(entry.key.at(-1) as EndpointId);
      }
    });
    await Promise.all(lists);
    complete &&= ids.length <= MAX_LOOKED_AT;
    const found = await getAll<EndpointRow>(kv, ids.slice(0, MAX_LOOKED_AT).map(keys.endpoint));
    for (const { value } of found) if (value !== null) rows.push(value);
  } else {
    const options = { limit: MAX_LOOKED_AT + 1, reverse: true, batchSize: MAX_LOOKED_AT + 1 };
    for await (const { value } of kv.list<EndpointRow>({ prefix: keys.endpoints() }, options)) {
      rows.push(value);
    }
    complete = rows.length <= MAX_LOOKED_AT;
    rows.length = Math.min(rows.length, MAX_LOOKED_AT);
  }
  const kept = rows.filter((row) => row.deleted_at === null);
  const health = await getAll<HealthRow>(kv, kept.map((row) => keys.health(row.id)));
  return { found: kept.map((row, i) => ({ row, health: health[i]!.value })), complete };
}

async function tenantsOf(kv: Kv, place: Place) {
  if (place.scope.level !== "partner") return [];
  const found: { level: "tenant"; tenant: EndpointRow["tenant_id"] & string }[] = [];
  const prefix = keys.tenantsOfPartner(place.scope.partner);
  for await (const entry of kv.list({ prefix }, { limit: MAX_TENANTS, reverse: true })) {
    found.push({ level: "tenant", tenant: entry.key.at(-1) as EndpointRow["tenant_id"] & string });
  }
  return found;
}

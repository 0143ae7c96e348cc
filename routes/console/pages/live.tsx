/** The live tail: the newest events and the newest attempts of a place, renewed every two seconds. */
import { eventRowOf, type StoredRow } from "../../../lib/event_row.ts";
import type { EventKey } from "../../../lib/ids.ts";
import { type AttemptRow, keys } from "../../../lib/keys.ts";
import { holds, reachesEvent } from "../../../lib/reach.ts";
import type { Kv } from "../../../lib/edge/kv.ts";
import { newestAttempts } from "../../../actors/attempt_store.ts";
import { keysOfScope } from "../../../actors/event_index.ts";
import { getAll } from "../../../actors/event_store.ts";
import { span } from "../format.ts";
import { type Endpoint, endpointsOf, type Place, placeOf, type Reach } from "../reach.ts";
import type { EventIndex } from "../shapes.ts";
import { attemptText, DeliveryPill, outcomeText } from "../status.tsx";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Empty, Head, LiveBar, Table, Th, Time } from "../ui.tsx";
import { EventRows } from "./events.tsx";

const SHOWN = 20;

export async function livePage(c: ConsoleContext): Promise<PageView> {
  const reach = { kv: c.services.kv, key: c.visitor.key };
  const place = await placeOf(reach, c.params.scope!);
  const endpoints = holds(reach.key, "webhooks:read") ? await endpointsOf(reach, place) : [];
  const [events, attempts] = await Promise.all([
    newestEvents(reach, place),
    attemptsOf(reach.kv, endpoints),
  ]);
  const wide = place.tenant === null;
  return page(
    "Live tail",
    <>
      <Head
        title="Live tail"
        lead={wide
          ? `The newest events in reach of ${place.name}, and the newest attempts to its own endpoints.`
          : "The newest events, and the newest attempts to deliver them."}
      >
        <LiveBar id="tail" refresh={c.url.pathname} />
      </Head>
      <div class="stack" id="tail" data-live="2000">
        <Card title="Events" hint={`Newest ${SHOWN}`} flush>
          {events.length === 0
            ? (
              <Empty title="Waiting for the first event">
                It shows up here within two seconds of its commit.
              </Empty>
            )
            : <EventRows events={events} now={c.now} tenants={wide} />}
        </Card>
        <Card title="Attempts" hint={`Newest ${SHOWN}`} flush>
          {attempts.length === 0
            ? (
              <Empty title="No attempts yet">
                {endpoints.length === 0
                  ? "There is no endpoint here."
                  : "None of the endpoints was dialled yet."}
              </Empty>
            )
            : <AttemptRows attempts={attempts} now={c.now} />}
        </Card>
      </div>
    </>,
    { place, nav: "live" },
  );
}

async function newestEvents(reach: Reach, place: Place): Promise<EventIndex[]> {
  const found: EventKey[] = [];
  // An identity-level key reaches some of a tenant's events: look a little further for them.
  const limit = reach.key.level === "identity" ? 10 * SHOWN : SHOWN;
  for await (const key of keysOfScope(reach.kv, place.scope, { reverse: true })) {
    if (found.push(key) === limit) break;
  }
  const rows = await getAll(reach.kv, found.map(keys.event));
  return found.flatMap((key, i) => {
    const row = eventRowOf(key, rows[i]!.value);
    return row === null || !reachesEvent(reach.key, row) ? [] : [shown(key, row)];
  }).slice(0, SHOWN);
}

const shown = (key: EventKey, row: StoredRow): EventIndex => ({
  id: row.id ?? `evt_${key}`,
  type: row.type,
  tenant_id: row.tenant,
  identity_id: row.identity,
  owner_kind: row.kind,
  owner_id: row.owner,
  sequence: row.seq,
  occurred_at: new Date(row.at).toISOString(),
  erased: row.erased,
});

interface Tailed {
  attempt: AttemptRow;
  endpoint: Endpoint;
}

async function attemptsOf(kv: Kv, endpoints: Endpoint[]): Promise<Tailed[]> {
  const lists = await Promise.all(endpoints.map(async (endpoint) => {
    const found: Tailed[] = [];
    for await (const { value } of newestAttempts(kv, endpoint.row.id)) {
      if (found.push({ attempt: value, endpoint }) === SHOWN) break;
    }
    return found;
  }));
  return lists.flat().sort((a, b) => b.attempt.created_at - a.attempt.created_at).slice(0, SHOWN);
}

function AttemptRows({ attempts, now }: { attempts: Tailed[]; now: number }) {
  return (
    <Table
      label="Newest attempts"
      head={
        <>
          <Th>When</Th>
          <Th>Outcome</Th>
          <Th>Event type</Th>
          <Th>Endpoint</Th>
          <Th>Answer</Th>
          <Th>Attempt</Th>
          <Th num>Took</Th>
        </>
      }
    >
      {attempts.map(({ attempt, endpoint: { row } }) => {
        const next = attempt.next_attempt_at === null
          ? null
          : new Date(attempt.next_attempt_at).toISOString();
        return (
          <tr>
            <td class="nowrap">
              <a href={`/console/endpoints/${row.id}/deliveries/${attempt.id}`}>
                <Time at={attempt.created_at} now={now} />
                <span class="sr">, {attempt.event_type} to {row.url}</span>
              </a>
            </td>
            <td>
              <DeliveryPill delivery={{ status: attempt.status, next_attempt_at: next }} now={now} />
            </td>
            <td class="mono">{attempt.event_type}</td>
            <td class="wrap">
              <a href={`/console/endpoints/${row.id}`}>{new URL(row.url).host}</a>
            </td>
            <td class="mono nowrap">{outcomeText(attempt)}</td>
            <td class="nowrap">{attemptText(attempt)}</td>
            <td class="num nowrap">{span(attempt.duration_ms)}</td>
          </tr>
        );
      })}
    </Table>
  );
}

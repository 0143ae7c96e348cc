/** How far a replay is: what its events came to since it was asked for. */
import { notFound } from "../../../lib/errors.ts";
import { keys, type PairRow, type ReplayRunRow } from "../../../lib/keys.ts";
import { readStates } from "../../../actors/pair_state.ts";
import { count, plural } from "../format.ts";
import { endpointOf } from "../reach.ts";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Head, LiveBar } from "../ui.tsx";

export async function replayProgress(c: ConsoleContext): Promise<PageView> {
  const { kv } = c.services;
  const { row, place } = await endpointOf({ kv, key: c.visitor.key }, c.params.webhook_id!);
  const { value: run } = await kv.get<ReplayRunRow>(keys.replayRun(row.id, c.params.run!));
  if (run === null) throw notFound("route");
  const states = await readStates(kv, row.id, run.events.map(({ key }) => key));
  const came = { delivered: 0, retrying: 0, dead: 0, waiting: 0 };
  for (const [i, { row: pair }] of states.entries()) came[stateOf(pair, run.events[i]!.first)]++;
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

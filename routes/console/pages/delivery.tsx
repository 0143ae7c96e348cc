/** One attempt, and beside it every attempt for the same event and endpoint on a time line. */
import type { DeliveryId } from "../../../lib/ids.ts";
import type { AttemptRow, EndpointRow, PairRow } from "../../../lib/keys.ts";
import { attemptOf, readAttempts } from "../../../actors/attempt_store.ts";
import { readState } from "../../../actors/pair_state.ts";
import { span, stamp } from "../format.ts";
import { endpointOf } from "../reach.ts";
import { attemptText, DeliveryPill, deliveryState, ERROR_TEXT, outcomeText } from "../status.tsx";
import { type ConsoleContext, type Html, page, type PageView, redirect, type View } from "../table.ts";
import { Card, Head, Mark, Note, PostForm, Time, type Tone } from "../ui.tsx";
import { mayManage, newOnce } from "./endpoint_acts.tsx";

/** Attempts shown of an event that was replayed over and over. */
const MAX_SHOWN = 100;

export async function deliveryPage(c: ConsoleContext): Promise<PageView> {
  const { kv } = c.services, id = c.params.delivery_id as DeliveryId;
  const { place, ...endpoint } = await endpointOf({ kv, key: c.visitor.key }, c.params.webhook_id!);
  const { row } = endpoint;
  const attempt = await attemptOf(kv, row.id, id);
  const { row: pair } = await readState(kv, row.id, attempt.event);
  const all = await attemptsOf(kv, row, pair, attempt);
  const shown = shownOf(attempt), base = `/console/endpoints/${row.id}`;
  const redeliver = mayManage(c.visitor, endpoint) && attempt.event_type !== "webhook.test";
  return page(
    `Delivery of ${attempt.event_type}`,
    <>
      <Head
        title={`Delivery of ${attempt.event_type}`}
        lead={
          <>
            to <span class="wrap">{row.url}</span>
          </>
        }
        crumbs={[
          [`/console/${place.path}`, place.name],
          [`/console/${place.path}/endpoints`, "Endpoints"],
          [base, row.url],
        ]}
      >
        {redeliver
          ? (
            <PostForm inline action={`${base}/deliveries/${id}/redeliver`} csrf={c.csrf} once={newOnce(c)}>
              <button type="submit" class="primary" data-busy="Queueing …">Redeliver</button>
            </PostForm>
          )
          : null}
      </Head>
      <div class="stack">
        {c.query.get("done") === "tested" ? <TestNote attempt={attempt} /> : null}
        {c.query.get("done") === "queued"
          ? (
            <Note tone="ok" title="Queued to be delivered again, with the full retry schedule.">
              <p>The new attempt shows up on the time line within seconds.</p>
            </Note>
          )
          : null}
        <div class="two" id="attempts" {...(isOver(pair) ? {} : { "data-live": "3000" })}>
          <Card title="Attempts" hint="For this event and endpoint, oldest first; times in UTC">
            <Timeline attempts={all} pair={pair} here={id} base={base} now={c.now} />
          </Card>
          <Card title="This attempt">
            <dl class="facts">
              <dt>Outcome</dt>
              <dd>
                <DeliveryPill delivery={shown} now={c.now} />
              </dd>
              <dt>Answer</dt>
              <dd>
                <code>{outcomeText(shown)}</code>
                {attempt.error === null ? null : <div class="small">{ERROR_TEXT[attempt.error]}</div>}
              </dd>
              <dt>Started</dt>
              <dd>
                <Time full at={attempt.created_at} now={c.now} />
              </dd>
              <dt>Took</dt>
              <dd>{span(attempt.duration_ms)}</dd>
              <dt>Attempt</dt>
              <dd>
                {attemptText(attempt)}
                {attempt.first_attempt > 1 ? " of a replay" : ""}
              </dd>
              <dt>Next attempt</dt>
              <dd>
                {attempt.next_attempt_at === null || attempt.next_attempt_at < c.now
                  ? "None"
                  : <Time full at={attempt.next_attempt_at} now={c.now} />}
              </dd>
              <dt>Event</dt>
              <dd>
                <a class="mono" href={`/console/events/${attempt.event_id}`}>{attempt.event_id}</a>
                <div class="small muted">
                  Also the <code>webhook-id</code> header, the same on every attempt.
                </div>
              </dd>
              <dt>Delivery id</dt>
              <dd class="mono">{attempt.id}</dd>
            </dl>
          </Card>
        </div>
      </div>
    </>,
    { place, nav: "endpoints" },
  );
}

const isOver = (pair: PairRow | null): boolean =>
  pair === null || pair.attempt >= pair.first && pair.status !== "failed";

const shownOf = (row: AttemptRow) => ({
  ...row,
  next_attempt_at: row.next_attempt_at === null ? null : new Date(row.next_attempt_at).toISOString(),
});

async function attemptsOf(
  kv: ConsoleContext["services"]["kv"],
  row: EndpointRow,
  pair: PairRow | null,
  attempt: AttemptRow,
): Promise<AttemptRow[]> {
  const ids = (pair?.ids ?? []).slice(-MAX_SHOWN);
  const rows = (await readAttempts(kv, row.id, ids)).filter((found) => found !== null);
  return rows.some(({ id }) => id === attempt.id) ? rows : [...rows, attempt];
}

function Timeline(
  { attempts, pair, here, base, now }: {
    attempts: AttemptRow[];
    pair: PairRow | null;
    here: string;
    base: string;
    now: number;
  },
) {
  const last = attempts.at(-1)!;
  const waiting = pair !== null && pair.attempt < pair.first;
  return (
    <ol class="line">
      {attempts.map((row) => {
        const { tone, word } = deliveryState(shownOf(row), now);
        return (
          <Step tone={tone} here={row.id === here}>
            <div class="row">
              <b>
                {row.attempt === row.first_attempt && row.attempt > 1 ? "Replayed: " : ""}
                {row.id === here ? word : <a href={`${base}/deliveries/${row.id}`}>{word}</a>}
              </b>
              <code>{outcomeText(shownOf(row))}</code>
              <span class="muted">{span(row.duration_ms)}</span>
            </div>
            <div class="small muted">
              {stamp(row.created_at)}, attempt {attemptText(row)}
              {row.id === here ? ", this one" : ""}
            </div>
          </Step>
        );
      })}
      {waiting
        ? (
          <Step tone="idle">
            <b>Queued again</b>
            <div class="small muted">Its first attempt comes as soon as there is room.</div>
          </Step>
        )
        : last.next_attempt_at !== null && last.status === "failed"
        ? (
          <Step tone="idle">
            <b>
              Next attempt <Time at={last.next_attempt_at} now={now} />
            </b>
            <div class="small muted">{stamp(last.next_attempt_at)}</div>
          </Step>
        )
        : null}
    </ol>
  );
}

function Step({ tone, here = false, children }: { tone: Tone; here?: boolean; children?: Html }) {
  return (
    <li class={`${tone}${here ? " here" : ""}`}>
      <Mark tone={tone} size={14} />
      {children}
    </li>
  );
}

function TestNote({ attempt }: { attempt: AttemptRow }) {
  const took = span(attempt.duration_ms);
  return attempt.status === "succeeded"
    ? (
      <Note tone="ok" title={`The receiver answered ${attempt.http_status} in ${took}.`}>
        <p>It takes signed events. A test is tried once and never retried.</p>
      </Note>
    )
    : (
      <Note
        tone="bad"
        title={attempt.http_status === null
          ? `The test failed after ${took}: ${attempt.error}.`
          : `The receiver answered ${attempt.http_status} in ${took}, which is a failure.`}
      >
        <p>{attempt.error === null ? "" : ERROR_TEXT[attempt.error]}</p>
      </Note>
    );
}

export async function redeliver(c: ConsoleContext): Promise<View> {
  const { webhook_id, delivery_id } = c.params as { webhook_id: string; delivery_id: string };
  const { queued } = await c.api.call<{ queued: number }>(
    "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    { params: { webhook_id, delivery_id }, once: c.form.get("once") },
  );
  const here = `/console/endpoints/${webhook_id}/deliveries/${delivery_id}`;
  if (queued > 0) return redirect(`${here}?done=queued`);
  const { place, row } = await endpointOf({ kv: c.services.kv, key: c.visitor.key }, webhook_id);
  return page(
    "Not queued",
    <>
      <Head title="Not queued" lead={row.url} />
      <Note tone="bad" title="This event cannot be delivered again.">
        <p>
          It is over 30 days old, its payload was erased, or the endpoint no longer takes its type.{" "}
          <a href={here}>Back to the delivery</a>
        </p>
      </Note>
    </>,
    { place, nav: "endpoints", status: 409 },
  );
}

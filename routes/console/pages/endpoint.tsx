/** One endpoint: how it does, its settings, its deliveries, and everything a person can do with it. */
import { quantile } from "../../../lib/histogram.ts";
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS } from "../../../lib/limits.ts";
import { readHours, totalOf } from "../../../actors/stats.ts";
import { HourChart, HourTable } from "../charts.tsx";
import { count, share, span } from "../format.ts";
import { type Endpoint, endpointOf, type Place } from "../reach.ts";
import { healthOf, HealthPill } from "../status.tsx";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Head, Note, PostForm, Time } from "../ui.tsx";
import { deliveriesCard } from "./deliveries.tsx";
import { mayManage, newOnce } from "./endpoint_acts.tsx";
import { coverage, Figure } from "./overview.tsx";

const DONE: Record<string, string> = {
  enabled: "Enabled. New events are delivered again; replay what it missed.",
  disabled: "Disabled. Nothing is delivered until it is enabled.",
  saved: "Saved. The next attempt already uses the new settings.",
};

export async function endpointPage(c: ConsoleContext): Promise<PageView> {
  const reach = { kv: c.services.kv, key: c.visitor.key };
  const { place, ...endpoint } = await endpointOf(reach, c.params.webhook_id!);
  const { row, health } = endpoint, base = `/console/endpoints/${row.id}`;
  const manage = mayManage(c.visitor, endpoint);
  const [hours, deliveries] = await Promise.all([
    readHours(reach.kv, row.id, c.now),
    deliveriesCard(c, row, manage),
  ]);
  const total = totalOf(hours), attempts = total.succeeded + total.failed;
  const done = DONE[c.query.get("done") ?? ""];
  const state = healthOf(row, health);
  return page(
    row.url,
    <>
      <Head
        title={row.url}
        lead={row.description ?? undefined}
        crumbs={[[`/console/${place.path}`, place.name], [`/console/${place.path}/endpoints`, "Endpoints"]]}
      >
        {manage ? <Actions c={c} endpoint={endpoint} base={base} /> : null}
      </Head>
      <div class="stack">
        {done === undefined ? null : <Note tone="ok" title={done} />}
        {state.advice === null ? null : (
          <div class={`note ${state.tone}`}>
            <b>{state.word}.</b> {state.advice}
          </div>
        )}
        <dl class="figures">
          <Figure
            name="Delivered"
            value={count(total.succeeded)}
            sub={attempts === 0 ? "no attempts yet" : `${share(total.succeeded, attempts)} of attempts`}
          />
          <Figure name="Failed attempts" value={count(total.failed)} sub={`${count(total.dead)} gone dead`} />
          <Figure name="Latency p50" value={shown(quantile(total.latency, 0.5))} sub="event to your 2xx" />
          <Figure name="Latency p95" value={shown(quantile(total.latency, 0.95))} sub="retries included" />
          <Figure
            name="Answer time p95"
            value={shown(quantile(total.took, 0.95))}
            sub={`p50 ${shown(quantile(total.took, 0.5))}`}
          />
        </dl>
        <Card title="Attempts by hour" hint={coverage()}>
          <HourChart id="hours" hours={hours} />
          <HourTable hours={hours} />
        </Card>
        <Settings endpoint={endpoint} place={place} now={c.now} />
        {deliveries}
        {manage ? <Secrets c={c} base={base} endpoint={endpoint} /> : null}
        {manage ? <Removal c={c} base={base} /> : null}
      </div>
    </>,
    { place, nav: "endpoints" },
  );
}

const shown = (ms: number | null): string => ms === null ? "–" : span(ms);

function Actions({ c, endpoint, base }: { c: ConsoleContext; endpoint: Endpoint; base: string }) {
  const { enabled } = endpoint.row;
  const toggle = enabled ? "disable" : "enable";
  return (
    <>
      <PostForm inline action={`${base}/test`} csrf={c.csrf} once={newOnce(c)}>
        <button type="submit" data-busy="Sending …">Send a test</button>
      </PostForm>
      <a class="button" href={`${base}/replay`}>Replay</a>
      <a class="button" href={`${base}/edit`}>Edit</a>
      <PostForm inline action={`${base}/${toggle}`} csrf={c.csrf} once={newOnce(c)}>
        <button type="submit" class={enabled ? "" : "primary"}>{enabled ? "Disable" : "Enable"}</button>
      </PostForm>
    </>
  );
}

function Settings(
  { endpoint: { row, health }, place, now }: { endpoint: Endpoint; place: Place; now: number },
) {
  const all = row.events[0] === "*";
  const overlap = row.prev_secret_expires_at !== null && row.prev_secret_expires_at > now;
  return (
    <Card title="Settings">
      <dl class="facts wide">
        <dt>State</dt>
        <dd>
          <HealthPill row={row} health={health} />
        </dd>
        <dt>Id</dt>
        <dd class="mono">{row.id}</dd>
        <dt>Belongs to</dt>
        <dd>{place.name}</dd>
        <dt>Event types</dt>
        <dd>
          {all
            ? "All, also those to come"
            : <ul class="tags">{row.events.map((type) => <li class="tag">{type}</li>)}</ul>}
        </dd>
        <dt>Identities</dt>
        <dd>
          {row.identity_ids === null
            ? "All"
            : <ul class="tags">{row.identity_ids.map((id) => <li class="tag">{id}</li>)}</ul>}
        </dd>
        <dt>Own headers</dt>
        <dd>
          {(row.header_names ?? []).length === 0
            ? "None"
            : <ul class="tags">{row.header_names!.map((name) => <li class="tag">{name}: ***</li>)}</ul>}
        </dd>
        <dt>Signatures</dt>
        <dd>
          {row.v1a_public === undefined ? "v1 (HMAC-SHA256)" : (
            <>
              v1 (HMAC-SHA256), v1a (Ed25519)<br />
              <code class="wrap">{row.v1a_public}</code>
            </>
          )}
        </dd>
        {overlap
          ? (
            <>
              <dt>Old secret</dt>
              <dd>
                signs beside the new one until <Time full at={row.prev_secret_expires_at!} now={now} />
              </dd>
            </>
          )
          : null}
        <dt>Failures in a row</dt>
        <dd>{count(health?.consecutive_failures ?? 0)}</dd>
        <dt>Last success</dt>
        <dd>{health?.last_success_at ? <Time full at={health.last_success_at} now={now} /> : "Never"}</dd>
        <dt>Last failure</dt>
        <dd>{health?.last_failure_at ? <Time full at={health.last_failure_at} now={now} /> : "Never"}</dd>
        <dt>Created</dt>
        <dd>
          <Time full at={row.created_at} now={now} />
        </dd>
      </dl>
    </Card>
  );
}

function Secrets({ c, base, endpoint }: { c: ConsoleContext; base: string; endpoint: Endpoint }) {
  return (
    <Card title="Signing secret" hint={`Of ${new URL(endpoint.row.url).host} alone; never shown again`}>
      <PostForm action={`${base}/rotate-secret`} csrf={c.csrf} once={newOnce(c)} label="Rotate the secret">
        <div class="field">
          <label for="overlap">Let the old secret sign beside the new one for</label>
          <select id="overlap" name="overlap_hours" aria-describedby="overlap-hint">
            {[0, 1, DEFAULT_OVERLAP_HOURS, 72, MAX_OVERLAP_HOURS].map((hours) => (
              <option value={String(hours)} selected={hours === DEFAULT_OVERLAP_HOURS}>
                {hours === 0 ? "no time: it stops at once" : hours < 48 ? `${hours} h` : `${hours / 24} days`}
              </option>
            ))}
          </select>
          <div class="hint" id="overlap-hint">
            During the overlap each delivery carries two signatures, so that receivers can change over without
            a gap.
          </div>
        </div>
        <div>
          <button type="submit">Rotate the secret</button>
        </div>
      </PostForm>
    </Card>
  );
}

function Removal({ c, base }: { c: ConsoleContext; base: string }) {
  return (
    <Card title="Delete">
      <details>
        <summary>Delete this endpoint …</summary>
        <PostForm action={`${base}/delete`} csrf={c.csrf} once={newOnce(c)}>
          <p>
            What is pending for it is dropped. Its log stays readable until retention takes it. This cannot be
            undone.
          </p>
          <div>
            <button type="submit" class="danger">Delete for good</button>
          </div>
        </PostForm>
      </details>
    </Card>
  );
}

/** `pmail events …`: a tenant's events over the API, one of them as sent, what became of it, and new ones as they come. */
import { realNow, realTimers } from "../../lib/edge/ports.ts";
import { SECOND_MS } from "../../lib/limits.ts";
import { type Api, isoOf, type Json, openApi, segment } from "./api.ts";
import { type Command, CommandLineError, type Line, table } from "./command.ts";

const FILTERS = {
  tenant: { value: "TEN", about: "whose events (needed)" },
  type: { value: "TYPE", about: "of this type" },
  owner: { value: "ID", about: "of this owner" },
  identity: { value: "IDN", about: "of this identity" },
};
const POLL_MS = SECOND_MS;
/** Events a tail catches up with in one look. */
const MAX_BURST = 10_000;
/** An event may show this much after its time: its commit was under way. */
const LATE_MS = 10 * SECOND_MS;

function queryOf(line: Line) {
  const tenant = line.id("tenant", "tenant");
  if (tenant === undefined) throw new CommandLineError("--tenant is needed");
  const query = {
    type: line.text("type"),
    owner_id: line.text("owner"),
    identity_id: line.id("identity", "identity"),
  };
  return { path: `/v1/tenants/${tenant}/events`, query };
}

const cells = (event: Json) => [event.occurred_at, event.id, event.type, event.owner_id, event.sequence];

export const eventCommands: Command[] = [
  {
    name: "events list",
    kind: "api",
    summary: "list a tenant's events, newest first",
    options: {
      ...FILTERS,
      since: { value: "TIME", about: "from this time on, or this age (2h)" },
      until: { value: "TIME", about: "before this time" },
      limit: { value: "N", about: "at most this many (default 25)" },
    },
    examples: ["pmail events list --tenant ten_01K… --type order.paid --since 1h"],
    async run(line) {
      const { path, query } = queryOf(line);
      const window = { since: isoOf(line.time("since")), until: isoOf(line.time("until")) };
      const data = await openApi().list(path, { ...query, ...window }, line.whole("limit", 1, 100_000) ?? 25);
      line.answer({ data }, table(data.map(cells), ["OCCURRED", "ID", "TYPE", "OWNER", "SEQ"]));
    },
  },
  {
    name: "events show",
    kind: "api",
    summary: "print an event's envelope: the very bytes that are signed and sent",
    args: ["EVENT_ID"],
    options: {},
    examples: ["pmail events show evt_01K… | jq .data"],
    async run(line) {
      console.log(await openApi().text(`/v1/events/${segment(line.args[0]!)}`));
    },
  },
  {
    name: "events trace",
    kind: "api",
    summary: "explain an event: who receives it and why not, its attempts, what comes next",
    args: ["EVENT_ID"],
    options: {},
    examples: ["pmail events trace evt_01K…"],
    async run(line) {
      const trace = await openApi().call("GET", `/v1/events/${segment(line.args[0]!)}/trace`);
      line.answer(trace, traceText(trace));
    },
  },
  {
    name: "events tail",
    kind: "api",
    summary: "print events as they come, until Ctrl-C",
    options: {
      ...FILTERS,
      since: { value: "TIME", about: "begin here (default now)" },
      count: { value: "N", about: "stop after this many" },
    },
    examples: ["pmail events tail --tenant ten_01K… --type order.paid --json"],
    run: (line) => tail(line, openApi()),
  },
];

function traceText({ event, endpoints }: Json): string {
  const lines = [`${event.id} ${event.type}, ${event.occurred_at}${event.erased ? ", payload erased" : ""}`];
  for (const endpoint of endpoints) {
    const why = endpoint.rule === null ? "" : `: ${endpoint.rule}`;
    lines.push(`${endpoint.webhook_id} (${endpoint.scope}) ${endpoint.state}${why}`);
    for (const attempt of endpoint.attempts) {
      const what = attempt.error ?? attempt.http_status;
      lines.push(
        `  #${attempt.attempt} ${attempt.created_at} ${attempt.status}: ${what}, ${attempt.duration_ms} ms`,
      );
    }
    if (endpoint.next !== null) {
      const { attempt, at, error } = endpoint.next;
      lines.push(
        `  #${attempt} next ${at ?? "at any moment"}${error === null ? "" : `, would end dead: ${error}`}`,
      );
    }
  }
  if (endpoints.length === 0) lines.push("no endpoint within your key's reach");
  return lines.join("\n");
}

/** Asks every second for what is new; what it has shown it knows by its id. */
async function tail(line: Line, api: Api): Promise<void> {
  const { path, query } = queryOf(line);
  const count = line.whole("count", 1, 1_000_000) ?? Infinity;
  const begin = line.time("since") ?? realNow();
  const seen = new Map<string, number>();
  let since = begin;
  for (let printed = 0;;) {
    const found = await api.list(
      path,
      { ...query, since: isoOf(Math.max(begin, since - LATE_MS)) },
      MAX_BURST,
    );
    for (const event of found.reverse()) {
      if (seen.has(event.id)) continue;
      const at = Date.parse(event.occurred_at);
      seen.set(event.id, at);
      since = Math.max(since, at);
      line.answer(event, cells(event).join("  "));
      if (++printed >= count) return;
    }
    for (const [id, at] of seen) if (at < since - 2 * LATE_MS) seen.delete(id);
    await new Promise<void>((resolve) => void realTimers.after(POLL_MS, resolve));
  }
}

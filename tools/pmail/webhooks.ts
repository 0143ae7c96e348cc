/** `pmail webhooks …` and `pmail dlq …`: endpoints and dead letters over the API. */
import { realNow } from "../../lib/edge/ports.ts";
import { attemptStatus } from "../../lib/keys.ts";
import { MAX_OVERLAP_HOURS } from "../../lib/limits.ts";
import { isoOf, type Json, openApi, segment } from "./api.ts";
import { type Command, CommandLineError, type Line, table } from "./command.ts";

const TENANT = { value: "TEN", about: "of this tenant (default: of your key's own scope)" };
const LIMIT = { value: "N", about: "at most this many, newest first (default 100)" };
const collection = (line: Line): string => {
  const tenant = line.id("tenant", "tenant");
  return tenant === undefined ? "/v1/webhooks" : `/v1/tenants/${tenant}/webhooks`;
};
const one = (line: Line): string => `/v1/webhooks/${segment(line.args[0]!)}`;
const limitOf = (line: Line): number => line.whole("limit", 1, 100_000) ?? 100;

/** `Name: value` or `Name=value` → a header. */
function headerOf(text: string): [string, string] {
  const [, name, value] = /^([^:=\s]+)\s*[:=]\s*(.*)$/s.exec(text) ?? [];
  if (!name) throw new CommandLineError('--header must be "Name: value"');
  return [name, value!];
}

const stateOf = (webhook: Json): string =>
  webhook.enabled ? "enabled" : `disabled (${webhook.disabled_reason})`;

export const webhookCommands: Command[] = [
  {
    name: "webhooks create",
    kind: "api",
    summary: "make an endpoint; its secret is shown once",
    options: {
      url: { value: "URL", about: "where deliveries go" },
      tenant: TENANT,
      events: { value: "A,B", about: "event types (default *: all of them)" },
      identities: { value: "IDN,IDN", about: "only events of these identities" },
      description: { value: "TEXT", about: "for people" },
      header: { value: "'N: V'", about: "a header every delivery carries", many: true },
      v1a: { about: "sign with Ed25519 beside HMAC" },
    },
    examples: [
      "pmail webhooks create --tenant ten_01K… --url https://hooks.example.com/in",
      "pmail webhooks create --url https://hooks.example.com/all --events order.paid,order.shipped --v1a",
    ],
    async run(line) {
      const headers = Object.fromEntries(line.all("header").map(headerOf));
      const webhook = await openApi().call("POST", collection(line), {
        url: line.need("url"),
        events: line.list("events") ?? ["*"],
        identity_ids: line.list("identities"),
        description: line.text("description"),
        ...(Object.keys(headers).length > 0 ? { headers } : {}),
        ...(line.has("v1a") ? { signature_versions: ["v1", "v1a"] } : {}),
      });
      const key = webhook.public_key ? `\npublic key ${webhook.public_key}` : "";
      line.answer(
        webhook,
        `${webhook.id} → ${webhook.url}\nsecret ${webhook.secret} (shown this once)${key}`,
      );
    },
  },
  {
    name: "webhooks list",
    kind: "api",
    summary: "list endpoints",
    options: { tenant: TENANT, limit: LIMIT },
    examples: ["pmail webhooks list --tenant ten_01K…"],
    async run(line) {
      const data = await openApi().list(collection(line), {}, limitOf(line));
      const rows = data.map((
        hook,
      ) => [hook.id, stateOf(hook), hook.consecutive_failures, hook.events.join(), hook.url]);
      line.answer({ data }, table(rows, ["ID", "STATE", "FAILURES", "EVENTS", "URL"]));
    },
  },
  {
    name: "webhooks test",
    kind: "api",
    summary: "send one webhook.test now; exit 1 when it does not succeed",
    args: ["WEBHOOK_ID"],
    options: {},
    examples: ["pmail webhooks test whk_01K…"],
    async run(line) {
      const attempt = await openApi().call("POST", `${one(line)}/test`);
      const what = attempt.error ?? `status ${attempt.http_status}`;
      line.answer(
        attempt,
        `${attempt.status}: ${what} after ${attempt.duration_ms} ms (${attempt.event_id})`,
      );
      return attempt.status === "succeeded" ? 0 : 1;
    },
  },
  {
    name: "webhooks replay",
    kind: "api",
    summary: "deliver events again, by ids or by a window of their time",
    args: ["WEBHOOK_ID"],
    options: {
      event: { value: "EVT", about: "this event", many: true },
      since: { value: "TIME", about: "from this time on, or this age (2h)" },
      until: { value: "TIME", about: "before this time (default now)" },
      status: { value: "STATUS", about: "only those in this state", choices: attemptStatus.options },
    },
    examples: [
      "pmail webhooks replay whk_01K… --event evt_01K…",
      "pmail webhooks replay whk_01K… --since 2h --status dead",
    ],
    async run(line) {
      const event_ids = line.all("event"), since = line.time("since");
      if (event_ids.length > 0 === (since !== undefined)) {
        throw new CommandLineError("give --event or --since, one of them");
      }
      const body = event_ids.length > 0 ? { event_ids } : {
        since: isoOf(since),
        until: isoOf(line.time("until") ?? realNow()),
        status: line.text("status"),
      };
      const answer = await openApi().call("POST", `${one(line)}/replay`, body);
      line.answer(answer, `${answer.queued} queued`);
    },
  },
  {
    name: "webhooks rotate",
    kind: "api",
    summary: "make a new secret; the old one signs beside it for the overlap",
    args: ["WEBHOOK_ID"],
    options: { "overlap-hours": { value: "N", about: "0 to 168 (default 24)" } },
    examples: ["pmail webhooks rotate whk_01K… --overlap-hours 48"],
    async run(line) {
      const hours = line.whole("overlap-hours", 0, MAX_OVERLAP_HOURS);
      const webhook = await openApi().call(
        "POST",
        `${one(line)}/rotate-secret`,
        hours === undefined ? {} : { overlap_hours: hours },
      );
      const until = webhook.previous_secret_expires_at;
      const old = until === null ? "the old one is gone" : `the old one signs beside it until ${until}`;
      line.answer(webhook, `secret ${webhook.secret} (shown this once); ${old}`);
    },
  },
  {
    name: "dlq list",
    kind: "api",
    summary: "list jobs that our side failed to process again and again",
    options: { limit: LIMIT },
    examples: ["pmail dlq list"],
    async run(line) {
      const data = await openApi().list("/v1/platform/dlq", {}, limitOf(line));
      const rows = data.map((
        item,
      ) => [item.id, item.kind, item.webhook_id, item.events, item.error, item.created_at]);
      line.answer({ data }, table(rows, ["ID", "KIND", "WEBHOOK", "EVENTS", "ERROR", "SINCE"]));
    },
  },
  {
    name: "dlq redrive",
    kind: "api",
    summary: "put a dead letter's job back in line",
    args: ["DEAD_LETTER_ID"],
    options: {},
    examples: ["pmail dlq redrive dlq_01K…"],
    async run(line) {
      const item = await openApi().call("POST", `/v1/platform/dlq/${segment(line.args[0]!)}/redrive`);
      line.answer(item, `${item.id} is in line again`);
    },
  },
];

/** The trace as a picture: every state in words, for who sees it and who does not. */
import assert from "node:assert/strict";
import type { TraceState } from "../../actors/trace.ts";
import type { Delivery } from "../../routes/console/shapes.ts";
import { type Lane, MAX_LANES, TracePicture } from "../../routes/console/trace_picture.tsx";
import { withApi } from "../routes/support.ts";
import { seed } from "./seed.ts";
import { signedIn } from "./support.ts";

const NOW = Date.parse("2026-10-09T12:00:00Z");

function attempt(n: number, answer: number): Delivery {
  return {
    id: `dlv_${n}`,
    webhook_id: "whk_1",
    event_id: "evt_1",
    event_type: "order.paid",
    attempt: n,
    first_attempt: 1,
    status: answer < 300 ? "succeeded" : "failed",
    http_status: answer,
    error: answer < 300 ? null : "status_5xx",
    duration_ms: 40,
    next_attempt_at: null,
    created_at: new Date(NOW).toISOString(),
  };
}

const attempts = (...answers: number[]): Delivery[] => answers.map((answer, i) => attempt(i + 1, answer));

function lane(state: TraceState, word: string, rest: Partial<Lane> = {}): Lane {
  return {
    url: `https://a.test/${state}`,
    state,
    word,
    tone: "idle",
    rule: null,
    attempts: [],
    next: null,
    ...rest,
  };
}

const draw = (lanes: Lane[], type = "order.paid"): string => String(TracePicture({ type, lanes, now: NOW }));

/** The two drawings of a picture; of each its description and what it shows. */
function drawings(html: string): { desc: string; shown: string }[] {
  return [...html.matchAll(/<svg class="(?:wide|narrow)".*?<\/svg>/gs)].map(([svg]) => ({
    desc: /<desc[^>]*>(.*?)<\/desc>/s.exec(svg)![1]!,
    shown: [...svg.matchAll(/<text[^>]*>(.*?)<\/text>/gs)].map((found) => found[1]).join("\n"),
  }));
}

const soon = (error: string | null = null) => ({
  attempt: 3,
  at: new Date(NOW + 240_000).toISOString(),
  error,
});

const SAID: [lane: Lane, words: string][] = [
  [lane("succeeded", "Delivered", { attempts: attempts(500, 200) }), "Delivered with 2 attempts"],
  [
    lane("retrying", "Retrying", { attempts: attempts(500, 503), next: soon() }),
    "Retrying: attempt 3 in 4 min",
  ],
  [
    lane("retrying", "Retrying", { next: soon("endpoint_disabled") }),
    "Retrying: attempt 3 in 4 min, ends dead",
  ],
  [lane("dead", "Dead", { attempts: attempts(...Array(13).fill(500)) }), "Dead after 13 attempts"],
  [lane("held", "Held", { next: { ...soon(), at: null } }), "Held: its partner is suspended"],
  [
    lane("waiting_for_fan_out", "Waiting", { next: { ...soon(), attempt: 1 } }),
    "Waiting: attempt 1 in 4 min",
  ],
  [
    lane("queued", "Queued", { next: { ...soon(), at: new Date(NOW).toISOString() } }),
    "Queued: attempt 3 at any moment",
  ],
  [lane("in_flight", "In flight", { next: { ...soon(), at: null } }), "In flight: attempt 3 at any moment"],
  [lane("not_matched", "Not for it", { rule: "event_type" }), "Not for it: other event types"],
  [lane("not_matched", "Not for it", { rule: "disabled" }), "Not for it: disabled"],
  [lane("dead_lettered", "Dead letter"), "Dead letter: an operator redrives it"],
  [lane("forgotten", "Forgotten"), "Forgotten: past retention"],
  [lane("unknown", "Unknown"), "Unknown: too many jobs wait"],
];

Deno.test("trace picture: each state is said beside its line and in the description, in both shapes", () => {
  const drawn = drawings(draw(SAID.map(([lane]) => lane)));
  assert.equal(drawn.length, 2);
  for (const { desc, shown } of drawn) {
    for (const [{ url }, words] of SAID) {
      assert.ok(shown.split("\n").includes(words), words);
      assert.ok(desc.includes(`${url}: ${words}.`), words);
    }
    assert.ok(desc.includes("Attempt 1: 500 status_5xx, Attempt 2: 200."), desc);
  }
});

Deno.test("trace picture: an attempt is a dot, 13 at most, and the last of them", () => {
  const html = draw([lane("succeeded", "Delivered", { attempts: attempts(...Array(15).fill(500), 200) })]);
  assert.equal(html.match(/class="dot bad"/g)!.length, 2 * 12);
  assert.equal(html.match(/class="dot ok"/g)!.length, 2);
  for (const { desc, shown } of drawings(html)) {
    assert.ok(shown.includes("Delivered with 16 attempts, the last 13 shown"), shown);
    assert.ok(desc.includes("Attempt 4: 500") && !desc.includes("Attempt 3:"), desc);
  }
});

Deno.test("trace picture: names are shown as text", () => {
  const evil = `"><script>alert(1)</script>`;
  const html = draw([lane("unknown", evil, { url: evil })], evil);
  assert.ok(!html.includes("<script>"), html);
  assert.ok(html.includes("&lt;script&gt;"), html);
});

Deno.test("trace picture: of more endpoints than it has room for, it says how many the table has", () => {
  const lanes = Array.from(
    { length: MAX_LANES + 3 },
    (_, i) => lane("unknown", "Unknown", { url: `https://a.test/${i}` }),
  );
  const html = draw(lanes);
  assert.equal(html.match(/class="lane /g)!.length, 2 * MAX_LANES);
  assert.ok(html.includes("3 more endpoints in the table below.</p>"), html);
  for (const { desc } of drawings(html)) {
    assert.ok(desc.endsWith("3 more endpoints in the table below."), desc);
  }
  assert.ok(!draw(lanes.slice(3)).includes("more endpoint"));
});

Deno.test(
  "trace picture: the event's page has it above the table",
  withApi(async (api) => {
    const { events } = await seed(api.services);
    const visitor = await signedIn(api, (await api.key()).secret);
    const { text } = await visitor.get(`/console/events/${events[20]!.id}`);
    const drawn = drawings(text);
    assert.equal(drawn.length, 2);
    assert.ok(text.indexOf('class="inset trace"') < text.indexOf("Endpoints and this event"));
    for (
      const words of ["Delivered with 1 attempt", "Not for it: disabled", "Not for it: other event types"]
    ) {
      for (const { desc } of drawn) assert.ok(desc.includes(words), words);
    }
  }),
);

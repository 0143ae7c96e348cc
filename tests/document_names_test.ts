/** The document's own tests (reference §10): each name stands in the name of a test, so that whoever looks for one finds it. */
import assert from "node:assert/strict";

const NAMES = [
  "outbox_at_least_once",
  "sequence_strictly_increases",
  "standard_webhooks_vectors",
  "rotation_two_signatures",
  "aes_gcm_round_trip_and_aad",
  "ssrf_ranges",
  "ssrf_url_rules",
  "no_redirects_and_caps",
  "j4_retry_schedule",
  "disable_on_410",
  "j13_held_while_partner_suspended",
  "j15_partner_scope_filter",
  "disable_after_100_failures_24h",
  "replay_by_ids_and_window",
  "notifier_handoff_never_blocks",
  "identity_key_events",
  "filters",
  "payload_text_cap",
  "deleted_identity_event_unavailable",
  "no_content_in_logs",
];

const TESTS = new URL("./", import.meta.url);

/** The names given to `Deno.test` in a source, with those in an object's `name`. */
const namesIn = (source: string): string[] =>
  [...source.matchAll(/Deno\.test\(\s*(?:\{\s*name:\s*)?(["'`])((?:\\.|(?!\1)[^\\])*)\1/g)].map((found) =>
    found[2]!
  );

async function* sources(folder: URL): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    if (entry.isDirectory) yield* sources(new URL(`${entry.name}/`, folder));
    else if (/_test\.tsx?$/.test(entry.name)) yield await Deno.readTextFile(new URL(entry.name, folder));
  }
}

Deno.test("document_names: every test the document names is there, under its name", async () => {
  const found: string[] = [];
  for await (const source of sources(TESTS)) found.push(...namesIn(source));
  assert.ok(found.length > 200, `${found.length} tests found`);
  const missing = NAMES.filter((name) =>
    !found.some((test) => new RegExp(`(^|\\W)${name}(\\W|$)`).test(test))
  );
  assert.deepEqual(missing, []);
});

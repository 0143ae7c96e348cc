/** The files of ops/ fit the service: metric names and labels, copied folders, versions, systemd's own judgement. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { METRICS } from "../../lib/edge/metrics.ts";
import type { MetricShape } from "../../lib/edge/instruments.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => Deno.readTextFile(new URL(path, ROOT));

/** Labels Prometheus and the scrape add. */
const FOREIGN_LABELS = new Set(["instance", "job", "le"]);
/** Words of PromQL that are followed by a parenthesis or stand alone. */
const WORDS =
  /^(sum|max|min|avg|rate|increase|histogram_quantile|by|and|or|unless|without|label_values|on|ignoring)$/;

/** Faults of an expression: metrics that do not exist, labels they do not have. */
function faultsOf(expression: string): string[] {
  const faults: string[] = [];
  const bare = expression.replace(/"[^"]*"/g, '""').replace(/\$__\w+|\$\w+/g, "");
  const named = new Set<string>();
  for (const [, name, labels = ""] of bare.matchAll(/\b([a-z][a-z0-9_]*)\b(?:\s*\{([^}]*)\})?/g)) {
    if (WORDS.test(name!) || name === "up") continue;
    const base = name!.replace(/_(bucket|sum|count)$/, "");
    const metric: MetricShape | undefined = Object.hasOwn(METRICS, name!)
      ? METRICS[name as keyof typeof METRICS]
      : Object.hasOwn(METRICS, base) && METRICS[base as keyof typeof METRICS].kind === "histogram"
      ? METRICS[base as keyof typeof METRICS]
      : undefined;
    if (metric === undefined) {
      if (/_(total|ms|items|bucket)$/.test(name!)) faults.push(`no metric ${name}`);
      continue;
    }
    named.add(base);
    for (const [, label] of labels.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)) {
      if (!metric.labels.includes(label!) && !FOREIGN_LABELS.has(label!)) {
        faults.push(`${name} has no label ${label}`);
      }
    }
    if (metric.kind === "counter" && !/\b(rate|increase|label_values)\(/.test(bare)) {
      faults.push(`${name} is a counter and needs rate or increase`);
    }
  }
  for (const [, list] of bare.matchAll(/\bby\s*\(([^)]*)\)/g)) {
    for (const label of list!.split(",").map((text) => text.trim())) {
      const known = [...named].some((name) =>
        (METRICS as Record<string, MetricShape>)[name]?.labels.includes(label)
      );
      if (!known && !FOREIGN_LABELS.has(label)) faults.push(`grouped by ${label}, which no metric here has`);
    }
  }
  if (named.size === 0 && !/\bup\b/.test(bare)) faults.push("names no metric of the service");
  return faults.map((fault) => `${fault}: ${expression}`);
}

Deno.test("ops: the check of expressions finds what is wrong", () => {
  assert.deepEqual(
    faultsOf('sum by (result) (rate(webhook_attempts_total{result!="succeeded"}[5m])) > 1'),
    [],
  );
  for (
    const wrong of [
      "webhook_atempts_total",
      'rate(webhook_attempts_total{tenant="x"}[5m])',
      "webhook_attempts_total > 1",
      "sum by (tenant) (rate(webhook_attempts_total[5m]))",
      "max(dlq_items_bucket)",
      "1 > 0",
    ]
  ) assert.notDeepEqual(faultsOf(wrong), [], wrong);
});

Deno.test("ops: alert rules name metrics and labels that exist, and each says how to go on", async () => {
  const rules = (await read("ops/alerts.yml")).split("- alert: ").slice(1);
  assert.ok(rules.length >= 10);
  const used = new Set<string>();
  for (const rule of rules) {
    const expression = /expr: (?:>-\n)?([^]*?)\n\s+(?:for|labels):/.exec(rule)![1]!.replace(/\s+/g, " ")
      .trim();
    assert.deepEqual(faultsOf(expression), []);
    assert.match(rule, /summary: ".+"\n\s+fix: ".+"/);
    assert.match(rule, /severity: (page|ticket) }/);
    for (const name of Object.keys(METRICS)) if (expression.includes(name)) used.add(name);
  }
  for (
    const name of [
      "dlq_items",
      "jobs_oldest_due_age_ms",
      "webhook_delivery_latency_ms",
      "webhook_attempts_total",
    ]
  ) {
    assert.ok(used.has(name), `no alert looks at ${name}`);
  }
});

Deno.test("ops: the dashboard's panels name metrics and labels that exist, and every metric has a panel", async () => {
  const dashboard = JSON.parse(await read("ops/grafana.json"));
  const ids = new Set<number>();
  let text = "";
  for (const panel of dashboard.panels) {
    assert.ok(!ids.has(panel.id), `panel ${panel.id} twice`);
    ids.add(panel.id);
    assert.ok(panel.gridPos.x + panel.gridPos.w <= 24, panel.title);
    for (const { expr } of panel.targets) {
      assert.deepEqual(faultsOf(expr), [], panel.title);
      text += `${expr}\n`;
    }
  }
  for (const name of Object.keys(METRICS)) assert.ok(text.includes(name), `no panel shows ${name}`);
  for (const variable of dashboard.templating.list.filter((v: { type: string }) => v.type === "query")) {
    assert.deepEqual(faultsOf(variable.query.query), []);
  }
});

Deno.test("ops: docs/operate.md tells of every metric", async () => {
  const guide = await read("docs/operate.md");
  for (const name of Object.keys(METRICS)) assert.ok(guide.includes(`\`${name}`), name);
});

Deno.test("ops: the container has every module of the service and of pmail, and the Deno version of the README", async () => {
  const file = await read("ops/Containerfile");
  const copied = [...file.matchAll(/^COPY (.+) \.\S*$/gm)].flatMap(([, paths]) => paths!.split(" "));
  for (const path of copied) await Deno.stat(new URL(path, ROOT));
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "main.ts"],
    cwd: fileURLToPath(ROOT),
  }).output();
  const pmail = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "tools/pmail.ts"],
    cwd: fileURLToPath(ROOT),
  }).output();
  for (const text of [stdout, pmail.stdout]) {
    for (const { specifier } of JSON.parse(new TextDecoder().decode(text)).modules) {
      if (!specifier.startsWith(ROOT.href)) continue;
      const path: string = specifier.slice(ROOT.href.length);
      const top = path.split("/")[0]!;
      assert.ok(copied.includes(top), `${path} is not copied`);
    }
  }
  const version = /FROM docker\.io\/denoland\/deno:(\S+)/.exec(file)![1]!;
  assert.ok((await read("README.md")).includes(`deno@${version}`));
  assert.match(file, /^USER deno$/m);
  assert.match(file, /^CMD \["deno", "task", "start"\]$/m);
});

Deno.test("ops: systemd accepts the unit, and its judgement of the exposure is OK", async () => {
  const unit = fileURLToPath(new URL("ops/pylota-webhooks.service", ROOT));
  const text = await Deno.readTextFile(unit);
  for (const line of ["DynamicUser=yes", "ProtectSystem=strict", "KillSignal=SIGTERM", "TimeoutStopSec=25"]) {
    assert.ok(text.includes(`\n${line}\n`), line);
  }
  assert.match(text, /^EnvironmentFile=/m);
  const run = async (...args: string[]) => {
    const { success, stdout, stderr } = await new Deno.Command("systemd-analyze", { args }).output();
    return { success, text: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
  };
  try {
    const verified = await run("verify", unit);
    const about = verified.text.split("\n").filter((line) => line.includes("pylota-webhooks.service"));
    // That the program is not installed where the unit looks for it says nothing of the unit.
    assert.deepEqual(about.filter((line) => !line.includes("is not executable")), []);
    const judged = await run("security", "--offline=true", "--threshold=20", unit);
    assert.ok(judged.success, judged.text.split("\n").slice(-3).join("\n"));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    console.log("skipped: systemd-analyze is not on this machine");
  }
});

Deno.test("ops: the deploy section names an entry point that is there, in the form Deno Deploy takes", async () => {
  const { deploy } = JSON.parse(await read("deno.json"));
  assert.deepEqual(Object.keys(deploy).sort(), ["install", "runtime"]);
  assert.equal(deploy.runtime.type, "dynamic");
  const entry = await read(deploy.runtime.entrypoint);
  // The platform reads the schedule by running the top level of the entry point.
  assert.match(entry, /^ {2}Deno\.cron\("sweep", "\* \* \* \* \*"/m);
});

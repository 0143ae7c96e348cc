import assert from "node:assert/strict";
import { type LogFields, makeLog } from "../../lib/edge/log.ts";

const AT = 1_796_097_801_469;
const EVENT = "evt_01J00000000000000000000000";

function logged(run: (log: ReturnType<typeof makeLog>) => void, level: "info" | "off" | "error" = "info") {
  const lines: string[] = [];
  run(makeLog(level, () => AT, (line) => lines.push(line)));
  return lines;
}

Deno.test("log: one JSON line with time, level, event and the fields given", () => {
  const [line] = logged((log) =>
    log.info("attempt_done", {
      event_id: EVENT,
      status: 204,
      ms: 12,
      host: "hooks.example.com",
      code: undefined,
    })
  );
  assert.equal(
    line,
    `{"time":"${new Date(AT).toISOString()}","level":"info","event":"attempt_done","event_id":"${EVENT}",` +
      `"status":204,"ms":12,"host":"hooks.example.com"}`,
  );
});

Deno.test("no_content_in_logs: text that is no id, code, number or host name is dropped and counted", () => {
  const canary = "Dear Ada, the code is 4711";
  const cases: [string, unknown][] = [
    ["subject", "canary"],
    ["error", canary],
    ["code", "user@example.com"],
    ["event_id", canary],
    ["event_id", "canary"],
    ["tenant_id", "ten_canary"],
    ["host", "hooks.example.com/path?token=canary"],
    ["host", "user:canary@hooks.example.com"],
    ["route", "/v1/x?token=canary"],
    ["status", "canary"],
    ["at", "canary"],
    ["ms", Infinity],
    ["reason", { text: canary }],
    ["__proto__x", "canary"],
    ["toString", "canary"],
  ];
  for (const [name, value] of cases) {
    const [line] = logged((log) => log.error("x", { [name]: value } as LogFields));
    assert.deepEqual(Object.keys(JSON.parse(line!)), ["time", "level", "event", "dropped"], name);
    assert.ok(!/canary|4711|example/.test(line!), line);
  }
});

Deno.test("no_content_in_logs: an event name with particulars in it is not written", () => {
  const [line] = logged((log) => log.info("could not deliver to canary@example.com"));
  assert.equal(JSON.parse(line!).event, "unnamed");
});

Deno.test("log: lines below PM_LOG are not written", () => {
  const all = (log: ReturnType<typeof makeLog>) => {
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
  };
  assert.deepEqual(logged(all).map((line) => JSON.parse(line).event), ["b", "c", "d"]);
  assert.deepEqual(logged(all, "error").map((line) => JSON.parse(line).event), ["d"]);
  assert.deepEqual(logged(all, "off"), []);
});

/** Faults the simulator found, each as the shortest scenario that shows it. */
import assert from "node:assert/strict";
import { makeGuardedHttp } from "../../lib/edge/http.ts";
import { DAY_MS, DEADLINE_MS } from "../../lib/limits.ts";

Deno.test("D4: a clock that jumps during the look-up uses up no deadline", async () => {
  let wall = 0;
  let timeoutMs = NaN;
  const http = makeGuardedHttp({
    rules: { apiHost: null, consoleHost: null, platformDomain: null, allowedTargets: new Set() },
    resolver: {
      resolve() {
        wall += DAY_MS;
        return Promise.resolve({ a: ["93.184.216.34"], aaaa: [] });
      },
    },
    dialer: {
      dial(request) {
        timeoutMs = request.timeoutMs;
        return Promise.resolve({ kind: "response", status: 200, retryAfter: null, body: new Uint8Array(0) });
      },
      close: () => Promise.resolve(),
    },
    timers: { after: () => 0 as never, cancel() {} },
    now: () => wall,
    clock: () => 0,
  });
  const sent = await http.send({ url: "https://hooks.example.com/", headers: {}, body: new Uint8Array(0) });
  assert.equal(timeoutMs, DEADLINE_MS);
  assert.equal(sent.durationMs, 0);
});

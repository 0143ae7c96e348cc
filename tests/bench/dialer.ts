/**
 * The delivery client against a bare `undici` loop: N POSTs of 1 KB with C in flight to a receiver on this machine, in turns.
 * Prints a line a round and the median ratio. `deno run -A tests/bench/dialer.ts [N] [C] [ROUNDS] [PORT]`; with PORT the
 * receiver is one that already listens on 127.0.0.1, else an ordinary one in a worker.
 */
import { Pool } from "undici";
import { makeDialer } from "../../lib/edge/dialer.ts";
import { makeGuardedHttp, permits } from "../../lib/edge/http.ts";
import { realTimers } from "../../lib/edge/ports.ts";

const [n = 20_000, c = 64, rounds = 3, givenPort = 0] = Deno.args.map(Number);
const port = givenPort || await startReceiver();
const origin = `http://127.0.0.1:${port}`;
const body = new TextEncoder().encode(JSON.stringify({ pad: "x".repeat(1_013) }));

let serial = 0;
const headers = () => ({
  "content-type": "application/json",
  "webhook-id": `msg_${serial++}`,
  "webhook-timestamp": "1790000000",
  "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
  "user-agent": "bench/1",
});

const bare = new Pool(origin, { connections: c, pipelining: 1 });
const postBare = () =>
  new Promise<void>((ok, fail) => {
    let status = 0;
    bare.dispatch({ method: "POST", path: "/hook/0", headers: headers(), body }, {
      onRequestStart() {},
      onResponseStart(_controller: unknown, code: number) {
        status = code;
      },
      onResponseData() {},
      onResponseEnd() {
        status === 204 ? ok() : fail(new Error(`status ${status}`));
      },
      onResponseError(_controller: unknown, error: Error) {
        fail(error);
      },
    });
  });

const rules = {
  apiHost: null,
  consoleHost: null,
  platformDomain: null,
  allowedTargets: new Set([`127.0.0.1:${port}`]),
};
const dialer = makeDialer({
  timers: realTimers,
  clock: () => performance.now(),
  permits: permits(rules),
});
const http = makeGuardedHttp({
  rules,
  dialer,
  timers: realTimers,
  now: () => Date.now(),
  resolver: { resolve: () => Promise.reject(new Error("not asked")) },
});
const postGuarded = async () => {
  const { outcome } = await http.send({ url: `${origin}/hook/0`, headers: headers(), body });
  if (outcome.kind !== "succeeded") throw new Error(JSON.stringify(outcome));
};

async function perSecond(post: () => Promise<void>, count: number): Promise<number> {
  let left = count;
  const start = performance.now();
  await Promise.all(Array.from({ length: c }, async () => {
    while (left-- > 0) await post();
  }));
  return count / (performance.now() - start) * 1_000;
}

await perSecond(postBare, 3_000);
await perSecond(postGuarded, 3_000);
const ratios: number[] = [];
for (let round = 0; round < rounds; round++) {
  const one = await perSecond(postBare, n);
  const other = await perSecond(postGuarded, n);
  ratios.push(other / one);
  console.log(JSON.stringify({ bare: Math.round(one), guarded: Math.round(other), ratio: other / one }));
}
console.log("median ratio", ratios.sort((a, b) => a - b)[rounds >> 1]!.toFixed(3));
Deno.exit(0);

/** Answers 204 from a thread of its own. */
function startReceiver(): Promise<number> {
  const code =
    `const s = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: (a) => self.postMessage(a.port) },
    async (r) => { await r.arrayBuffer(); return new Response(null, { status: 204 }); });`;
  const worker = new Worker(URL.createObjectURL(new Blob([code])), { type: "module" });
  return new Promise((ok) => worker.onmessage = (event) => ok(event.data));
}

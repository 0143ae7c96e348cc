/**
 * The far side of every measure, in a process of its own: HTTP/1.1 framing by hand on `node:net`, so that it takes as little
 * as possible of the machine. Prints its port. Same for us, for the bare loop and for the peers.
 *
 * `POST /hook/…` answers 204. `/hang/…` takes the request and never answers. `/hold/…` counts and never answers.
 * `GET /stats` → `Stats`, `GET /stats?skip=N` with `first` after the first N. `POST /reset` forgets. One signature in 64 is checked with the real secret.
 */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import net from "node:net";
import { nowMs, SECRET, type Spread, spread } from "./payload.ts";

export interface Stats {
  posts: number;
  /** Different (path, webhook-id). */
  unique: number;
  repeats: number;
  checked: number;
  bad: number;
  hung: number;
  /** Wall clock in ms of the first and the last unique POST, and of the first repeat; 0: none. */
  first: number;
  last: number;
  firstRepeat: number;
  /** `sent_at` to receipt, ms. */
  latency: Spread;
}

const NO_CONTENT = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n");
const SENT_AT = Buffer.from('"sent_at":');

let seen: Set<string>, latencies: number[], receipts: number[];
let counts: Omit<Stats, "unique" | "latency" | "first" | "last">;

function reset(): void {
  seen = new Set();
  latencies = [];
  receipts = [];
  counts = { posts: 0, repeats: 0, checked: 0, bad: 0, hung: 0, firstRepeat: 0 };
}

const stats = (skip: number): Stats => ({
  ...counts,
  unique: seen.size,
  first: receipts[skip] ?? 0,
  last: receipts.at(-1) ?? 0,
  latency: spread(latencies),
});

/** A header of a request head; names are matched as they come from our clients, or in lower case. */
function header(head: string, name: string): string {
  let at = head.indexOf(`\r\n${name}: `);
  if (at < 0) at = head.toLowerCase().indexOf(`\r\n${name}: `);
  if (at < 0) return "";
  const from = at + name.length + 4;
  return head.slice(from, head.indexOf("\r\n", from));
}

function count(path: string, head: string, body: Buffer): void {
  const at = nowMs();
  const id = header(head, "webhook-id");
  const name = path + id;
  counts.posts++;
  if (seen.has(name)) {
    counts.repeats++;
    counts.firstRepeat ||= at;
    return;
  }
  seen.add(name);
  receipts.push(at);
  const mark = body.indexOf(SENT_AT);
  if (mark >= 0) latencies.push(at - parseFloat(body.toString("latin1", mark + SENT_AT.length, mark + 40)));
  if ((counts.posts & 63) !== 1) return;
  counts.checked++;
  const signed = `${id}.${header(head, "webhook-timestamp")}.`;
  const right = "v1," + createHmac("sha256", SECRET).update(signed).update(body).digest("base64");
  if (!header(head, "webhook-signature").split(" ").includes(right)) counts.bad++;
}

function answer(socket: net.Socket, path: string, head: string, body: Buffer): void {
  if (path.startsWith("/stats") || path === "/reset") {
    if (path === "/reset") reset();
    const text = JSON.stringify(stats(Number(path.split("skip=")[1] ?? 0)));
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    );
  } else if (path.startsWith("/hang/")) counts.hung++;
  else {
    count(path, head, body);
    if (!path.startsWith("/hold/")) socket.write(NO_CONTENT);
  }
}

function serve(socket: net.Socket): void {
  let rest: Buffer | null = null;
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    let input: Buffer = rest === null ? chunk as Buffer : Buffer.concat([rest, chunk as Buffer]);
    rest = null;
    while (input.length > 0) {
      const end = input.indexOf("\r\n\r\n");
      const head = end < 0 ? "" : input.toString("latin1", 0, end + 2);
      const need = end < 0 ? Infinity : end + 4 + (Number(header(head, "content-length")) || 0);
      if (input.length < need) {
        rest = input;
        return;
      }
      const from = head.indexOf(" ") + 1;
      answer(socket, head.slice(from, head.indexOf(" ", from)), head, input.subarray(end + 4, need));
      input = input.subarray(need);
    }
  });
}

if (import.meta.main) {
  reset();
  const server = net.createServer({ noDelay: true }, serve);
  server.listen(
    0,
    "127.0.0.1",
    1_024,
    () => console.log(`READY ${(server.address() as net.AddressInfo).port}`),
  );
}

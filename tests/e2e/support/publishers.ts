/**
 * Applications that append through HTTP while the service is killed under them. Half of them name their events' ids and send
 * a request that was cut off again until it is acknowledged; the others never do, so what became of it is unknown to them.
 */
import assert from "node:assert/strict";
import { realIds } from "../../../lib/edge/ports.ts";
import { type Call, makeApi, makeEndpoint, makeTenant, makeTenantKey, TYPE } from "./api.ts";
import type { Receiver } from "./receiver.ts";

const TENANTS = 8;
const PAUSE_MS = 20;

/** An event the service acknowledged. */
export interface Acknowledged {
  id: string;
  token: string;
  /** Tenant and owner key. */
  owner: string;
  sequence: number;
  /** Where it has to arrive. */
  paths: string[];
}

export interface Publishers {
  readonly acknowledged: Acknowledged[];
  /** Tokens of requests that got no answer: their event may exist. */
  readonly cutOff: Set<string>;
  /** Ends the publishing, after the requests under way. */
  stop(): Promise<void>;
}

interface Tenant {
  id: string;
  path: string;
}

/** Tenants with an endpoint each and a platform endpoint that sees all of them, at the receiver. */
export async function makeTenants(call: Call, receiver: Receiver): Promise<Tenant[]> {
  receiver.secrets.set("/all", (await makeEndpoint(call, null, receiver.url("/all"))).secret);
  const tenants: Tenant[] = [];
  for (let i = 0; i < TENANTS; i++) {
    const id = await makeTenant(call, `tenant-${i}`), path = `/tenant-${i}`;
    receiver.secrets.set(path, (await makeEndpoint(call, id, receiver.url(path))).secret);
    tenants.push({ id, path });
  }
  return tenants;
}

/**
 * Starts `count` publishers, each with a key of its own, spread over the tenants and two owners in each.
 * @param everyMs each publisher's pause between its events; 0: as fast as they are acknowledged.
 */
export async function startPublishers(
  call: Call,
  tenants: Tenant[],
  ports: string[],
  count = 32,
  everyMs = 0,
): Promise<Publishers> {
  const ids = realIds();
  const acknowledged: Acknowledged[] = [];
  const cutOff = new Set<string>();
  let stopped = false;
  let failed: unknown = null;

  async function publish(number: number, key: string): Promise<void> {
    const tenant = tenants[number % tenants.length]!;
    const again = Math.floor(number / tenants.length) % 2 === 0;
    const owner = `owner-${Math.floor(number / tenants.length) >> 1}`;
    // With two processes the two publishers of an owner talk to different ones.
    const port = ports[(number + Math.floor(number / tenants.length)) % ports.length]!;
    const api = makeApi(port, key);
    for (let n = 0; !stopped; n++) {
      const token = `${number}-${n}`;
      const event = { type: TYPE, data: { n: token }, ...(again ? { event_id: ids.next("event") } : {}) };
      for (;;) {
        const answer = await api("POST", `/v1/tenants/${tenant.id}/owners/${owner}/events`, event).catch(() =>
          null
        );
        if (answer?.status === 200 || answer?.status === 201) {
          const { id, sequence } = answer.body.event;
          const paths = ["/all", tenant.path];
          acknowledged.push({ id, token, owner: `${tenant.id} ${owner}`, sequence, paths });
          cutOff.delete(token);
          break;
        }
        assert.ok(answer === null || [429, 503].includes(answer.status), answer?.text);
        if (answer?.status !== 429) cutOff.add(token);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        if (stopped || (!again && answer?.status !== 429)) break;
      }
      if (everyMs > 0) await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }

  const keys = [];
  for (let i = 0; i < count; i++) keys.push(await makeTenantKey(call, tenants[i % tenants.length]!.id));
  const running = Promise.all(keys.map((key, i) => publish(i, key))).catch((error) => (failed = error));
  return {
    acknowledged,
    cutOff,
    async stop() {
      stopped = true;
      await running;
      if (failed !== null) throw failed;
    },
  };
}

/** What is acknowledged and has not been accepted everywhere it has to be: `path token`. */
export function undelivered({ acknowledged }: Publishers, receiver: Receiver): string[] {
  const came = new Set(receiver.accepted().map(({ path, id }) => `${path} ${id}`));
  return acknowledged.flatMap(({ id, token, paths }) =>
    paths.filter((path) => !came.has(`${path} ${id}`)).map((path) => `${path} ${token}`)
  );
}

export interface Tally {
  deliveries: number;
  duplicates: number;
  unknown: number;
}

/**
 * Everything acknowledged came, verified and with its own content; what else came was cut off on its way (its sender cannot
 * know); and no sequence of an owner was given twice (O2).
 */
export function checkAll(publishers: Publishers, receiver: Receiver): Tally {
  assert.deepEqual(undelivered(publishers, receiver), []);
  assert.deepEqual(receiver.arrivals.filter(({ error }) => error !== null), [], "every signature verifies");
  const byId = new Map(publishers.acknowledged.map((event) => [event.id, event]));
  const tokens = new Map(publishers.acknowledged.map((event) => [event.token, event]));
  assert.equal(byId.size, publishers.acknowledged.length, "no id was acknowledged twice");
  const sequences = new Set(publishers.acknowledged.map(({ owner, sequence }) => `${owner} ${sequence}`));
  assert.equal(sequences.size, publishers.acknowledged.length, "O2: no sequence was given twice");

  const times = new Map<string, number>();
  const bodies = new Map<string, string>();
  const unknown = new Set<string>();
  for (const { path, id, body } of receiver.accepted()) {
    times.set(`${path} ${id}`, (times.get(`${path} ${id}`) ?? 0) + 1);
    assert.equal(body, bodies.get(id) ?? body, "O3: every attempt carries the same bytes");
    bodies.set(id, body);
    const token = JSON.parse(body).data.n;
    const event = byId.get(id);
    if (event !== undefined) {
      assert.equal(token, event.token);
      assert.ok(event.paths.includes(path), "S1: it came where it belongs");
      continue;
    }
    assert.ok(!tokens.has(token), `the acknowledged ${token} came under another id`);
    assert.ok(
      publishers.cutOff.has(token),
      `${token} came, and its request was neither acknowledged nor cut off`,
    );
    unknown.add(id);
  }
  const duplicates = [...times.values()].reduce((sum, count) => sum + count - 1, 0);
  return { deliveries: receiver.accepted().length, duplicates, unknown: unknown.size };
}

/**
 * The whole system below HTTP in a test: real KV, real guard, real sealing and signing, real rows. Faked: the clock, the timers,
 * the seed, DNS and the network. Several isolates may share the store; a crashed one loses its timers and answers nothing.
 * At the end of each world its invariants are checked (invariants.ts).
 */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { createEndpoint } from "../../actors/endpoints.ts";
import type { Appended, NewEvent } from "../../actors/owner.ts";
import { createPartner, createTenant, type PolicyPatch } from "../../actors/tenancy.ts";
import type { PartnerId } from "../../lib/ids.ts";
import type { EndpointRow, OwnerRef, Scope, TenantRow } from "../../lib/keys.ts";
import { checkInvariants } from "./invariants.ts";
import { ManualTime, seeded } from "./manual_time.ts";
import { type Isolate, type IsolateOptions, makeIsolate } from "./isolate.ts";
import { Network } from "./network.ts";

export type { Isolate, IsolateOptions };

export class World {
  readonly time = new ManualTime();
  /** How far the wall clock is from the time that timers go by: it may jump, they do not. */
  skewMs = 0;
  readonly net = new Network(() => this.now());
  readonly isolates: Isolate[] = [];
  /** Secrets by endpoint, as their creator got them. */
  readonly secrets = new Map<string, string>();
  /** Failures of ours a test provokes on purpose, by stage; any other one fails the test. */
  readonly expected = new Set<string>();
  readonly unit: () => number;
  #slugs = 0;
  readonly #plain = this.time.group();

  constructor(readonly store: Deno.Kv, seed: number) {
    this.unit = seeded(seed);
  }

  /** Whether a failure was provoked; `expected` unless a test says else. */
  expects = ({ what }: { what: string; error: unknown }): boolean => this.expected.has(what);

  now = (): number => this.time.now + this.skewMs;

  /** Builds an isolate over the shared store and starts it. */
  async isolate(options: IsolateOptions = {}): Promise<Isolate> {
    const isolate = makeIsolate(this, `isolate ${this.isolates.length + 1}`, options);
    this.isolates.push(isolate);
    await isolate.system.start();
    await this.settle();
    return isolate;
  }

  get first(): Isolate {
    return this.isolates[0]!;
  }

  async partner(at = this.first): Promise<PartnerId> {
    return (await createPartner(at.tenancy, "Partner", null)).id;
  }

  async tenant(partner: PartnerId | null = null, policy?: PolicyPatch, at = this.first): Promise<TenantRow> {
    const slug = `tenant-${++this.#slugs}`;
    return await createTenant(at.tenancy, { slug, name: slug, partner, policy }, null);
  }

  /** An endpoint of a tenant, a partner or (null) the platform. `*` unless `events` says else. */
  async endpoint(
    of: TenantRow | PartnerId | null,
    url: string,
    more: Partial<Parameters<typeof createEndpoint>[2]> = {},
    at = this.first,
  ): Promise<EndpointRow> {
    const scope: Scope = of === null
      ? { level: "platform" }
      : typeof of === "string"
      ? { level: "partner", partner: of }
      : { level: "tenant", tenant: of.id };
    const { row, secret } = await createEndpoint(at.endpoints, scope, { url, events: ["*"], ...more }, null);
    this.secrets.set(row.id, secret);
    return row;
  }

  /** Appends events to a custom owner in one command. */
  append(
    tenant: TenantRow,
    events: number | (Partial<NewEvent>)[] = 1,
    owner = "owner",
    at = this.first,
  ): Promise<Appended[]> {
    const list = typeof events === "number" ? Array.from({ length: events }, () => ({})) : events;
    const ref: OwnerRef = { kind: "custom", tenant: tenant.id, id: owner };
    return at.system.owners.run(ref, async (tx) => {
      const appended: Appended[] = [];
      for (const [i, event] of list.entries()) {
        appended.push(await tx.append({ type: "order.paid", data: { n: i }, ...event }));
      }
      return appended;
    });
  }

  /** Lets everything happen that needs no passing of time. */
  async settle(): Promise<void> {
    const giveUp = performance.now() + 20_000;
    for (let quiet = 0; quiet < 5;) {
      await new Promise((resolve) => setImmediate(resolve)); // a turn of the event loop, no waiting
      const busy = this.isolates.some((isolate) => !isolate.crashed && isolate.kv.busy > 0);
      quiet = busy ? 0 : quiet + 1;
      assert.ok(performance.now() < giveUp, "the system never comes to rest");
    }
    for (const { crashed, system, name } of this.isolates) {
      if (!crashed && this.net.open + this.net.lookUps === 0) {
        assert.equal(system.flow.lanes.size, 0, `${name} leaks lane room`);
      }
    }
  }

  /** Time passes, timer by timer, everything settling in between. For seconds and minutes. */
  async advance(ms: number): Promise<void> {
    const end = this.time.now + ms;
    await this.settle();
    while (this.time.step(end)) await this.settle();
    this.time.now = end;
    await this.settle();
  }

  /** Time leaps: timers that are due run once, late. For hours and days, with nothing under way. */
  async jump(ms: number): Promise<void> {
    this.time.jump(this.time.now + ms);
    await this.settle();
  }

  /** An answer that comes `ms` from now. */
  later(ms: number, status: number): Promise<number> {
    return new Promise((resolve) => this.#plain.timers.after(Math.round(ms), () => resolve(status)));
  }

  /** Settles a promise that needs the system to come to rest. */
  async done<T>(promise: Promise<T>): Promise<T> {
    promise.catch(() => {});
    await this.settle();
    return await promise;
  }
}

/** Runs a test in a world of its own with one isolate, checks the invariants, and ends everything. */
export async function world(
  body: (w: World) => Promise<void>,
  options: IsolateOptions & { seed?: number } = {},
): Promise<void> {
  const { seed = 1, ...isolate } = options;
  const kv = await Deno.openKv(":memory:");
  try {
    const w = new World(kv, seed);
    await w.isolate(isolate);
    await body(w);
    await w.settle();
    for (const { failures } of w.isolates) {
      const unexpected = failures.filter((failure) => !w.expects(failure));
      if (unexpected.length > 0) {
        throw new Error(`${unexpected[0]!.what} failed`, { cause: unexpected[0]!.error });
      }
    }
    await checkInvariants(w);
  } finally {
    kv.close();
  }
}

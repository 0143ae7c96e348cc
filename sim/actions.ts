/** The steps of a script, done with the system's own functions. A step that has nothing to act on does nothing. */
import { encodeEventRow, eventRowOf } from "../lib/event_row.ts";
import type { EventId, EventKey, IdentityId } from "../lib/ids.ts";
import { ulidFrom } from "../lib/ids.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/limits.ts";
import { type EndpointRow, keys, type OwnerRef } from "../lib/keys.ts";
import { createEndpoint, deleteEndpoint, rotateSecret, updateEndpoint } from "../actors/endpoints.ts";
import { updatePartner } from "../actors/tenancy.ts";
import type { Selection } from "../actors/replay.ts";
import type { Isolate } from "./isolate.ts";
import { MOODS } from "./acts.ts";
import type { Wanted } from "./producers.ts";
import { Rng } from "./rng.ts";
import type { Step, StepKind } from "./script.ts";
import { anyMood, type Cast, newHost, TYPES, wantedEndpoint } from "./setup.ts";
import type { World } from "./world.ts";

interface Stage {
  world: World;
  cast: Cast;
  rng: Rng;
  isolate: Isolate;
}

export function act(world: World, cast: Cast, step: Step): void {
  const rng = new Rng(step.seed);
  const [isolate] = world.serving.length > 0 ? [rng.pick(world.serving)] : [];
  if (isolate === undefined) return;
  world.trace(`step ${step.kind} on ${isolate.name}`);
  world.tally.count(`step_${step.kind}`);
  const done = ACTIONS[step.kind]({ world, cast, rng, isolate });
  if (done) world.client(done, (error) => world.tally.count(`${step.kind}_failed_${(error as Error).name}`));
}

const ACTIONS: Record<StepKind, (stage: Stage) => Promise<unknown> | void> = {
  append: (s) => void s.world.producers.append(s.isolate, ...anyEvents(s, 1)),
  burst(s) {
    for (let i = s.rng.between(1, 4); i > 0; i--) {
      s.world.producers.append(
        s.isolate,
        ...anyEvents(s, s.rng.chance(0.1) ? s.rng.between(6, 16) : s.rng.between(1, 5)),
      );
    }
  },
  append_twice: appendTwice,
  big(s) {
    const [owner, wanted] = anyEvents(s, 1);
    s.world.producers.append(s.isolate, owner, wanted.map((event) => ({ ...event, padding: 70_000 })));
  },
  create_endpoint(s) {
    const scope = s.rng.pick(s.cast.scopes);
    return createEndpoint(s.isolate.deps, scope, wantedEndpoint(s.world, s.cast, scope, s.rng), null);
  },
  disable: (s) => onEndpoint(s, (row) => updateEndpoint(s.isolate.deps, row.id, { enabled: false }, null)),
  enable: (s) => onEndpoint(s, (row) => updateEndpoint(s.isolate.deps, row.id, { enabled: true }, null)),
  change_endpoint: (s) =>
    onEndpoint(s, (row) => {
      const patch = s.rng.chance(0.5)
        ? { url: `https://${newHost(s.world, s.cast, s.rng)}/moved` }
        : { events: s.rng.chance(0.5) ? ["*"] : [s.rng.pick(TYPES)] };
      return updateEndpoint(s.isolate.deps, row.id, patch, null);
    }),
  delete_endpoint: (s) => onEndpoint(s, (row) => deleteEndpoint(s.isolate.deps, row.id, null)),
  rotate: (s) =>
    onEndpoint(s, (row) => {
      if (s.rng.chance(0.15)) return void breakSecret(s, row);
      return rotateSecret(s.isolate.deps, row.id, s.rng.pick([0, 1, 24]), null);
    }),
  suspend: (s) => updatePartner(s.isolate.deps, s.rng.pick(s.cast.partners), { status: "suspended" }, null),
  reactivate: (s) => reactivate(s, s.rng.pick(s.cast.partners)),
  replay_ids: (s) =>
    onEndpoint(s, (row) => {
      const events = [...s.world.model.events.values()];
      const ids = events.filter(() => s.rng.chance(0.4)).slice(0, 100).map(({ id }) => id as EventId);
      return replay(s, row, { event_ids: ids });
    }),
  replay_window: (s) =>
    onEndpoint(s, (row) => {
      const now = s.world.clock.now();
      const window = { since: now - s.rng.pick([SECOND_MS, MINUTE_MS, 2 * DAY_MS]), until: now };
      const status = s.rng.pick(["succeeded", "failed", "dead", null] as const);
      return replay(s, row, status === null ? window : { ...window, status });
    }),
  replay_now: replayAtOnce,
  poison,
  test: (s) => onEndpoint(s, (row) => s.isolate.system.deliveries.test(row.id)),
  erase,
  mood(s) {
    if (s.cast.hosts.length > 0) s.world.net.mood(s.rng.pick(s.cast.hosts), MOODS[anyMood(s.rng)]);
  },
  kill: (s) => s.world.kill(s.isolate),
  stop: (s) => s.world.stop(s.isolate),
  jump: (s) =>
    s.world.clock.jump(
      s.rng.pick([-2 * SECOND_MS, SECOND_MS, 5 * SECOND_MS, 2 * MINUTE_MS, 20 * MINUTE_MS, HOUR_MS, DAY_MS]),
    ),
  cron_stops(s) {
    s.world.cronStoppedUntil = s.world.clock.mono + HOUR_MS;
  },
  outage(s) {
    if (!s.world.weather.calm) s.world.weather.outageUntil = s.world.clock.mono + s.rng.between(500, 20_000);
  },
};

function anyEvents({ cast, rng }: Stage, count: number): [OwnerRef, Wanted[]] {
  const owner = rng.pick(cast.owners);
  const identity = owner.kind === "mailbox" ? owner.id as IdentityId : null;
  return [owner, Array.from({ length: count }, () => ({ type: rng.pick(TYPES), identity }))];
}

/** A producer with an id of its own sends until it is answered, and once more to be sure. */
function appendTwice(s: Stage): void {
  const { world, rng } = s;
  const [owner, [event]] = anyEvents(s, 1);
  const event_id = `evt_${ulidFrom(world.clock.now(), rng.bytes(10))}` as EventId;
  const append = world.producers.append(s.isolate, owner, [{ ...event!, event_id }]);
  for (const ms of [rng.int(50), rng.between(100, 3_000), 20_000]) {
    world.clock.after(ms, () => {
      if (world.serving.length === 0) return;
      void world.producers.send(rng.pick(world.serving), append, [{
        ...event!,
        event_id,
        n: append.numbers[0]!,
      }]);
    });
  }
}

function onEndpoint(
  { world, rng }: Stage,
  run: (row: EndpointRow) => Promise<unknown> | void,
): Promise<unknown> | void {
  const there = [...world.model.endpoints.values()].map(({ now }) => now).filter((row) =>
    row.deleted_at === null
  );
  if (there.length > 0) return run(rng.pick(there));
}

function replay({ isolate, world }: Stage, row: EndpointRow, selection: Selection): Promise<unknown> {
  return isolate.system.deliveries.replay(row.id, selection)
    .then(({ queued }) => world.tally.count("replayed", queued));
}

/** An event is replayed to an endpoint while its first attempt may still be under way. */
async function replayAtOnce(s: Stage): Promise<void> {
  if (s.rng.chance(0.5)) { for (const host of s.cast.hosts) s.world.net.mood(host, MOODS.lagging); }
  const append = s.world.producers.append(s.isolate, ...anyEvents(s, s.rng.between(1, 3)));
  await s.world.producers.answer(append);
  s.world.clock.after(s.rng.pick([0, 5, 30, 500, 2_100, 10_000]), () => {
    const ids = append.appended.map(({ id }) => id);
    const { serving } = s.world;
    if (ids.length === 0 || serving.length === 0) return;
    const done = onEndpoint(
      s,
      (row) => replay({ ...s, isolate: s.rng.pick(serving) }, row, { event_ids: ids }),
    );
    if (done) s.world.client(done);
  });
}

/** An event's row cannot be read, for as long as it takes its jobs to become dead letters. */
function poison({ world, rng }: Stage): void {
  const keysOf = [...world.model.events.keys()];
  if (keysOf.length > 0) world.poison(keys.event(rng.pick(keysOf) as never));
}

async function reactivate(
  { isolate }: Pick<Stage, "isolate">,
  partner: Cast["partners"][number],
): Promise<void> {
  const { reactivated } = await updatePartner(isolate.deps, partner, { status: "active" }, null);
  if (reactivated) await isolate.system.deliveries.unpark(partner);
}

/** Privacy: a payload goes, its row stays. */
function erase({ world, rng, isolate }: Stage): Promise<unknown> | void {
  const events = [...world.model.events.values()].filter(({ kind }) => kind !== "platform");
  if (events.length === 0) return;
  const event = rng.pick(events);
  const owner = { kind: event.kind, tenant: event.tenant, id: event.owner } as OwnerRef;
  return isolate.system.owners.run(owner, async (tx) => {
    const key = event.key as EventKey, row = eventRowOf(key, await tx.get(keys.event(key)));
    if (row === null || row.erased) return;
    for (let i = 0; i < row.chunks; i++) tx.delete(keys.eventChunk(key, i));
    tx.set(keys.event(key), encodeEventRow(key, { ...row, body: null }));
  });
}

/** The endpoint's secret does not open for a while: a master key that is not there. */
function breakSecret({ world, rng }: Stage, row: EndpointRow): void {
  world.unopenable.add(row.secret_enc);
  world.clock.after(rng.between(1_000, 60_000), () => world.unopenable.delete(row.secret_enc));
}

/** What must hold when everything has come to rest: nothing accepted is lost, and all of it is accounted for. */
import { keys } from "../lib/keys.ts";
import { FAMILY } from "./facts.ts";
import { checkIndex } from "./index_rules.ts";
import { isTerminal } from "./model.ts";
import type { World } from "./world.ts";

/** How the pairs of a run ended. accepted = the sum of them. */
export interface Account {
  delivered: number;
  dead: number;
  parked: number;
  /** Dropped with its endpoint. */
  dropped: number;
}

export function checkEnd(world: World): Account {
  const { model } = world;
  for (const name of model.jobs.due.keys()) model.violated("J1", `${name} never came to an end`);
  for (const id of model.jobs.dead.keys()) model.violated("J1", `${id} is still a dead letter`);
  checkRoom(world);
  checkAppends(world);
  checkOwners(world);
  const { store } = world;
  checkIndex(model, [...store.list([FAMILY.tenantIndex!]), ...store.list([FAMILY.partnerIndex!])]);
  const account: Account = { delivered: 0, dead: 0, parked: 0, dropped: 0 };
  for (const pair of model.deliveries.owed) {
    const [endpoint] = pair.split(" ") as [string, string];
    const row = model.pairs.get(pair);
    if (row !== undefined && isTerminal(row)) account[row.status === "succeeded" ? "delivered" : "dead"]++;
    else if (model.deleted(endpoint)) account.dropped++;
    else if (isParked(world, pair)) account.parked++;
    else if (model.deliveries.settled(pair)) account.dead++; // a test delivery that failed
    else model.violated("J1", `${pair} has no end`);
  }
  for (const [how, count] of Object.entries(account)) world.tally.count(`ended_${how}`, count);
  return account;
}

/** Room that was promised to a job and not given back would be lost until the isolate ends. */
function checkRoom({ serving, model }: World): void {
  for (const { name, system } of serving) {
    const { size, inFlight } = system.flow.lanes;
    if (size !== 0 || inFlight !== 0) {
      model.violated("room", `${name} rests with ${size} works, ${inFlight} in flight`);
    }
  }
}

/** Parked is an end only under a partner that is suspended. */
function isParked({ model }: World, pair: string): boolean {
  const rows = [...model.jobs.items.get(pair)?.values() ?? []].map(({ row }) => row);
  return rows.some((row) => {
    const [, partner] = row.split(" ");
    return model.jobs.parked.has(row) && model.partners.get(partner!)?.now.status === "suspended";
  });
}

/** O1: each append landed as its producer was told, once; no event came from nowhere. */
function checkAppends({ model, producers, store }: World): void {
  const landed = new Map<number, number>();
  const decoder = new TextDecoder();
  for (const event of model.events.values()) {
    if (event.kind === "platform") continue;
    if (store.value(keys.event(event.key as never)) === null) {
      model.violated("O1", `${event.id} was committed and is gone`);
    }
    const { n } = JSON.parse(decoder.decode(event.body)).data;
    landed.set(n, (landed.get(n) ?? 0) + 1);
  }
  for (const append of producers.appends) {
    for (const n of append.numbers) {
      const count = landed.get(n) ?? 0;
      landed.delete(n);
      if (count > 1) model.violated("O1", `append ${n} landed ${count} times`);
      if (append.state === "acknowledged" && count !== 1) {
        model.violated("O1", `append ${n} was acknowledged and lost`);
      }
      if (append.state === "refused" && count !== 0) {
        model.violated("O1", `append ${n} was refused and landed`);
      }
    }
    const some = append.numbers.map((n) =>
      [...model.events.values()].some((event) => numberOf(event.body) === n)
    );
    if (new Set(some).size > 1) model.violated("O1", `half of append ${append.numbers[0]} landed`);
  }
  for (const n of landed.keys()) model.violated("O1", `event ${n} came from nowhere`);

  function numberOf(body: Uint8Array): number {
    return JSON.parse(decoder.decode(body)).data.n;
  }
}

/** O1: each owner's own count is the number of its events. O2: its counter is the last sequence. */
function checkOwners({ model, producers, store }: World): void {
  const owners = new Map(
    producers.appends.map(({ owner }) => [`${owner.kind} ${owner.tenant} ${owner.id}`, owner]),
  );
  for (const [name, owner] of owners) {
    const events = [...model.events.values()].filter((event) =>
      event.kind === owner.kind && event.tenant === owner.tenant && event.owner === owner.id
    );
    const count = store.value<number>(keys.ownerState(owner, "count")) ?? 0;
    if (count !== events.length) model.violated("O1", `${name} counts ${count} events of ${events.length}`);
    const meta = store.value<number>(keys.ownerMeta(owner)) ?? 0;
    if (meta !== (model.sequences.get(name) ?? 0)) model.violated("O2", `the counter of ${name} is ${meta}`);
    if (new Set(events.map(({ seq }) => seq)).size !== events.length) {
      model.violated("O2", `${name} gave out a sequence twice`);
    }
  }
}

/**
 * Concurrency: at most `maxInFlight` attempts in the isolate, `maxPerEndpoint` an endpoint, each endpoint in a lane of its
 * own, served in turn, so that a slow endpoint delays no other (DESIGN §5, "Fair").
 */
import type { EndpointId } from "../lib/ids.ts";
import { MINUTE_MS, SECOND_MS, VISIBILITY_MS } from "../lib/limits.ts";

export interface LaneLimits {
  maxInFlight: number;
  maxPerEndpoint: number;
  /** How many may wait in memory behind those of one endpoint. */
  maxWaitingPerEndpoint: number;
  /** The same behind an endpoint that has just shown that it would answer them all within a second. */
  maxWaitingProven: number;
}

/** An endpoint that would answer a full memory of its works within this time has shown that it is quick… */
const PROVEN_MS = SECOND_MS;
/** … and is held to be until they would take this long: a pause of this process is not the endpoint's pace. */
const KEPT_MS = 3 * SECOND_MS;

const MAX_WAIT_MS = VISIBILITY_MS / 3;
/** Work that found no room is due again this much later at the least. */
const MIN_LATER_MS = 500;
/** So far ahead at the most it is spread at its lane's pace, which may change. */
const NEAR_MS = MINUTE_MS;
/** Beyond that one row after the other: 500 a second is what the rows of a lane that stands still cost the store. */
const FAR_STEP_MS = 2;

interface Lane<W> {
  waiting: W[];
  inFlight: number;
  /** Smoothed duration of an attempt, ms. */
  durationMs: number;
  /** How many attempts ended, and when the last of them did, Unix ms. */
  ended: number;
  endedAt: number;
  /** When the last one ended, its pace was that of an endpoint that holds up nobody. */
  quick: boolean;
  /** Until when deferred work is spread already at the lane's pace, and beyond it, Unix ms. */
  near: number;
  far: number;
  /** When it was last asked to defer, Unix ms. */
  asked: number;
  /** Room promised to jobs that are being claimed or opened. */
  reserved: number;
}

export class Lanes<W> {
  /** In memory: waiting, in flight and promised. */
  size = 0;
  /** Payload bytes of what is waiting, in flight and promised, each work's counted on its own. */
  bytes = 0;
  #inFlight = 0;
  #provenUntil = -Infinity;
  #lanes = new Map<EndpointId, Lane<W>>();
  /** Lanes that could start something, in turn. */
  #ready: EndpointId[] = [];
  #queued = new Set<EndpointId>();

  constructor(
    readonly limits: LaneLimits,
    readonly now: () => number,
    /** Runs one attempt; never rejects. Tells how long the endpoint took, ms, if it was asked: what we wait for is not its doing. */
    readonly run: (work: W) => Promise<number | null>,
    /** Called when something ended, was taken out, or its room was given back. */
    readonly freed: () => void,
    readonly bytesOf: (work: W) => number,
  ) {}

  push(endpoint: EndpointId, work: W): void {
    this.size++;
    this.bytes += this.bytesOf(work);
    this.#lane(endpoint).waiting.push(work);
    this.#mark(endpoint);
    this.#start();
  }

  /** How many more this endpoint takes now: what it is likely to start well before their claim runs out. */
  room(endpoint: EndpointId): number {
    const lane = this.#lanes.get(endpoint);
    if (lane === undefined) return this.capacity(endpoint);
    return this.capacity(endpoint) - lane.waiting.length - lane.inFlight - lane.reserved;
  }

  /** The room of this endpoint's lane when it is empty. */
  capacity(endpoint: EndpointId): number {
    const { maxPerEndpoint, maxWaitingPerEndpoint, maxWaitingProven } = this.limits;
    const lane = this.#lanes.get(endpoint);
    if (lane !== undefined && this.#proven(lane)) return maxPerEndpoint + maxWaitingProven;
    const durationMs = Math.max(1, lane?.durationMs ?? 1);
    const rounds = Math.max(1, Math.floor(MAX_WAIT_MS / durationMs));
    return maxPerEndpoint + Math.min(maxWaitingPerEndpoint, maxPerEndpoint * rounds);
  }

  /** It answers now, and fast enough. */
  #proven({ quick, endedAt }: Lane<W>): boolean {
    return quick && this.now() - endedAt < PROVEN_MS;
  }

  /** Whether a full memory of its works would be gone soon at its pace. */
  #isQuick({ durationMs, ended, quick }: Lane<W>): boolean {
    const { maxPerEndpoint, maxWaitingProven } = this.limits;
    const fullMs = durationMs * maxWaitingProven / maxPerEndpoint;
    return ended >= maxPerEndpoint && fullMs < (quick ? KEPT_MS : PROVEN_MS);
  }

  /** Some endpoint has just shown that it answers fast enough to be given a full memory. */
  get anyProven(): boolean {
    return this.now() < this.#provenUntil;
  }

  /** Promises room (negative: gives it back), in this endpoint's lane or, with null, in the isolate alone. */
  reserve(endpoint: EndpointId | null, count: number, bytes: number): void {
    this.size += count;
    this.bytes += bytes;
    if (endpoint !== null) this.#lane(endpoint).reserved += count;
    if (count < 0) this.freed();
  }

  /**
   * When a row with `count` works of a full lane is likely to find room: spread at the lane's own pace for a minute, and beyond it
   * as thinly as many rows need, so that a backlog is looked at again the later the larger it is.
   */
  later(endpoint: EndpointId, count: number): number {
    const lane = this.#lane(endpoint);
    const now = this.now();
    if (now < lane.asked) lane.near = lane.far = 0; // the clock went back: those times are no guide any more
    lane.asked = now;
    const step = Math.max(1, lane.durationMs) * count / this.limits.maxPerEndpoint;
    const near = Math.max(lane.near, now + MIN_LATER_MS) + step;
    if (near <= now + NEAR_MS) return Math.ceil(lane.near = near);
    return lane.far = Math.ceil(Math.max(lane.far, now + NEAR_MS)) + FAR_STEP_MS;
  }

  /** Takes out what has not started; the caller writes it down or settles it. */
  remove(work: W, endpoint: EndpointId): boolean {
    const lane = this.#lanes.get(endpoint);
    const index = lane?.waiting.indexOf(work) ?? -1;
    if (index < 0) return false;
    lane!.waiting.splice(index, 1);
    this.size--;
    this.bytes -= this.bytesOf(work);
    this.freed();
    return true;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  #lane(endpoint: EndpointId): Lane<W> {
    let lane = this.#lanes.get(endpoint);
    if (lane === undefined) {
      if (this.#lanes.size > 50_000) this.#forgetIdle();
      lane = {
        waiting: [],
        inFlight: 0,
        durationMs: 20,
        ended: 0,
        endedAt: 0,
        quick: false,
        near: 0,
        far: 0,
        asked: 0,
        reserved: 0,
      };
      this.#lanes.set(endpoint, lane);
    }
    return lane;
  }

  #forgetIdle(): void {
    for (const [endpoint, lane] of this.#lanes) {
      const idle = lane.waiting.length + lane.inFlight + lane.reserved === 0;
      if (idle && Math.max(lane.near, lane.far) < this.now()) {
        this.#lanes.delete(endpoint);
      }
    }
  }

  #mark(endpoint: EndpointId): void {
    if (this.#queued.has(endpoint)) return;
    this.#queued.add(endpoint);
    this.#ready.push(endpoint);
  }

  #start(): void {
    while (this.#inFlight < this.limits.maxInFlight && this.#ready.length > 0) {
      const endpoint = this.#ready.shift()!;
      this.#queued.delete(endpoint);
      const lane = this.#lanes.get(endpoint);
      if (lane === undefined || lane.waiting.length === 0 || lane.inFlight >= this.limits.maxPerEndpoint) {
        continue;
      }
      const work = lane.waiting.shift()!;
      if (lane.waiting.length > 0) this.#mark(endpoint);
      void this.#runOne(endpoint, lane, work);
    }
  }

  async #runOne(endpoint: EndpointId, lane: Lane<W>, work: W): Promise<void> {
    lane.inFlight++;
    this.#inFlight++;
    const took = await this.run(work);
    if (took !== null) {
      lane.durationMs += (took - lane.durationMs) / 8;
      lane.ended++;
      lane.endedAt = this.now();
      lane.quick = this.#isQuick(lane);
      if (this.#proven(lane)) this.#provenUntil = lane.endedAt + PROVEN_MS;
    }
    lane.inFlight--;
    this.#inFlight--;
    this.size--;
    this.bytes -= this.bytesOf(work);
    if (lane.waiting.length > 0) this.#mark(endpoint);
    this.#start();
    this.freed();
  }
}

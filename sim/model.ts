/**
 * The reference model: it sees every commit as it lands, every request as it leaves and arrives and every answer, and holds
 * them to the invariants at once (ARCHITECTURE.md, "Invariants"). It shares no code with the pipeline but the keys.
 */
import type { AttemptError } from "../lib/keys.ts";
import { AttemptBlocks } from "./attempt_blocks.ts";
import { DeliveryRules } from "./delivery_rules.ts";
import { Facts, type ModelDeps } from "./facts.ts";
import type { Receipt } from "./net.ts";
import { IndexRules } from "./index_rules.ts";
import { RowRules } from "./row_rules.ts";
import type { Landed } from "./store.ts";
import { WireRules } from "./wire_rules.ts";

export { isTerminal } from "./delivery_rules.ts";
export { CANARY, type Violation } from "./facts.ts";

export class Model extends Facts {
  readonly rows = new RowRules(this);
  readonly blocks = new AttemptBlocks(this);
  readonly index = new IndexRules(this);
  readonly wire = new WireRules(this);
  readonly deliveries = new DeliveryRules(this, (pair, row) => this.wire.charged(pair, row));

  constructor(d: ModelDeps) {
    super(d);
  }

  landed({ changes, messages, underWay }: Landed): void {
    const { gone, touched } = this.deliveries.moved(changes);
    const told = this.blocks.told(changes);
    const created = this.rows.landed(told, underWay);
    this.index.landed(changes);
    this.deliveries.landed(told, created, gone, touched);
    for (const { value } of messages) this.rows.rung(value);
  }

  sending(host: string, body: Uint8Array, webhookId: string): void {
    this.wire.sending(host, body, webhookId);
  }

  received(receipt: Receipt): void {
    this.wire.received(receipt);
  }

  answeredWith(host: string, error: AttemptError | "succeeded", webhookId: string): void {
    this.wire.answeredWith(host, error, webhookId);
  }

  asked(host: string, webhookId: string, seconds: number): void {
    this.wire.asked(host, webhookId, seconds);
  }

  secretFailed(sealed: string): void {
    this.wire.secretFailed(sealed);
  }
}

/** A dead letter as the pipeline leaves one: a job whose processing threw too often. */
import { type DeadLetter, keys } from "../../lib/keys.ts";
import type { EndpointId, EventKey } from "../../lib/ids.ts";
import type { Api } from "../routes/support.ts";

/** Puts one for an endpoint in the store; its id. */
export async function deadLetterOf(api: Api, endpoint: string): Promise<string> {
  const { ids } = api.services, id = ids.next("deadLetter"), event = ids.ulid() as EventKey;
  const item = { event, id: ids.next("event"), type: "order.paid", attempt: 1, first: 1, replay: false };
  const row: DeadLetter = {
    id,
    job: { v: 1, kind: "deliver", endpoint: endpoint as EndpointId, items: [item], throws: 13 },
    error: "Error",
    created_at: api.now,
  };
  await api.kv.set(keys.deadLetter(id), row);
  return id;
}

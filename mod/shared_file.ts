/** A store file that several processes write to: your application and the service. */
import { patient } from "../lib/edge/patience.ts";
import { realTimers } from "../lib/edge/ports.ts";

/**
 * Makes the commits of a KV wait while another process holds its file, up to 4 s, instead of throwing "database is locked". Use it
 * when your application shares the service's file; a KV in the service's own process, or a remote one, needs nothing.
 *
 * @param kv The KV; it is changed and returned.
 * @returns The same KV. What still fails after the wait comes out of `commit()` as it was.
 *
 * @example
 * ```ts ignore
 * import { makeOutbox, sharedFile } from "@pylota/webhooks";
 *
 * const kv = sharedFile(await Deno.openKv("./data/pm.db"));
 * const outbox = makeOutbox(kv);
 * ```
 */
export const sharedFile = (kv: Deno.Kv): Deno.Kv => patient(kv, realTimers);

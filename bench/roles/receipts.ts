/** Asks the receiver what arrived, and refuses a measure whose deliveries were not all there and rightly signed. */
import { sleep } from "../payload.ts";
import type { Stats } from "../receiver.ts";

export async function forget(origin: string): Promise<void> {
  await (await fetch(`${origin}/reset`, { method: "POST" })).text();
}

/** @param skip receipts that `first` leaves out: a warm-up's. */
export const stats = async (origin: string, skip = 0): Promise<Stats> =>
  await (await fetch(`${origin}/stats?skip=${skip}`)).json();

/** @throws when not exactly `unique` different deliveries arrived or a signature was wrong. */
export async function confirm(origin: string, unique: number, skip = 0): Promise<Stats> {
  let found = await stats(origin, skip);
  for (let tries = 0; found.unique < unique && tries < 50; tries++) {
    await sleep(20);
    found = await stats(origin, skip);
  }
  if (found.unique !== unique || found.bad > 0 || found.checked === 0) {
    throw new Error(
      `Cannot trust this run: ${unique} deliveries expected, the receiver has ${JSON.stringify(found)}`,
    );
  }
  return found;
}

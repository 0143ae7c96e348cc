/** The event types a place knows: the built-in ones by owner, and a tenant's own. */
import { catalogue } from "../../../lib/catalogue.ts";
import type { EventTypeRow } from "../../../lib/keys.ts";
import { keys } from "../../../lib/keys.ts";
import type { Services } from "../../services.ts";
import type { Place } from "../reach.ts";

export interface TypeGroup {
  title: string;
  types: { name: string; description: string }[];
}

const TITLES = {
  mailbox: "Mail and identities",
  domain: "Domains",
  job: "Jobs",
  platform: "Platform",
} as const;
/** Of a tenant's own types on one page. */
const MAX_OWN = 1_000;

export async function typesFor(services: Services, place: Place): Promise<TypeGroup[]> {
  const groups: TypeGroup[] = [];
  if (place.tenant !== null) {
    const own: TypeGroup["types"] = [];
    const rows = services.kv.list<EventTypeRow>({ prefix: keys.eventTypes(place.tenant.id) }, {
      limit: MAX_OWN,
      batchSize: 500,
    });
    for await (const { value } of rows) own.push({ name: value.name, description: value.description });
    if (own.length > 0) groups.push({ title: `Own types of ${place.name}`, types: own });
  }
  for (const [owner, title] of Object.entries(TITLES)) {
    const types = [...catalogue.values()].filter((type) => type.owner === owner);
    groups.push({ title, types: types.map(({ name, description }) => ({ name, description })) });
  }
  return groups;
}

/** The event types: what each tells, its schema, an example, and who listens. */
import * as z from "zod";
import { catalogue } from "../../../lib/catalogue.ts";
import { notFound } from "../../../lib/errors.ts";
import { plural } from "../format.ts";
import { type Endpoint, endpointsOf, placeOf } from "../reach.ts";
import type { EventTypeShown } from "../shapes.ts";
import { HealthPill } from "../status.tsx";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Code, Empty, Head, Prose, Table, Th } from "../ui.tsx";
import { holds } from "../../../lib/reach.ts";
import { typesFor } from "./types.ts";

const listens = ({ row }: Endpoint, type: string): boolean =>
  row.enabled && (row.events[0] === "*" || row.events.includes(type)) && type !== "webhook.test";

async function listeners(c: ConsoleContext, place: Awaited<ReturnType<typeof placeOf>>): Promise<Endpoint[]> {
  if (!holds(c.visitor.key, "webhooks:read")) return [];
  return await endpointsOf({ kv: c.services.kv, key: c.visitor.key }, place);
}

export async function cataloguePage(c: ConsoleContext): Promise<PageView> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  const [groups, endpoints] = await Promise.all([typesFor(c.services, place), listeners(c, place)]);
  return page(
    "Event types",
    <>
      <Head
        title="Event types"
        lead="Everything that can be delivered. Applications add types of their own, each with a schema and an example."
      />
      <div class="stack">
        {groups.map(({ title, types }) => (
          <Card title={title} hint={plural(types.length, "type")} flush>
            <Table
              label={title}
              head={
                <>
                  <Th>Type</Th>
                  <Th>Tells</Th>
                  <Th num>Listening here</Th>
                </>
              }
            >
              {types.map(({ name, description }) => (
                <tr>
                  <th scope="row">
                    <a class="mono" href={`/console/${place.path}/catalogue/${name}`}>{name}</a>
                  </th>
                  <td>
                    {description === ""
                      ? <span class="muted">No description</span>
                      : <Prose text={description} />}
                  </td>
                  <td class="num">{endpoints.filter((endpoint) => listens(endpoint, name)).length}</td>
                </tr>
              ))}
            </Table>
          </Card>
        ))}
      </div>
    </>,
    { place, nav: "catalogue" },
  );
}

export async function typePage(c: ConsoleContext): Promise<PageView> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  const name = c.params.name!;
  const type = await typeOf(c, name, place.tenant?.id ?? null);
  const listening = (await listeners(c, place)).filter((endpoint) => listens(endpoint, name));
  return page(
    name,
    <>
      <Head
        title={name}
        lead={<Prose text={type.description} />}
        crumbs={[[`/console/${place.path}`, place.name], [`/console/${place.path}/catalogue`, "Event types"]]}
      />
      <div class="stack">
        <Card title="Who listens" hint={`Enabled endpoints of ${place.name}`} flush>
          {listening.length === 0
            ? <Empty title="Nobody listens here">Endpoints of a wider or narrower scope may.</Empty>
            : (
              <Table
                label="Endpoints"
                head={
                  <>
                    <Th>Endpoint</Th>
                    <Th>Takes</Th>
                    <Th>State</Th>
                  </>
                }
              >
                {listening.map(({ row, health }) => (
                  <tr>
                    <th scope="row" class="wrap">
                      <a href={`/console/endpoints/${row.id}`}>{row.url}</a>
                    </th>
                    <td>{row.events[0] === "*" ? "All types" : "This type by name"}</td>
                    <td>
                      <HealthPill row={row} health={health} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
        </Card>
        <Card title="Example" hint="The data field of the envelope">
          <Code id="example" text={JSON.stringify(type.example, null, 2)} label="Example" />
        </Card>
        <Card title="Schema" hint="JSON Schema 2020-12 of the data field">
          <Code id="schema" text={JSON.stringify(type.schema, null, 2)} label="Schema" />
        </Card>
      </div>
    </>,
    { place, nav: "catalogue" },
  );
}

async function typeOf(c: ConsoleContext, name: string, tenant: string | null): Promise<EventTypeShown> {
  const known = catalogue.get(name);
  if (known !== undefined) {
    const { description, example, data } = known;
    const schema = z.toJSONSchema(data, { io: "output", unrepresentable: "any" });
    return { name, description, example, schema };
  }
  if (tenant === null) throw notFound("event_type");
  return await c.api.call("GET /v1/tenants/{tenant_id}/event-types/{name}", {
    params: { tenant_id: tenant, name },
  });
}

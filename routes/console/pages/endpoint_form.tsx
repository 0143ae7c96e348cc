/** Creating an endpoint and changing one: the same form, with what the API refuses said beside its field. */
import { ApiError, type FieldError } from "../../../lib/errors.ts";
import { MAX_URL_BYTES } from "../../../lib/limits.ts";
import type { EndpointRow } from "../../../lib/keys.ts";
import { live } from "../../../actors/endpoints.ts";
import { scopeDenied } from "../../scope.ts";
import { endpointOf, type Place, placeOf } from "../reach.ts";
import type { EndpointCreated } from "../shapes.ts";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { described, Field, Head, PostForm, Refused } from "../ui.tsx";
import { bodyOf, type Draft, draftFrom, draftOf, EMPTY_DRAFT, headersOf } from "./endpoint_draft.ts";
import { mayManage, newOnce, secretPage } from "./endpoint_acts.tsx";
import { mayCreate } from "./endpoint_list.tsx";
import { typesFor } from "./types.ts";

export async function newEndpoint(c: ConsoleContext): Promise<View> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  if (!mayCreate(place, c.visitor)) {
    throw new ApiError(
      "scope_denied",
      "Cannot create an endpoint here with this key.",
      place.scope.level === "partner" ? "Use a key of the partner." : "Use a key with webhooks:manage.",
    );
  }
  if (c.form.size === 0) return await formPage(c, place, EMPTY_DRAFT, null);
  const draft = draftFrom(c.form);
  try {
    const headers = headersOf(draft.headers);
    const call = {
      body: { ...bodyOf(draft), ...(Object.keys(headers).length === 0 ? {} : { headers }) },
      once: c.form.get("once"),
    };
    const made = place.tenant === null
      ? await c.api.call<EndpointCreated>("POST /v1/webhooks", call)
      : await c.api.call<EndpointCreated>("POST /v1/tenants/{tenant_id}/webhooks", {
        ...call,
        params: { tenant_id: place.tenant.id },
      });
    return secretPage("Endpoint created", "The endpoint takes events from now on.", made, draft.url, place);
  } catch (thrown) {
    return await formPage(c, place, draft, null, thrown);
  }
}

export async function editEndpoint(c: ConsoleContext): Promise<View> {
  const { place, row } = await endpointOf({ kv: c.services.kv, key: c.visitor.key }, c.params.webhook_id!);
  live(row);
  if (!mayManage(c.visitor, { row, health: null })) throw scopeDenied("it cannot change this endpoint");
  if (c.form.size === 0) return await formPage(c, place, draftOf(row), row);
  const draft = draftFrom(c.form);
  try {
    const headers = draft.headers === "" ? {} : { headers: headersOf(draft.headers) };
    const removed = c.form.get("no_headers") === "1" ? { headers: null } : {};
    await c.api.call("PATCH /v1/webhooks/{webhook_id}", {
      params: { webhook_id: row.id },
      body: { ...bodyOf(draft), ...headers, ...removed },
    });
    return redirect(`/console/endpoints/${row.id}?done=saved`);
  } catch (thrown) {
    return await formPage(c, place, draft, row, thrown);
  }
}

/** The field of the form a path of the API belongs to. */
const FIELDS: Record<string, string> = { identity_ids: "identities", signature_versions: "v1a" };

function refusedBy(thrown: unknown): { title: string; errors: Map<string, string> } {
  if (!(thrown instanceof ApiError) || thrown.status >= 500 || thrown.status === 404) throw thrown;
  const errors = new Map<string, string>();
  for (const { path, message } of (thrown.details?.errors ?? []) as FieldError[]) {
    const root = path.split(".")[0]!, id = FIELDS[root] ?? root;
    if (!errors.has(id)) errors.set(id, path === root ? message : `${path}: ${message}`);
  }
  return {
    title: thrown.code === "invalid_request"
      ? "Not saved. Some fields need another look."
      : `${thrown.message} ${thrown.fix}`,
    errors,
  };
}

const LABELS: Record<string, string> = {
  url: "Address",
  events: "Event types",
  identities: "Identities",
  description: "Description",
  headers: "Own headers",
  v1a: "Signatures",
};

async function formPage(
  c: ConsoleContext,
  place: Place,
  draft: Draft,
  row: EndpointRow | null,
  thrown?: unknown,
): Promise<PageView> {
  const refused = thrown === undefined ? null : refusedBy(thrown);
  const error = (id: string) => refused?.errors.get(id);
  const types = await typesFor(c.services, place);
  const action = row === null ? `/console/${place.path}/endpoints/new` : `/console/endpoints/${row.id}/edit`;
  const title = row === null ? "New endpoint" : "Edit endpoint";
  return page(
    title,
    <>
      <Head
        title={title}
        lead={row === null
          ? `In ${place.name}. The secret to verify deliveries is shown once, after this.`
          : row.url}
        crumbs={[[`/console/${place.path}`, place.name], [`/console/${place.path}/endpoints`, "Endpoints"]]}
      />
      <div class="stack">
        {refused === null ? null : (
          <Refused
            title={refused.title}
            errors={[...refused.errors].map(([id, message]) => ({
              id,
              message: `${LABELS[id] ?? id}: ${message}`,
            }))}
          />
        )}
        <div class="card">
          <div class="body">
            <PostForm action={action} csrf={c.csrf} once={newOnce(c)} label={title}>
              <Field
                id="url"
                label="Address"
                error={error("url")}
                hint="https, a public DNS name, no redirects. It is checked now and again before every attempt."
              >
                <input
                  id="url"
                  name="url"
                  type="url"
                  required
                  maxlength={MAX_URL_BYTES}
                  value={draft.url}
                  placeholder="https://hooks.example.com/pylota"
                  {...described("url", error("url"))}
                />
              </Field>
              <Field
                id="description"
                label="Description"
                error={error("description")}
                hint="For people: what receives here."
              >
                <input
                  id="description"
                  name="description"
                  maxlength={500}
                  value={draft.description}
                  {...described("description", error("description"))}
                />
              </Field>
              <TypesField draft={draft} types={types} error={error("events")} />
              <Field
                id="identities"
                label="Only these identities"
                error={error("identities")}
                hint="Ids, one a line. Empty: all. Events without an identity, such as domain.*, then do not come."
              >
                <textarea
                  id="identities"
                  name="identities"
                  rows={2}
                  placeholder="idn_…"
                  {...described("identities", error("identities"))}
                >
                  {draft.identities}
                </textarea>
              </Field>
              <details
                class="group"
                open={error("headers") !== undefined || draft.v1a || draft.headers !== ""}
              >
                <summary>Headers and signatures</summary>
                <div class="form">
                  <Field
                    id="headers"
                    label="Own headers"
                    error={error("headers")}
                    hint={row !== null && (row.header_names ?? []).length > 0
                      ? `Set now: ${
                        row.header_names!.join(", ")
                      }. Values are never shown. What you write here replaces them all; empty keeps them.`
                      : "Sent with every delivery, one Name: value a line. Values are sealed and never shown again."}
                  >
                    <textarea
                      id="headers"
                      name="headers"
                      rows={3}
                      placeholder="Authorization: Bearer …"
                      {...described("headers", error("headers"))}
                    >
                      {draft.headers}
                    </textarea>
                  </Field>
                  {row !== null && (row.header_names ?? []).length > 0
                    ? (
                      <label class="check">
                        <input type="checkbox" name="no_headers" value="1" /> Take all own headers away
                      </label>
                    )
                    : null}
                  <label class="check">
                    <input id="v1a" type="checkbox" name="v1a" value="1" checked={draft.v1a} />
                    <span>
                      Also sign with Ed25519 (<code>v1a</code>), so that receivers can verify with a public
                      key
                    </span>
                  </label>
                </div>
              </details>
              <div class="actions">
                <button type="submit" class="primary" data-busy="Saving …">
                  {row === null ? "Create the endpoint" : "Save"}
                </button>
                <a
                  class="button"
                  href={row === null ? `/console/${place.path}/endpoints` : `/console/endpoints/${row.id}`}
                >
                  Cancel
                </a>
              </div>
            </PostForm>
          </div>
        </div>
      </div>
    </>,
    { place, nav: "endpoints", ...(refused === null ? {} : { status: 400 }) },
  );
}

function TypesField({ draft, types, error }: {
  draft: Draft;
  types: Awaited<ReturnType<typeof typesFor>>;
  error: string | undefined;
}) {
  return (
    <fieldset id="events" aria-describedby={error ? "events-error" : undefined}>
      <legend>Event types</legend>
      <label class="check">
        <input type="checkbox" name="all" value="1" checked={draft.all} data-all="events" />
        <span>All, also those that are added later</span>
      </label>
      {error ? <div class="error" id="events-error">{error}</div> : null}
      <details class="group" open={!draft.all}>
        <summary>Choose types</summary>
        <div class="form">
          {types.map(({ title, types }) => (
            <fieldset>
              <legend>{title}</legend>
              <div class="checks">
                {types.map(({ name }) => (
                  <label class="check">
                    <input type="checkbox" name="events" value={name} checked={draft.events.includes(name)} />
                    {name}
                  </label>
                ))}
              </div>
            </fieldset>
          ))}
        </div>
      </details>
    </fieldset>
  );
}

/** What is done to an endpoint: each form runs the API's own row and leads on. */
import { ApiError } from "../../../lib/errors.ts";
import { holds } from "../../../lib/reach.ts";
import { type Endpoint, endpointOf, type Place } from "../reach.ts";
import type { EndpointCreated } from "../shapes.ts";
import { type ConsoleContext, page, type PageView, redirect, type View, type Visitor } from "../table.ts";
import { Head, Note, Secret } from "../ui.tsx";

/** Whether the forms of an endpoint are shown. The rows they run decide for themselves. */
export const mayManage = ({ key }: Visitor, { row }: Endpoint): boolean =>
  holds(key, "webhooks:manage") && key.level !== "identity" && row.deleted_at === null;

/** An id that a form carries, so that sending it twice runs it once. */
export const newOnce = (c: ConsoleContext): string => c.services.ids.ulid();

const target = (c: ConsoleContext) => ({
  params: { webhook_id: c.params.webhook_id! },
  once: c.form.get("once"),
});

export async function setEnabled(c: ConsoleContext, enabled: boolean): Promise<View> {
  const { params } = target(c);
  await c.api.call("PATCH /v1/webhooks/{webhook_id}", { params, body: { enabled } });
  return redirect(`/console/endpoints/${params.webhook_id}?done=${enabled ? "enabled" : "disabled"}`);
}

/** One attempt, and then its page: the answer is what was asked for. */
export async function sendTest(c: ConsoleContext): Promise<View> {
  const { id } = await c.api.call<{ id: string }>("POST /v1/webhooks/{webhook_id}/test", target(c));
  return redirect(`/console/endpoints/${c.params.webhook_id}/deliveries/${id}?done=tested`);
}

export async function removeEndpoint(c: ConsoleContext): Promise<View> {
  const { place } = await endpointOf({ kv: c.services.kv, key: c.visitor.key }, c.params.webhook_id!);
  await c.api.call("DELETE /v1/webhooks/{webhook_id}", { params: target(c).params });
  return redirect(`/console/${place.path}/endpoints?done=deleted`);
}

/** Shows the new secret in the answer itself: it is stored nowhere, so there is nothing to lead to. */
export async function rotate(c: ConsoleContext): Promise<View> {
  const hours = Number(c.form.get("overlap_hours"));
  if (!Number.isInteger(hours)) {
    throw new ApiError("invalid_request", "Cannot rotate: the overlap is no number.", "Choose one.");
  }
  const made = await c.api.call<EndpointCreated>("POST /v1/webhooks/{webhook_id}/rotate-secret", {
    ...target(c),
    body: { overlap_hours: hours },
  });
  const { place, row } = await endpointOf({ kv: c.services.kv, key: c.visitor.key }, c.params.webhook_id!);
  const lead = hours === 0
    ? "The old secret stopped signing."
    : `The old secret signs beside it for ${hours} more hours.`;
  return secretPage("New signing secret", lead, made, row.url, place);
}

/** The one page a secret is ever on. */
export function secretPage(
  title: string,
  lead: string,
  made: EndpointCreated,
  url: string,
  place: Place,
): PageView {
  return page(
    title,
    <>
      <Head title={title} lead={url} />
      <div class="stack">
        {made.secret === undefined
          ? (
            <Note tone="warn" title="This form was sent before, and the secret was shown then.">
              <p>A secret is shown once. If it was not kept, rotate it to get a new one.</p>
            </Note>
          )
          : (
            <>
              <Note tone="ok" title={lead}>
                <p>Copy the secret now: it is shown this once. Receivers verify each delivery with it.</p>
              </Note>
              <Secret id="secret" text={made.secret} />
            </>
          )}
        <div class="actions">
          <a class="button primary" href={`/console/endpoints/${made.id}`}>To the endpoint</a>
        </div>
      </div>
    </>,
    { place, nav: "endpoints" },
  );
}

/** Portal links: letting a tenant's own customers in. */
import { notFound } from "../../../lib/errors.ts";
import { placeOf } from "../reach.ts";
import { type ConsoleContext, page, type PageView } from "../table.ts";
import { Card, Head, Note, PostForm, Secret, Time } from "../ui.tsx";
import { newOnce } from "./endpoint_acts.tsx";

interface Link {
  url?: string;
  expires_at: string;
}

const SPANS = { "15": "15 minutes", "60": "1 hour", "1440": "1 day", "10080": "7 days" } as const;

export async function accessPage(c: ConsoleContext): Promise<PageView> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  if (place.tenant === null) throw notFound("route");
  const made = c.form.size === 0
    ? null
    : await c.api.call<Link>("POST /v1/tenants/{tenant_id}/portal-links", {
      params: { tenant_id: place.tenant.id },
      body: { mode: c.form.get("mode"), expires_in_minutes: Number(c.form.get("minutes")) },
      once: c.form.get("once"),
    });
  return page(
    "Customer access",
    <>
      <Head
        title="Customer access"
        lead={`A link signs one browser in to the console of ${place.name}, without an API key. It sees nothing of any other tenant.`}
      />
      <div class="stack">
        {made === null ? null : <Made link={made} now={c.now} />}
        <Card title="New link">
          <PostForm action={`/console/${place.path}/access`} csrf={c.csrf} once={newOnce(c)} label="New link">
            <fieldset>
              <legend>What it allows</legend>
              <label class="check">
                <input type="radio" name="mode" value="read" checked />
                <span>
                  Read: endpoints, events, deliveries
                </span>
              </label>
              <label class="check">
                <input type="radio" name="mode" value="manage" />
                <span>
                  Manage: also create and change endpoints, rotate secrets, test, replay
                </span>
              </label>
            </fieldset>
            <div class="field">
              <label for="minutes">Unused, it is good for</label>
              <select id="minutes" name="minutes" aria-describedby="minutes-hint">
                {Object.entries(SPANS).map(([value, text]) => (
                  <option value={value} selected={value === "60"}>{text}</option>
                ))}
              </select>
              <div class="hint" id="minutes-hint">
                It works once. The session it opens lasts up to 8 hours, and ends with the key you are using
                now.
              </div>
            </div>
            <div>
              <button type="submit" class="primary">Make a link</button>
            </div>
          </PostForm>
        </Card>
        <Card title="From your own application">
          <p>
            <code>POST /v1/tenants/{place.tenant.id}/portal-links</code> with <code>{'{"mode":"read"}'}</code>
            {" "}
            answers the same link. Make one when a signed-in customer opens your “Webhooks” page, and redirect
            there.
          </p>
        </Card>
      </div>
    </>,
    { place, nav: "access", ...(made === null ? {} : { status: 201 }) },
  );
}

function Made({ link, now }: { link: Link; now: number }) {
  if (link.url === undefined) {
    return (
      <Note tone="warn" title="This form was sent before, and the link was shown then.">
        <p>A link is shown once. Make another one below.</p>
      </Note>
    );
  }
  return (
    <>
      <Note tone="ok" title="The link is ready. It is shown this once.">
        <p>
          Good for one sign-in, until <Time full at={Date.parse(link.expires_at)} now={now} />.
        </p>
      </Note>
      <Secret id="link" text={link.url} />
    </>
  );
}

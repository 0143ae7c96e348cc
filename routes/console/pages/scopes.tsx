/** The tenants and partners a wide key reaches, to switch between them. */
import { notFound } from "../../../lib/errors.ts";
import type { TenantId } from "../../../lib/ids.ts";
import { keys } from "../../../lib/keys.ts";
import { holds, scopeOf } from "../../../lib/reach.ts";
import { tenantInReach } from "../../scope.ts";
import { homeOf } from "../reach.ts";
import type { List, PartnerShown, TenantShown } from "../shapes.ts";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { Card, Empty, Head, pager, Pill, Table, Th, Time } from "../ui.tsx";

export async function scopesPage(c: ConsoleContext): Promise<View> {
  const { key } = c.visitor, words = (c.query.get("q") ?? "").trim();
  if (key.level !== "platform" && key.level !== "partner") throw notFound("route");
  const found = words === "" ? null : await lookUp(c, words);
  if (found !== null) return redirect(`/console/${found}`);
  return await listPage(c, words);
}

/** An id in reach, or the slug of a tenant of the key's own scope. */
async function lookUp(c: ConsoleContext, words: string): Promise<string | null> {
  const { kv } = c.services, reach = (id: string) => tenantInReach(kv, id as TenantId, c.visitor.key);
  const { value: id } = words.startsWith("ten_")
    ? { value: words }
    : await kv.get<string>(keys.tenantSlug(scopeOf(c.visitor.key), words.toLowerCase()));
  return id === null ? null : await reach(id).then((tenant) => tenant.id, () => null);
}

async function listPage(c: ConsoleContext, words: string): Promise<PageView> {
  const { key } = c.visitor;
  const tenants = holds(key, "tenants:manage")
    ? await c.api.call<List<TenantShown>>("GET /v1/tenants", {
      query: { cursor: c.query.get("cursor") ?? undefined },
    })
    : null;
  const partners = key.level === "platform" && holds(key, "partners:manage")
    ? await c.api.call<List<PartnerShown>>("GET /v1/partners", { query: { limit: "100" } })
    : null;
  return page(
    "Tenants and partners",
    <>
      <Head title="Tenants and partners" lead="Choose whose endpoints, events and deliveries you look at.">
        <a class="button" href={`/console/${homeOf(key)}`}>
          {key.level === "platform" ? "The platform itself" : "The partner itself"}
        </a>
      </Head>
      <div class="stack">
        <form class="filters" method="get" role="search" aria-label="Tenant">
          <div class="field">
            <label for="q">Slug or id of a tenant</label>
            <input id="q" name="q" value={words} size={30} required />
          </div>
          <button type="submit">Open</button>
        </form>
        {words === "" ? null : (
          <div class="note warn" role="status">
            No tenant in your reach has the slug or id “{words}”.
          </div>
        )}
        <Card
          title="Tenants"
          hint="Newest first"
          flush
          footer={tenants && pager(c.url, tenants.next_cursor)}
        >
          {tenants === null
            ? (
              <Empty title="Your key does not list tenants">
                That needs tenants:manage. Open one by its slug or id above.
              </Empty>
            )
            : tenants.data.length === 0
            ? <Empty title="No tenants yet">Create one with POST /v1/tenants.</Empty>
            : (
              <Table
                label="Tenants"
                head={
                  <>
                    <Th>Tenant</Th>
                    <Th>Slug</Th>
                    <Th>Partner</Th>
                    <Th>Created</Th>
                  </>
                }
              >
                {tenants.data.map((tenant) => (
                  <tr>
                    <th scope="row">
                      <a href={`/console/${tenant.id}`}>{tenant.name}</a>
                      <span class="sub mono">{tenant.id}</span>
                    </th>
                    <td class="mono">{tenant.slug}</td>
                    <td class="mono">{tenant.partner_id ?? <span class="muted">none</span>}</td>
                    <td class="nowrap">
                      <Time at={Date.parse(tenant.created_at)} now={c.now} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
        </Card>
        {partners === null ? null : (
          <Card title="Partners" hint="Newest first, at most 100" flush>
            {partners.data.length === 0
              ? (
                <Empty title="No partners">
                  A partner sells the service on, with tenants and endpoints of its own.
                </Empty>
              )
              : (
                <Table
                  label="Partners"
                  head={
                    <>
                      <Th>Partner</Th>
                      <Th>State</Th>
                      <Th>Created</Th>
                    </>
                  }
                >
                  {partners.data.map((partner) => (
                    <tr>
                      <th scope="row">
                        <a href={`/console/${partner.id}`}>{partner.name}</a>
                        <span class="sub mono">{partner.id}</span>
                      </th>
                      <td>
                        {partner.status === "active"
                          ? <Pill tone="ok">Active</Pill>
                          : <Pill tone="warn">Suspended: deliveries are held</Pill>}
                      </td>
                      <td class="nowrap">
                        <Time at={Date.parse(partner.created_at)} now={c.now} />
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
          </Card>
        )}
      </div>
    </>,
    { nav: "scopes" },
  );
}

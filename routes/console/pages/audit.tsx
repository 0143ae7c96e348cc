/** Who changed what. */
import { RefusedFilter, TimeRange } from "../filters.tsx";
import { fromInputTime } from "../format.ts";
import { placeOf } from "../reach.ts";
import type { AuditEntry, List } from "../shapes.ts";
import { type ConsoleContext, type Html, page, type PageView } from "../table.ts";
import { Card, Empty, Head, pager, Table, Th, Time } from "../ui.tsx";
import { refusedFields } from "./deliveries.tsx";

export async function auditPage(c: ConsoleContext): Promise<PageView> {
  const place = await placeOf({ kv: c.services.kv, key: c.visitor.key }, c.params.scope!);
  const given = (name: string) => c.query.get(name)?.trim() ?? "";
  let list: List<AuditEntry> = { data: [], next_cursor: null };
  let errors: { id: string; message: string }[] = [];
  try {
    list = await c.api.call("GET /v1/audit-events", {
      query: {
        tenant_id: place.tenant?.id,
        partner_id: place.partner?.id,
        action: given("action"),
        since: fromInputTime(given("since")),
        until: fromInputTime(given("until")),
        cursor: c.query.get("cursor") ?? undefined,
      },
    });
  } catch (thrown) {
    errors = refusedFields(thrown);
  }
  return page(
    "Audit",
    <>
      <Head
        title="Audit"
        lead={`Who changed what in ${place.name}, written in the same commit as the change.`}
      />
      <div class="stack">
        <Card title="Changes" flush footer={pager(c.url, list.next_cursor)}>
          <div class="body">
            <form class="filters" method="get" role="search" aria-label="Changes">
              <div class="field">
                <label for="action">Action</label>
                <input
                  id="action"
                  name="action"
                  value={given("action")}
                  size={24}
                  placeholder="webhook.created"
                />
              </div>
              <TimeRange from="since" to="until" given={given} />
              <button type="submit">Filter</button>
            </form>
          </div>
          <RefusedFilter errors={errors} />
          {list.data.length === 0
            ? (
              <Empty title="No changes here">
                Every change of endpoints, keys, tenants and types leaves a line.
              </Empty>
            )
            : (
              <Table
                label="Changes"
                head={
                  <>
                    <Th>When</Th>
                    <Th>Action</Th>
                    <Th>Subject</Th>
                    <Th>By</Th>
                  </>
                }
              >
                {list.data.map((entry) => (
                  <tr>
                    <td class="nowrap">
                      <Time at={Date.parse(entry.at)} now={c.now} />
                    </td>
                    <td class="mono">{entry.action}</td>
                    <td class="mono wrap">{subject(entry.subject)}</td>
                    <td class="mono">{entry.key_id ?? "the machine itself"}</td>
                  </tr>
                ))}
              </Table>
            )}
        </Card>
      </div>
    </>,
    { place, nav: "audit" },
  );
}

const subject = (id: string): Html =>
  /^whk_[0-9A-Z]{26}$/.test(id) ? <a href={`/console/endpoints/${id}`}>{id}</a> : id;

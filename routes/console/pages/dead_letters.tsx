/** Jobs our own processing gave up on, and the way to put them back. */
import { count } from "../format.ts";
import type { DeadLetterShown, List } from "../shapes.ts";
import { type ConsoleContext, page, type PageView, redirect, type View } from "../table.ts";
import { Card, Empty, Head, Note, pager, PostForm, Table, Th, Time } from "../ui.tsx";
import { newOnce } from "./endpoint_acts.tsx";

export async function deadLetters(c: ConsoleContext): Promise<PageView> {
  const list = await c.api.call<List<DeadLetterShown>>("GET /v1/platform/dlq", {
    query: { cursor: c.query.get("cursor") ?? undefined },
  });
  return page(
    "Dead letters",
    <>
      <Head
        title="Dead letters"
        lead="Jobs whose processing threw 13 times on our side. Nothing is lost: find the fault, then put them back in line."
      />
      <div class="stack">
        {c.query.has("done")
          ? <Note tone="ok" title="Back in line. It is worked on at once, with a clean count." />
          : null}
        <Card title="Waiting for an operator" flush footer={pager(c.url, list.next_cursor)}>
          {list.data.length === 0
            ? (
              <Empty title="No dead letters">
                Every job was worked on. Endpoints that fail are not here: see their deliveries.
              </Empty>
            )
            : (
              <Table
                label="Dead letters"
                head={
                  <>
                    <Th>Since</Th>
                    <Th>Stage</Th>
                    <Th>Fault</Th>
                    <Th num>Events</Th>
                    <Th>Endpoint</Th>
                    <Th>Id</Th>
                    <Th>Action</Th>
                  </>
                }
              >
                {list.data.map((item) => (
                  <tr>
                    <td class="nowrap">
                      <Time at={Date.parse(item.created_at)} now={c.now} />
                    </td>
                    <td>{item.kind === "fanout" ? "Fan-out" : "Delivery"}</td>
                    <td class="mono">{item.error}</td>
                    <td class="num">{count(item.events)}</td>
                    <td>
                      {item.webhook_id === null
                        ? <span class="muted">–</span>
                        : <a class="mono" href={`/console/endpoints/${item.webhook_id}`}>{item.webhook_id}
                        </a>}
                    </td>
                    <td class="mono">{item.id}</td>
                    <td>
                      <PostForm
                        inline
                        action={`/console/dead-letters/${item.id}/redrive`}
                        csrf={c.csrf}
                        once={newOnce(c)}
                      >
                        <button type="submit" class="small-button">
                          Redrive<span class="sr">{` ${item.id}`}</span>
                        </button>
                      </PostForm>
                    </td>
                  </tr>
                ))}
              </Table>
            )}
        </Card>
      </div>
    </>,
    { nav: "dead-letters" },
  );
}

export async function redrive(c: ConsoleContext): Promise<View> {
  await c.api.call("POST /v1/platform/dlq/{dead_letter_id}/redrive", {
    params: { dead_letter_id: c.params.dead_letter_id! },
    once: c.form.get("once"),
  });
  return redirect("/console/dead-letters?done=redriven");
}

/** The OpenAPI document as a page: every operation by tag, then every event with its schema and example. */
import { fieldsOf, type Schema, typeOf } from "./schema.ts";
import type { Section } from "./layout.tsx";

// deno-lint-ignore no-explicit-any
type Json = any;

interface Operation {
  id: string;
  method: string;
  path: string;
  spec: Json;
}

/** Operations by tag, in the document's order. */
function byTag(document: Json): Map<string, Operation[]> {
  const tags = new Map<string, Operation[]>();
  for (const [path, methods] of Object.entries<Json>(document.paths)) {
    for (const [method, spec] of Object.entries<Json>(methods)) {
      const tag = spec.tags[0],
        operation = { id: spec.operationId, method: method.toUpperCase(), path, spec };
      tags.set(tag, [...tags.get(tag) ?? [], operation]);
    }
  }
  return tags;
}

const tagAnchor = (tag: string): string => `tag-${tag}`;
const eventAnchor = (name: string): string => `event-${name}`;

/** What the page's navigation lists. */
export function referenceSections(document: Json): Section[] {
  return [
    {
      heading: "API",
      links: [...byTag(document).keys()].map((tag) => ({ href: `#${tagAnchor(tag)}`, text: tag })),
    },
    {
      heading: "Webhooks",
      links: Object.keys(document.webhooks).map((name) => ({ href: `#${eventAnchor(name)}`, text: name })),
    },
  ];
}

export function Reference({ document }: { document: Json }) {
  return (
    <>
      <h1>API and events</h1>
      <p>
        Version {document.info.version}. Requests carry{" "}
        <code>Authorization: Bearer pmk_…</code>; bodies are JSON with no unknown fields. Lists take{" "}
        <code>limit</code> and <code>cursor</code>. Every answer has a{" "}
        <code>Request-Id</code>. A refusal has the one shape shown under{" "}
        <a href="#errors">Errors</a>. To search, use the browser's own search: everything is on this page.
      </p>
      {[...byTag(document)].map(([tag, operations]) => (
        <section aria-labelledby={tagAnchor(tag)}>
          <h2 id={tagAnchor(tag)}>{tag}</h2>
          {operations.map((operation) => <OperationView {...operation} />)}
        </section>
      ))}
      <h2 id="errors">Errors</h2>
      <Fields schema={document.components.schemas.Error} of="the error" />
      <h2 id="webhooks">Webhooks</h2>
      <p>
        A delivery is a <code>POST</code> of the event's envelope with the headers <code>webhook-id</code>,
        {" "}
        <code>webhook-timestamp</code> and{" "}
        <code>webhook-signature</code>. Any 2xx answer within 15 seconds is success.{" "}
        <a href="/docs/guides/receive-and-verify">Receive and verify</a> has the code.
      </p>
      {Object.entries<Json>(document.webhooks).map(([name, { post }]) => (
        <EventView
          name={name}
          spec={post}
        />
      ))}
    </>
  );
}

function OperationView({ id, method, path, spec }: Operation) {
  const permission: string | undefined = spec["x-permission"];
  const [status, success] = Object.entries<Json>(spec.responses)[0]!;
  const json: Schema | undefined = spec.requestBody?.content?.["application/json"]?.schema;
  const others = Object.keys(spec.requestBody?.content ?? {}).filter((type) => type !== "application/json");
  const answer: Schema | undefined = success.content?.["application/json"]?.schema;
  return (
    <article class="operation" aria-labelledby={id}>
      <h3 id={id}>
        <span class="method">{method}</span> <code>{path}</code>
      </h3>
      <p>
        {spec.summary}{" "}
        <span class="muted">{permission === undefined ? "Open." : `Needs ${permission}.`}</span>
      </p>
      {spec.parameters.length > 0 && <Parameters of={`${method} ${path}`} rows={spec.parameters} />}
      {json !== undefined && (
        <>
          <h4>Body</h4>
          <Fields schema={json} of={`the body of ${method} ${path}`} />
        </>
      )}
      {others.length > 0 && <p>Or a body of type {others.map((type) => <code>{type}</code>)}.</p>}
      <h4>Answer {status}</h4>
      {answer === undefined
        ? <p class="muted">{status === "204" ? "No body." : "Not JSON of a fixed shape."}</p>
        : <Fields schema={answer} of={`the answer of ${method} ${path}`} />}
    </article>
  );
}

function Parameters({ rows, of }: { rows: Json[]; of: string }) {
  return (
    <table aria-label={`Parameters of ${of}`}>
      <thead>
        <tr>
          <th>Parameter</th>
          <th>In</th>
          <th>Type</th>
          <th>Required</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            <td>
              <code>{row.name}</code>
            </td>
            <td>{row.in}</td>
            <td>{typeOf(row.schema)}</td>
            <td>{row.required ? "yes" : "no"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Fields({ schema, of }: { schema: Schema; of: string }) {
  const fields = fieldsOf(schema);
  if (fields.length === 0) return <p class="muted">{typeOf(schema)}</p>;
  return (
    <table aria-label={`Fields of ${of}`}>
      <thead>
        <tr>
          <th>Field</th>
          <th>Type</th>
          <th>Required</th>
          <th>Notes</th>
        </tr>
      </thead>
      <tbody>
        {fields.map(({ path, type, required, note }) => (
          <tr>
            <td>
              <code>{path}</code>
            </td>
            <td>{type}</td>
            <td>{required ? "yes" : "no"}</td>
            <td>{note}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function EventView({ name, spec }: { name: string; spec: Json }) {
  const envelope = spec.requestBody.content["application/json"].schema;
  const { data } = envelope.properties;
  return (
    <article class="operation" aria-labelledby={eventAnchor(name)}>
      <h3 id={eventAnchor(name)}>
        <code>{name}</code>
      </h3>
      <p>
        {spec.summary} <span class="muted">Owner: {spec.tags[0]}.</span>
      </p>
      <h4>data</h4>
      <Fields schema={data} of={`data of ${name}`} />
      <h4>Example of data</h4>
      <pre class="wrapped"><code>{JSON.stringify(data.examples[0], null, 2)}</code></pre>
    </article>
  );
}

/** The parts pages are made of. Status is always a shape and a word beside its colour. */
import { relative, stamp } from "./format.ts";
import type { Html } from "./table.ts";
import { CSRF_FIELD } from "./csrf.ts";

export type Tone = "ok" | "warn" | "bad" | "idle";

/** A shape of its own for each tone. */
export function Mark({ tone, size = 10 }: { tone: Tone; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 10 10" aria-hidden="true">
      {tone === "ok"
        ? <circle cx="5" cy="5" r="4" />
        : tone === "warn"
        ? <path d="M5 .6 9.7 9.2H.3z" />
        : tone === "bad"
        ? <path d="M5 .3 9.7 5 5 9.7.3 5z" />
        : <path d="M1 1h8v8H1z" />}
    </svg>
  );
}

export function Pill({ tone, children }: { tone: Tone; children?: Html }) {
  return (
    <span class={`pill ${tone}`}>
      <Mark tone={tone} />
      {children}
    </span>
  );
}

/** A time in UTC with how far away it is. */
export function Time({ at, now, full = false }: { at: number; now: number; full?: boolean }) {
  const text = `${stamp(at)} UTC`;
  return full
    ? (
      <time datetime={new Date(at).toISOString()}>
        {text} <span class="muted">({relative(at, now)})</span>
      </time>
    )
    : <time datetime={new Date(at).toISOString()} title={text}>{relative(at, now)}</time>;
}

export function Card(
  { title, hint, id, flush = false, footer, children }: {
    title: string;
    hint?: Html;
    id?: string;
    flush?: boolean;
    footer?: Html;
    children?: Html;
  },
) {
  return (
    <section class="card" {...(id === undefined ? {} : { id })}>
      <header>
        <h2>{title}</h2>
        {hint === undefined ? null : <div>{hint}</div>}
      </header>
      <div class={flush ? "body flush" : "body"}>{children}</div>
      {footer ? <footer>{footer}</footer> : null}
    </section>
  );
}

export function Head(
  { title, lead, crumbs = [], children }: {
    title: Html;
    lead?: Html;
    crumbs?: [href: string, text: string][];
    children?: Html;
  },
) {
  return (
    <>
      {crumbs.length === 0 ? null : (
        <nav class="crumbs" aria-label="Breadcrumb">
          <ol>
            {crumbs.map(([href, text]) => (
              <li>
                <a href={href}>{text}</a>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <div class="head">
        <div>
          <h1>{title}</h1>
          {lead ? <p>{lead}</p> : null}
        </div>
        {children ? <div class="actions">{children}</div> : null}
      </div>
    </>
  );
}

export function Empty({ title, children, action }: { title: string; children?: Html; action?: Html }) {
  return (
    <div class="empty">
      <b>{title}</b>
      <p>{children}</p>
      {action ? <div class="actions">{action}</div> : null}
    </div>
  );
}

export function Note({ tone, title, children }: { tone: Tone; title: string; children?: Html }) {
  return (
    <div class={`note ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <b>{title}</b>
      {children}
    </div>
  );
}

/** A table that scrolls sideways by itself, reachable by keyboard. */
export function Table({ label, head, children }: { label: string; head: Html; children?: Html }) {
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export const Th = ({ num = false, children }: { num?: boolean; children?: Html }) => (
  <th scope="col" class={num ? "num" : ""}>{children}</th>
);

/** Text to copy. The button shows where the script runs. */
export function Code({ id, text, label, wrap = false }: {
  id: string;
  text: string;
  label: string;
  wrap?: boolean;
}) {
  return (
    <div class="code">
      <pre
        tabindex={0}
        role="region"
        aria-label={label}
        class={wrap ? "break" : ""}
      ><code id={id}>{text}</code></pre>
      <button type="button" class="small-button" data-copy={id} hidden>Copy</button>
    </div>
  );
}

/** A secret at the only time it is shown. */
export function Secret({ id, text }: { id: string; text: string }) {
  return (
    <div class="secret">
      <code id={id}>{text}</code>
      <button type="button" class="small-button" data-copy={id} hidden>Copy</button>
    </div>
  );
}

/** A form that changes something: the session's token, and an id that makes it run once however often it is sent. */
export function PostForm(
  { action, csrf, once, inline = false, children, label }: {
    action: string;
    csrf: string;
    once: string;
    inline?: boolean;
    label?: string;
    children?: Html;
  },
) {
  return (
    <form
      method="post"
      action={action}
      class={inline ? "inline" : "form"}
      {...(label === undefined ? {} : { "aria-label": label })}
    >
      <input type="hidden" name={CSRF_FIELD} value={csrf} />
      <input type="hidden" name="once" value={once} />
      {children}
    </form>
  );
}

/** Text of a catalogue: what stands between backticks is code. */
export function Prose({ text }: { text: string }) {
  return <>{text.split("`").map((part, i) => i % 2 === 0 ? part : <code>{part}</code>)}</>;
}

/** A labelled control. `error` is tied to it for screen readers. */
export function Field(
  { id, label, hint, error, children }: {
    id: string;
    label: string;
    hint?: Html;
    error?: string | undefined;
    children?: Html;
  },
) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint ? <div class="hint" id={`${id}-hint`}>{hint}</div> : null}
      {error ? <div class="error" id={`${id}-error`}>{error}</div> : null}
    </div>
  );
}

/** `aria-` attributes of a control in a `Field`. */
export const described = (id: string, error: string | undefined, hint = true) => ({
  "aria-describedby":
    [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter((x) => x !== "").join(" ") ||
    undefined,
  ...(error ? { "aria-invalid": "true" as const } : {}),
});

/** What was refused, above a form, with a link to each field. */
export function Refused({ title, errors }: { title: string; errors: { id: string; message: string }[] }) {
  return (
    <div class="note bad" role="alert" tabindex={-1}>
      <b>{title}</b>
      {errors.length === 0 ? null : (
        <ul>
          {errors.map(({ id, message }) => (
            <li>
              <a href={`#${id}`}>{message}</a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Says that a part renews itself, with a button to stop it (shown by the script). */
export function LiveBar({ id, refresh }: { id: string; refresh: string }) {
  return (
    <div class="live-bar" data-live-for={id}>
      <span role="status" data-live-said>Not renewed by itself</span>
      <button type="button" class="small-button" hidden>Pause</button>
      <a href={refresh}>Refresh</a>
    </div>
  );
}

/** Links to the next page and back to the first; null when everything is on this one. */
export function pager(url: URL, next: string | null): Html {
  const paged = url.searchParams.has("cursor");
  if (!paged && next === null) return null;
  const first = new URL(url), further = new URL(url);
  first.searchParams.delete("cursor");
  if (next !== null) further.searchParams.set("cursor", next);
  return (
    <nav class="actions" aria-label="Pages">
      {paged ? <a class="button small-button" href={first.pathname + first.search}>First page</a> : null}
      {next === null
        ? <span>End of the list</span>
        : <a class="button small-button" href={further.pathname + further.search}>Next page</a>}
    </nav>
  );
}

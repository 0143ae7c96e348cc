/** What the filters of the list pages share: the span of time, and what is said when a filter is refused. */
import { Refused } from "./ui.tsx";

/** Two fields for a span of time, in UTC as everywhere on the pages. */
export function TimeRange(p: { from: string; to: string; given(name: string): string }) {
  return (
    <>
      <div class="field">
        <label for={p.from}>From (UTC)</label>
        <input id={p.from} name={p.from} type="datetime-local" value={p.given(p.from)} />
      </div>
      <div class="field">
        <label for={p.to}>To (UTC)</label>
        <input id={p.to} name={p.to} type="datetime-local" value={p.given(p.to)} />
      </div>
    </>
  );
}

/** Nothing, or the fields of a filter that cannot be used and why. */
export function RefusedFilter({ errors }: { errors: { id: string; message: string }[] }) {
  return errors.length === 0 ? null : (
    <div class="inset">
      <Refused title="This filter cannot be used" errors={errors} />
    </div>
  );
}
